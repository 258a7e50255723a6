"""A fleet's folder: what is in it, and how it changes. The secrets of a whole fleet: it stays on one machine.

| in the folder | what it is | who may have it |
|---|---|---|
| `fleet.json` | names, addresses, public keys, times | you |
| `keys` | whoever has them is the fleet | you, and nobody else |
| `engine`, or `engine-1` to `engine-3` | kits of engines | the machines of the engines |
| `server` | kit of the servers, with that of their engine where there is one | the machines of the servers |
| `operator` | kit of people and programs that manage tasks | they |
| `edges/<name>` | kit of one edge | that site |

Every change happens as a whole (`change`), and nothing here prints or logs a secret.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from outvote.core.errors import InvalidTask
from outvote.fleet import kit_files
from outvote.fleet.certificates import Signed
from outvote.fleet.change import DECIDED, change_files, held
from outvote.fleet.claims import account_claims, creds, operator_claims, user_claims
from outvote.fleet.keys import Key, Kind, new_key, read_key
from outvote.fleet.permissions import SHARED, SYSTEM, Permissions, system_permissions
from outvote.fleet.state import DAY, FILE, FleetFile, Issued, Revocation, read_state, write_state

LONGEST_DAYS = 36500
SYSTEM_SECONDS = 3600
"""How long a credential of the system account is good: it is made when it is needed, and never stored."""
FORGET_AFTER = 7 * DAY
"""Seconds after its end when the revocation of a credential is forgotten: clocks may differ."""


class Fleet:
    """A folder that is there."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.clock = clock
        if not (folder / FILE).is_file() and not (folder / DECIDED).is_dir():
            raise InvalidTask(
                f"{str(folder)!r} is no fleet folder: make one with `outvote fleet init`, or name yours with --folder"
            )

    def look(self) -> FleetFile:
        with held(self.folder):
            return read_state((self.folder / FILE).read_bytes())

    @contextmanager
    def change(self) -> Iterator[Draft]:
        """Everything that is put into the draft happens, or, after an error, nothing."""
        with held(self.folder):
            state = read_state((self.folder / FILE).read_bytes())
            draft = Draft(self.folder, state, now=self.clock())
            yield draft
            if draft.state.claimed != state.claimed:
                for kit in draft.state.all_engine_kits:
                    draft.files |= kit_files.engine_claims(draft, kit)
            if draft.state != state or draft.files:
                change_files(self.folder, draft.files | {FILE: write_state(draft.state)})

    def system_credential(self) -> str:
        """Lets the operator's machine talk to the engine itself, for an hour."""
        with held(self.folder):
            account = read_key(self.folder / "keys/system.seed", "account")
        user, now = new_key("user"), self.clock()
        claims = user_claims(
            account, user.public, name=SYSTEM, may=system_permissions(), now=now, expires=now + SYSTEM_SECONDS
        )
        return creds(claims, user)

    def claims(self) -> tuple[FleetFile, list[str]]:
        """The fleet, and the newest claims of the accounts whose users can be revoked: first that of the edges."""
        with held(self.folder):
            state = read_state((self.folder / FILE).read_bytes())
            found = Draft(self.folder, state, now=self.clock()).all_claims()
            return state, [found[state.account], found[state.log]]

    def was_told(self, claimed: int) -> None:
        """Engines have these claims."""
        with self.change() as draft:
            if draft.state.told < claimed:
                draft.set(told=claimed)


class Draft:
    """The fleet as it is to become: files that change, by name, and the state."""

    def __init__(self, folder: Path, state: FleetFile, *, now: float) -> None:
        self.folder = folder
        self.state = state
        self.now = now
        self._claimed = state.claimed
        self.files: dict[str, bytes | None] = {}

    def set(self, **fields: object) -> None:
        self.state = msgspec.structs.replace(self.state, **fields)

    def read(self, name: str) -> bytes:
        content = self.files.get(name)
        if content is None:
            try:
                content = (self.folder / name).read_bytes()
            except OSError as error:
                raise InvalidTask(
                    f"{str(self.folder / name)!r} cannot be read: {error.strerror}; restore it from your backup of the "
                    "fleet folder"
                ) from None
        return content

    def key(self, name: str, kind: Kind) -> Key:
        staged = self.files.get(f"keys/{name}.seed")
        return Key(staged) if staged is not None else read_key(self.folder / f"keys/{name}.seed", kind)

    def authority(self) -> Signed:
        if self.state.brought:
            raise InvalidTask("this fleet's certificates are yours: give --certificate and --key")
        return Signed(self.read("ca.pem"), self.read("keys/ca.key"))

    # ---- credentials

    def issue(
        self, name: str, may: Permissions, *, days: float, account: Literal["account", "log"] = "account"
    ) -> tuple[Issued, bytes]:
        """A new credential, of the edges' account or the log's: what is kept of it, and the secret."""
        user = new_key("user")
        issued, expires = int(self.now), int(self.now + check_days(days) * DAY)
        claims = user_claims(self.key(account, "account"), user.public, name=name, may=may, now=issued, expires=expires)
        return Issued(user.public, issued, expires), creds(claims, user).encode("ascii")

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


def check_days(days: float) -> float:
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 < days <= LONGEST_DAYS:
        raise InvalidTask(f"days must be a number above 0 and at most {LONGEST_DAYS}, got {days!r}")
    return days
