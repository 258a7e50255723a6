"""A fleet's folder: what is in it, and how it changes. The secrets of a whole fleet: it stays on one machine.

| in the folder | what it is | who may have it |
|---|---|---|
| `fleet.json` | names, addresses, public keys, hashes, times | you |
| `keys` | whoever has them is the fleet; in `issued` what the members hold | you, and nobody else |
| `ca.pem` | who signs the fleet's certificates | everybody |
| `engine`, or `engine-1` to `engine-3` | kits of engines | the machines of the engines |
| `server` | kit of the servers, with that of their engine where there is one | the machines of the servers |
| `operator` | kit of people and programs that manage tasks | they |
| `edges/<name>` | kit of one edge | that site |

A change is one rename, that of `fleet.json`. New secrets are on the disk before it, kits are derived from both after
it. A command that finds the mark of an unfinished change writes all kits anew. Nothing here prints or logs a secret.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, Literal

import msgspec

from outvote.core.errors import InvalidTask
from outvote.files import make_private_folder, sync_folder, write_private
from outvote.fleet import kit_files
from outvote.fleet.certificates import Signed
from outvote.fleet.claims import account_claims, creds, operator_claims, user_claims
from outvote.fleet.errors import FleetError
from outvote.fleet.keys import Key, Kind, new_key, read_key
from outvote.fleet.permissions import SHARED, SYSTEM, Permissions, system_permissions
from outvote.fleet.state import DAY, FILE, FleetFile, Issued, Revocation, read_state, write_state
from outvote.network.tokens import Token, make_token
from outvote.processes import lock

LOCK: Final = "fleet.lock"
UNFINISHED: Final = "fleet.unfinished"
"""The mark: it is there while a change is made."""
PATIENCE: Final = 20.0
"""Seconds to wait for another command."""
OPERATOR_TOKEN: Final = "operator"
LONGEST_DAYS = 36500
SYSTEM_SECONDS = 3600
"""How long a credential of the system account is good."""
FORGET_AFTER = 7 * DAY
"""Seconds after its end when the revocation of a credential is forgotten: clocks may differ."""


class Fleet:
    """A folder that is there."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.clock = clock
        if not (folder / FILE).is_file():
            raise InvalidTask(
                f"{str(folder)!r} is no fleet folder: make one with `outvote fleet init`, or name yours with --folder"
            )

    @contextmanager
    def change(self) -> Iterator[Draft]:
        """Be the only command that uses the folder. What the draft becomes is written at the end; after an error
        nothing is. What another command has left unfinished is completed first."""
        with held(self.folder):
            state = read_state((self.folder / FILE).read_bytes())
            draft = Draft(self.folder, state, now=self.clock())
            if (self.folder / UNFINISHED).exists():
                draft.complete(state.edges)
            yield draft
            if draft.state != state:
                draft.write(state)

    def look(self) -> FleetFile:
        with self.change() as draft:
            return draft.state


class Draft:
    """The fleet as it is to become: the state, and new files that kits are derived from, by name."""

    def __init__(self, folder: Path, state: FleetFile, *, now: float) -> None:
        self.folder = folder
        self.state = state
        self.now = now
        self._claimed = state.claimed
        self.files: dict[str, bytes] = {}

    def set(self, **fields: object) -> None:
        self.state = msgspec.structs.replace(self.state, **fields)

    def read(self, name: str) -> bytes:
        if name in self.files:
            return self.files[name]
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise InvalidTask(
                f"{str(self.folder / name)!r} cannot be read: {error.strerror}; restore it from your backup of the "
                "fleet folder"
            ) from None

    def key(self, name: str, kind: Kind) -> Key:
        new = self.files.get(f"keys/{name}.seed")
        return Key(new) if new is not None else read_key(self.folder / f"keys/{name}.seed", kind)

    def authority(self) -> Signed:
        if self.state.brought:
            raise InvalidTask("this fleet's certificates are yours: give --certificate and --key")
        return Signed(self.read("ca.pem"), self.read("keys/ca.key"))

    # ---- how it is written

    def write(self, old: FleetFile | None) -> None:
        """Make it the fleet. The folder is held."""
        (self.folder / UNFINISHED).touch(0o600)
        write_files(self.folder, self.files)
        for parent in {self.folder, *((self.folder / name).parent for name in self.files)}:
            sync_folder(parent)
        write_private(self.folder / FILE, write_state(self.state))
        sync_folder(self.folder)
        # Folders of kits are not synced: a power cut that undoes a rename in them undoes the later removal of the mark.
        edges = self.state.edges
        self.complete(name for name in edges if old is None or edges[name] != old.edges.get(name))

    def complete(self, edges: Iterable[str]) -> None:
        """Derive the kits, of edges only these; remove secrets that the state does not name; remove the mark."""
        write_files(self.folder, kit_files.central_kits(self))
        for name in edges:
            write_files(self.folder, kit_files.edge_kit(self, name))
        issued = self.folder / kit_files.ISSUED
        for name in {each.name for each in issued.iterdir()} - self.state.issued_files:
            (issued / name).unlink()
        (self.folder / UNFINISHED).unlink()

    # ---- what members hold

    def issue(
        self, name: str, may: Permissions, *, days: float, account: Literal["account", "log"] = "account"
    ) -> Issued:
        """Make a credential, of the edges' account or the log's."""
        user = new_key("user")
        issued, expires = int(self.now), int(self.now + check_days(days) * DAY)
        claims = user_claims(self.key(account, "account"), user.public, name=name, may=may, now=issued, expires=expires)
        self._keep(f"{user.public}.creds", creds(claims, user).encode("ascii"))
        return Issued(user.public, issued, expires)

    def issue_operator_token(self, *, days: float) -> Token:
        """Make the token of the operator's kit."""
        secret, token = make_token(OPERATOR_TOKEN, "admin", days=days, now=self.now)
        self._keep(f"{token.sha256}.token", secret.encode("ascii") + b"\n")
        self.set(operator_token=token.sha256)
        return token

    def keep_certificate(self, signed: Signed) -> str:
        """Returns the name under which the state has it."""
        name = hashlib.sha256(signed.chain).hexdigest()
        self._keep(f"{name}.pem", signed.chain)
        self._keep(f"{name}.key", signed.key)
        return name

    def _keep(self, name: str, content: bytes) -> None:
        self.files[f"{kit_files.ISSUED}/{name}"] = content

    def revoke(self, credentials: Iterable[Issued]) -> None:
        """From now on these count no more; engines must be told."""
        now = int(self.now)
        revoked = {key: each for key, each in self.state.revoked.items() if each.expires + FORGET_AFTER > now}
        for each in credentials:
            revoked[each.key] = Revocation(max(now, each.issued), each.expires)
        # Of two claims engines keep the later one: never the same second, nor an earlier one if the clock went back.
        self.set(revoked=revoked, claimed=max(now, self._claimed + 1))

    def still_good(self, credentials: Iterable[Issued]) -> list[Issued]:
        return [each for each in credentials if each.expires > self.now and each.key not in self.state.revoked]

    def operator_claims(self) -> str:
        state = self.state
        operator = self.key("operator", "operator")
        return operator_claims(operator, name=state.name, system_account=state.system, now=state.made)

    def all_claims(self) -> dict[str, str]:
        """What all accounts say, by their keys."""
        state = self.state
        operator = self.key("operator", "operator")
        revoked = {key: each.at for key, each in state.revoked.items()}
        say = partial(account_claims, operator, now=state.claimed, revoked=revoked)
        return {
            state.account: say(state.account, name="edges", takes=SHARED, of=state.log),
            state.log: say(state.log, name="log", log=True, disk=state.disk, offers=SHARED),
            state.system: account_claims(operator, state.system, name="system", now=state.made),
        }

    def system_credential(self) -> str:
        """Lets the operator's machine talk to the engine itself, for an hour. It is never stored."""
        user, expires = new_key("user"), self.now + SYSTEM_SECONDS
        account, may = self.key("system", "account"), system_permissions()
        return creds(user_claims(account, user.public, name=SYSTEM, may=may, now=self.now, expires=expires), user)


def check_days(days: float) -> float:
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 < days <= LONGEST_DAYS:
        raise InvalidTask(f"days must be a number above 0 and at most {LONGEST_DAYS}, got {days!r}")
    return days


# ---- files


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Be the only command that uses the folder."""
    try:
        with (folder / LOCK).open("ab") as file:
            os.fchmod(file.fileno(), 0o600)
            if not lock(file.fileno(), seconds=PATIENCE):
                raise FleetError(f"another command uses the fleet folder {str(folder)!r}: wait for it, and try again")
            yield
    except OSError as error:
        raise FleetError(
            f"the fleet folder {str(folder)!r} cannot be changed: {error.strerror}; what was begun the next command "
            "completes"
        ) from None


def write_files(folder: Path, files: Mapping[str, bytes | None]) -> None:
    """Write those that differ, each whole and for its owner only; None removes one."""
    for name, content in files.items():
        path = folder / name
        if content == (path.read_bytes() if path.exists() else None):
            continue
        if content is None:
            path.unlink()
        else:
            make_private_folder(path.parent)
            write_private(path, content)
