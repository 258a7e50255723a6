"""The fleet as it is to become: its state, and the secrets that are new. Nothing is written here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final, Literal

import msgspec

from outvote.access.tokens import Token, make_token
from outvote.core.errors import InvalidConfiguration
from outvote.fleet.certificates import Signed
from outvote.fleet.claims import account_claims, creds, operator_claims, user_claims
from outvote.fleet.keys import Key, Kind, new_key, read_key
from outvote.fleet.permissions import SHARED, SYSTEM, Permissions, system_permissions
from outvote.fleet.state import DAY, FleetFile, Issued, Revocation

ISSUED: Final = "keys/issued"
"""Where the secrets of members are that kits are made from."""
OPERATOR_TOKEN: Final = "operator"
LONGEST_DAYS = 36500
SYSTEM_SECONDS = 3600
"""How long a credential of the system account is good."""
FORGET_AFTER = 7 * DAY
"""Seconds after its end when the revocation of a credential is forgotten: clocks may differ."""


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
            raise InvalidConfiguration(
                f"{str(self.folder / name)!r} cannot be read: {error.strerror}; restore it from your backup of the "
                "fleet folder"
            ) from None

    def key(self, name: str, kind: Kind) -> Key:
        new = self.files.get(f"keys/{name}.seed")
        return Key(new) if new is not None else read_key(self.folder / f"keys/{name}.seed", kind)

    def authority(self) -> Signed:
        if self.state.brought:
            raise InvalidConfiguration("this fleet's certificates are yours: give --certificate and --key")
        return Signed(self.read("ca.pem"), self.read("keys/ca.key"))

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
        secret, token = make_token(OPERATOR_TOKEN, "admin", days=check_days(days), now=self.now)
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
        self.files[f"{ISSUED}/{name}"] = content

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
    """Refuse a time for which nothing can be made."""
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 < days <= LONGEST_DAYS:
        allowed = f"must be a number above 0 and at most {LONGEST_DAYS}"
        raise InvalidConfiguration(f"{allowed}, got {days!r}", field="days", code="range")
    return days
