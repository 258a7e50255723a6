"""Reads kits: the folders with which an edge, a server or an operator takes part in a fleet. `outvote.fleet` writes
them.

| kit | files |
|---|---|
| all | `kit.json`: kind of kit and addresses; `ca.pem`: CA certificate of the fleet |
| edge | `edge.creds`; for an API that other machines can reach also `https.pem`, `https.key` and `tokens.json` |
| server | `server.creds`, `https.pem`, `https.key`, `tokens.json`; to start its own engine also the folder `engine` |
| engine | `engine.pem`, `engine.key`, `operator.jwt`, `accounts.json`; for a separate engine also `nats.conf` |
| operator | `token` |

A kit holds secrets: its folder and files are private to their owner, and a kit that others can read is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec

from outvote.access.tokens import check_private
from outvote.core.errors import InvalidConfiguration
from outvote.log.records import check_name

T = TypeVar("T")
VERSION: Final = 1
"""The version of this format. Other versions are refused."""


class Certificate(NamedTuple):
    """A certificate chain and its private key."""

    chain: Path
    key: Path


class KitFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`kit.json`."""

    kit: str
    version: int = VERSION
    edge: str = ""
    nats: list[str] = []
    server: str = ""


class _Version(msgspec.Struct):
    version: int


def decode_version(content: bytes, kind: type[T], version: int) -> T:
    """Decode JSON of this version. The version is read first: a file of another one may have other fields."""
    found = msgspec.json.decode(content, type=_Version).version
    if found != version:
        raise msgspec.ValidationError(f"it has version {found}, this version of Outvote reads {version}")
    return msgspec.json.decode(content, type=kind)


@dataclass(frozen=True)
class MemberKit:
    """The kit of one site, or of a synchronization server."""

    name: str
    """Of the site; empty for a server."""
    nats: tuple[str, ...]
    creds: Path
    ca: Path
    certificate: Certificate | None
    tokens: Path | None
    engine: EngineKit | None = None
    """For a server that starts its own."""


@dataclass(frozen=True)
class EngineKit:
    """The kit of an engine. It contains no key that could issue credentials."""

    ca: Path
    certificate: Certificate
    operator: str
    """The operator's claims."""
    system_account: str
    accounts: dict[str, str]
    """Account claims, by public key."""


@dataclass(frozen=True)
class OperatorKit:
    """The kit of a person or a program that uses a server's API."""

    server: str
    ca: Path
    token: Path


class Accounts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`accounts.json`."""

    system: str
    accounts: dict[str, str]


def read_edge_kit(folder: Path) -> MemberKit:
    kit = _read(folder, "edge")
    https = folder / "https.pem"
    tokens = folder / "tokens.json"
    return MemberKit(
        check_name("an edge's name", kit.edge),
        tuple(kit.nats),
        _secret(folder / "edge.creds"),
        _file(folder / "ca.pem"),
        Certificate(https, _secret(folder / "https.key")) if https.exists() else None,
        tokens if tokens.exists() else None,
    )


def read_server_kit(folder: Path) -> MemberKit:
    kit = _read(folder, "server")
    engine = folder / "engine"
    return MemberKit(
        "",
        tuple(kit.nats),
        _secret(folder / "server.creds"),
        _file(folder / "ca.pem"),
        Certificate(_file(folder / "https.pem"), _secret(folder / "https.key")),
        _file(folder / "tokens.json"),
        read_engine_kit(engine) if engine.exists() else None,
    )


def read_engine_kit(folder: Path) -> EngineKit:
    """Its paths are absolute: an engine reads them in a folder of its own."""
    folder = folder.absolute()
    try:
        accounts = msgspec.json.decode(_file(folder / "accounts.json").read_bytes(), type=Accounts)
    except msgspec.MsgspecError as error:
        raise _broken(folder, f"accounts.json: {error}") from None
    return EngineKit(
        _file(folder / "ca.pem"),
        Certificate(_file(folder / "engine.pem"), _secret(folder / "engine.key")),
        _file(folder / "operator.jwt").read_text(encoding="ascii").strip(),
        accounts.system,
        accounts.accounts,
    )


def read_operator_kit(folder: Path) -> OperatorKit:
    kit = _read(folder, "operator")
    return OperatorKit(kit.server, _file(folder / "ca.pem"), _secret(folder / "token"))


def _read(folder: Path, kind: str) -> KitFile:
    path = folder / "kit.json"
    try:
        kit = decode_version(path.read_bytes(), KitFile, VERSION)
    except OSError as error:
        raise InvalidConfiguration(
            f"{str(folder)!r} cannot be read: kit.json: {error.strerror}; `outvote fleet` makes kits, and a copy must "
            "have all files",
            field="kit",
        ) from None
    except msgspec.MsgspecError as error:
        raise _broken(folder, f"kit.json: {error}") from None
    if kit.kit != kind:
        raise InvalidConfiguration(f"{str(folder)!r} is {_a(kit.kit)} kit; {_a(kind)} kit is required", field="kit")
    if not (kit.server if kind == "operator" else kit.nats):
        raise _broken(folder, "names no server" if kind == "operator" else "names no engine")
    return kit


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _file(path: Path) -> Path:
    if not path.is_file():
        raise InvalidConfiguration(
            f"{str(path)!r} is missing: copy the whole kit, or make it anew with `outvote fleet`"
        )
    return path


def _secret(path: Path) -> Path:
    check_private(_file(path))
    return path


def _broken(folder: Path, why: str) -> InvalidConfiguration:
    return InvalidConfiguration(
        f"{str(folder)!r} cannot be read: {why}; make it anew with `outvote fleet`", field="kit"
    )
