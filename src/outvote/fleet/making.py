"""A new fleet: its keys, its authority and its first kits. It is there when its `fleet.json` is."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from outvote.core.errors import InvalidConfiguration
from outvote.files import make_private_folder, sync_folder
from outvote.fleet import kit_files
from outvote.fleet.addresses import Address, check_host
from outvote.fleet.brought import ExternalCertificate, read_authorities, read_brought
from outvote.fleet.certificates import CERTIFICATE_DAYS, new_authority, new_certificate
from outvote.fleet.draft import Draft
from outvote.fleet.folder import LOCK, UNFINISHED, FleetError, held, write_draft
from outvote.fleet.keys import new_key
from outvote.fleet.permissions import SERVER, server_permissions
from outvote.fleet.state import FILE, VERSION, FleetFile, Issued, Member
from outvote.log.records import check_name

_NOBODY: Final = Member(Issued("", 0, 0))


@dataclass(frozen=True)
class Plan:
    """What a fleet is to be."""

    engines: Sequence[Address]
    server: Address
    name: str = "fleet"
    also: Sequence[str] = ()
    days: float = CERTIFICATE_DAYS
    disk: int | None = None
    store: str = "/var/lib/nats"
    brought: ExternalCertificate | None = None

    def __post_init__(self) -> None:
        check_name("a fleet's name", self.name)
        if len(self.engines) not in (1, 3):
            problem = f"must be given once or three times, got {len(self.engines)}: two cannot outvote a third"
            raise InvalidConfiguration(problem, field="engine", code="range")
        if len(set(self.engines)) != len(self.engines):
            problem = f"must be a different address each time, got {', '.join(map(str, self.engines))}"
            raise InvalidConfiguration(problem, field="engine", code="duplicate")
        port, above = max(each.port for each in self.engines), kit_files.CLUSTER_OFFSET
        if len(self.engines) > 1 and port + above > 65535:
            problem = f"must have a port of at most {65535 - above}, got {port}: engines meet {above} above it"
            raise InvalidConfiguration(problem, field="engine", code="range")
        if not self.store.startswith("/") or not self.store.isprintable():
            raise InvalidConfiguration(f"must be a folder like /var/lib/nats, got {self.store!r}", field="store")
        if self.disk is not None and (isinstance(self.disk, bool) or not isinstance(self.disk, int) or self.disk < 1):
            raise InvalidConfiguration(f"must be a whole number of bytes, got {self.disk!r}", field="disk")


def make_fleet(folder: Path, plan: Plan, *, now: float) -> FleetFile:
    """Make a folder, where nothing is or where an attempt was interrupted before there was a fleet."""
    target = Path(folder).absolute()
    if not _is_free(target):
        raise InvalidConfiguration(
            f"{str(folder)!r} exists already, and may hold the keys of a fleet: name another with --folder, or move it "
            "away first",
            field="folder",
            code="conflict",
        )
    if not target.parent.is_dir():
        raise InvalidConfiguration(f"{str(folder)!r} cannot be made: {str(target.parent)!r} must exist", field="folder")
    draft = _new_draft(target, plan, now=now)
    try:
        make_private_folder(target)
        target.chmod(0o700)  # if it was there, and empty
        with held(target):
            if (target / FILE).exists():
                raise InvalidConfiguration(f"{str(folder)!r} was made by another command meanwhile", field="folder")
            write_draft(draft, None)
        sync_folder(target.parent)
    except OSError as error:
        raise FleetError(f"{str(folder)!r} cannot be made: {error.strerror or error}") from None
    return draft.state


def _is_free(target: Path) -> bool:
    if not target.is_dir():
        return not target.exists() and not target.is_symlink()
    names = {each.name for each in target.iterdir()}
    return names <= {LOCK} or (UNFINISHED in names and FILE not in names)


def _new_draft(folder: Path, plan: Plan, *, now: float) -> Draft:
    keys = {"operator": new_key("operator")} | {name: new_key("account") for name in ("account", "log", "system")}
    state = FleetFile(
        version=VERSION,
        name=plan.name,
        made=int(now),
        **{name: key.public for name, key in keys.items()},
        engines=[str(each) for each in plan.engines],
        server=str(plan.server),
        also=[check_host(each, "also") for each in plan.also],
        brought=plan.brought is not None,
        disk=plan.disk,
        store=plan.store,
        claimed=int(now),
        told=int(now),
        certificates=[],
        operator_token="",
        servers=_NOBODY,
        edges={},
        revoked={},
    )
    draft = Draft(folder, state, now=now)
    draft.files |= {f"keys/{name}.seed": key.seed for name, key in keys.items()}
    if len(plan.engines) > 1:
        draft.files[kit_files.CLUSTER_SECRET] = secrets.token_hex(24).encode() + b"\n"
    if plan.brought is None:
        authority = new_authority(plan.name, now=now)
        draft.files |= {"ca.pem": authority.chain, "keys/ca.key": authority.key}
    else:
        if plan.brought.ca is None:
            raise InvalidConfiguration(
                "is needed with a certificate of your own: give --ca", field="ca", code="missing"
            )
        draft.files["ca.pem"] = read_authorities(plan.brought.ca)
    credential = draft.issue(SERVER, server_permissions(), account="log", days=plan.days)
    draft.set(servers=Member(credential, tokens=[draft.issue_operator_token(days=plan.days)]))
    sign_all(draft, brought=plan.brought, days=plan.days)
    return draft


def sign_all(draft: Draft, *, brought: ExternalCertificate | None, days: float) -> None:
    """Give engines and servers certificates of our authority, or the one that the user brings for all."""
    state = draft.state
    engines, server = [each.host for each in state.engine_addresses], state.server_address.host
    cluster = len(engines) > 1
    if brought is not None:
        hosts = list(dict.fromkeys([*engines, server, *state.also]))
        name = draft.keep_certificate(read_brought(brought, draft.read("ca.pem"), hosts=hosts, client=cluster))
        names = [name] * len(engines)
    else:
        sign = partial(new_certificate, draft.authority(), now=draft.now, days=days)
        names = [draft.keep_certificate(sign([host, *state.also], client=cluster)) for host in engines]
        name = draft.keep_certificate(sign([server, *state.also]))
    draft.set(certificates=names, servers=msgspec.structs.replace(state.servers, certificate=name))
