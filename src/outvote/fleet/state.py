"""`fleet.json`: what a fleet consists of. Names, addresses, public keys, hashes and times only: no secret is in it.

The secrets that it names are in the folder `keys`; everything else of a fleet's folder is derived from both.
"""

from __future__ import annotations

from typing import Final

import msgspec

from outvote.access.kits import decode_version
from outvote.access.tokens import Token
from outvote.core.errors import InvalidConfiguration
from outvote.engine.process import DEFAULT_PORT
from outvote.fleet.addresses import Address, read_address

FILE: Final = "fleet.json"
VERSION: Final = 1
SERVER_PORT: Final = 8600
SOON: Final = 30
"""Days before its end from which on it is said that something expires."""
DAY: Final = 86400


class Issued(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A credential: its public key, and from when until when; seconds since 1970."""

    key: str
    issued: int
    expires: int


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An edge, or the fleet's servers."""

    credential: Issued
    older: list[Issued] = []
    """What was issued before and may still be good."""
    revoked: int | None = None
    https: str | None = None
    """Host at which an edge's API listens beyond its own machine."""
    certificate: str | None = None
    """Name of the certificate of its API."""
    tokens: list[Token] = []
    """What its API accepts."""

    def all_credentials(self) -> list[Issued]:
        return [self.credential, *self.older]


class Revocation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key that counts no more, from when on, and when it would have ended anyway."""

    at: int
    expires: int


class FleetFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it."""

    version: int
    name: str
    made: int
    operator: str
    account: str
    """Of the edges."""
    log: str
    """Of the log and the servers."""
    system: str
    engines: list[str]
    server: str
    also: list[str]
    """Further names that certificates are for."""
    brought: bool
    """Whether the user brings the certificates: then there is no authority of our own."""
    disk: int | None
    """The most bytes of the log."""
    store: str
    """Where engines of your own keep their files."""
    claimed: int
    """When the newest claims of both accounts were made."""
    told: int
    """Those that engines are known to have."""
    certificates: list[str]
    """Names of the engines' certificates, in the order of the engines."""
    operator_token: str
    """Hash of the token in the operator's kit."""
    servers: Member
    edges: dict[str, Member]
    revoked: dict[str, Revocation]

    @property
    def engine_addresses(self) -> list[Address]:
        return [read_address(each, default_port=DEFAULT_PORT) for each in self.engines]

    @property
    def server_address(self) -> Address:
        return read_address(self.server, default_port=SERVER_PORT)

    @property
    def nats(self) -> list[str]:
        return [f"tls://{each}" for each in self.engine_addresses]

    @property
    def engine_kits(self) -> list[str]:
        """Folders of engines that you run yourself."""
        count = len(self.engines)
        return ["engine"] if count == 1 else [f"engine-{number}" for number in range(1, count + 1)]

    @property
    def issued_files(self) -> set[str]:
        """Files in `keys/issued` that kits are made from."""
        members = [self.servers, *self.edges.values()]
        names = {*self.certificates, *(each.certificate for each in members if each.certificate is not None)}
        return {
            *(f"{each.credential.key}.creds" for each in members),
            *(f"{name}.{kind}" for name in names for kind in ("pem", "key")),
            f"{self.operator_token}.token",
        }


def read_state(content: bytes) -> FleetFile:
    try:
        return decode_version(content, FleetFile, VERSION)
    except msgspec.MsgspecError as error:
        problem = f"cannot be read: {error}; use the Outvote that wrote it, or restore your backup"
        raise InvalidConfiguration(problem, field=FILE) from None


def lasts(expires: int, now: float) -> str:
    days = int((expires - now) // DAY)
    if expires <= now:
        return "expired"
    return f"expires in {days} {'day' if days == 1 else 'days'}" if days <= SOON else "valid"
