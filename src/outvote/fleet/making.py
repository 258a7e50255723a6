"""A new fleet: its keys, its authority and its first kits. The folder is there when all of it is, or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from outvote.core.errors import InvalidTask
from outvote.fleet import kit_files
from outvote.fleet.addresses import Address, check_host
from outvote.fleet.brought import read_authorities, read_brought
from outvote.fleet.certificates import CERTIFICATE_DAYS, Signed, new_authority, new_certificate
from outvote.fleet.change import held, make_folder, sync_folder, write_files
from outvote.fleet.errors import FleetError
from outvote.fleet.folder import Draft, check_days
from outvote.fleet.keys import new_key
from outvote.fleet.permissions import SERVER, server_permissions
from outvote.fleet.state import FILE, VERSION, FleetFile, Issued, Member, write_state
from outvote.network.records import check_name
from outvote.network.tokens import make_token

OPERATOR_TOKEN: Final = "operator"
_NOBODY: Final = Member(Issued("", 0, 0))


@dataclass(frozen=True)
class Brought:
    """Where the user's certificate is; for a new fleet with its authority's."""

    certificate: Path
    key: Path
    ca: Path | None = None


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
    brought: Brought | None = None

    def __post_init__(self) -> None:
        check_name("a fleet's name", self.name)
        check_days(self.days)
        for each in self.also:
            check_host(each)
        if len(self.engines) not in (1, 3):
            raise InvalidTask(f"a fleet has one engine or three, got {len(self.engines)}: two cannot outvote a third")
        if len(set(self.engines)) != len(self.engines):
            raise InvalidTask(f"engines must have addresses of their own, got {', '.join(map(str, self.engines))}")
        meeting = [each.port + kit_files.CLUSTER_OFFSET for each in self.engines]
        if len(self.engines) > 1 and max(meeting) > 65535:
            raise InvalidTask(
                f"engines meet {kit_files.CLUSTER_OFFSET} above the port for clients, and {max(meeting)} is no port: "
                "choose lower ones"
            )
        if not self.store.startswith("/") or not self.store.isprintable():
            raise InvalidTask(f"the store of engines must be a folder like /var/lib/nats, got {self.store!r}")
        if self.disk is not None and (isinstance(self.disk, bool) or not isinstance(self.disk, int) or self.disk < 1):
            raise InvalidTask(f"a limit of the log must be a whole number of bytes, got {self.disk!r}")


def make_fleet(folder: Path, plan: Plan, *, now: float) -> FleetFile:
    """Make all of it beside the folder, and rename it in the end."""
    target = Path(folder).absolute()
    if target.exists() or target.is_symlink():
        raise InvalidTask(
            f"{str(folder)!r} is there already, and may hold the keys of a fleet: name another with --folder, or move "
            "it away first"
        )
    if not target.parent.is_dir():
        raise InvalidTask(f"the folder {str(target.parent)!r} must be there, to make {target.name!r} in it")
    draft = new_draft(target, plan, now=now)
    part = target.with_name(f".{target.name}.part")
    try:
        make_folder(part)
        with held(part):
            if target.exists():
                raise InvalidTask(f"{str(folder)!r} was made by another command meanwhile")
            try:
                _empty(part)
                write_files(part, {name: content for name, content in draft.files.items() if content is not None})
                part.rename(target)
            except BaseException:
                shutil.rmtree(part, ignore_errors=True)
                raise
        sync_folder(target.parent)
    except OSError as error:
        raise FleetError(f"{str(folder)!r} cannot be made: {error.strerror or error}") from None
    return draft.state


def new_draft(folder: Path, plan: Plan, *, now: float) -> Draft:
    """All files of a new fleet."""
    operator, account, log, system = new_key("operator"), new_key("account"), new_key("account"), new_key("account")
    state = FleetFile(
        version=VERSION,
        name=plan.name,
        made=int(now),
        operator=operator.public,
        account=account.public,
        log=log.public,
        system=system.public,
        engines=[str(each) for each in plan.engines],
        server=str(plan.server),
        also=[check_host(each) for each in plan.also],
        brought=plan.brought is not None,
        disk=plan.disk,
        store=plan.store,
        claimed=int(now),
        told=int(now),
        servers=_NOBODY,
        edges={},
        revoked={},
    )
    draft = Draft(folder, state, now=now)
    for name, key in (("operator", operator), ("account", account), ("log", log), ("system", system)):
        draft.files[f"keys/{name}.seed"] = key.seed
    if len(plan.engines) > 1:
        draft.files[kit_files.CLUSTER_SECRET] = secrets.token_hex(24).encode() + b"\n"
    if plan.brought is None:
        authority = new_authority(plan.name, now=now)
        draft.files |= {"ca.pem": authority.chain, "keys/ca.key": authority.key}
    else:
        if plan.brought.ca is None:
            raise InvalidTask("a certificate of your own needs that of its authority, too: give --ca")
        draft.files["ca.pem"] = read_authorities(plan.brought.ca, now=now)
    credential, secret = draft.issue(SERVER, server_permissions(), account="log", days=plan.days)
    draft.set(servers=Member(credential))
    token, kept = make_token(OPERATOR_TOKEN, "admin", days=plan.days, now=now)
    engines, server = sign_all(draft, brought=plan.brought, days=plan.days)
    for kit, certificate in engines.items():
        draft.files |= kit_files.engine_kit(draft, kit, certificate)
    draft.files |= kit_files.server_kit(draft, secret, server, [kept])
    draft.files |= kit_files.operator_kit(draft, token)
    draft.files[FILE] = write_state(draft.state)
    return draft


def sign_all(draft: Draft, *, brought: Brought | None, days: float) -> tuple[dict[str, Signed], Signed]:
    """Certificates of engines, by kit, and of the server: of our authority, or the one that the user brings for all."""
    state = draft.state
    hosts = [each.host for each in state.engine_addresses]
    if brought is not None:
        signed = read_brought(
            brought.certificate,
            brought.key,
            draft.read("ca.pem"),
            hosts=list(dict.fromkeys([*hosts, state.server_address.host, *state.also])),
            now=draft.now,
            client=len(hosts) > 1,
        )
        return dict.fromkeys(state.all_engine_kits, signed), signed
    authority = draft.authority()
    engines = {
        kit: new_certificate(authority, [host, *state.also], now=draft.now, days=days, client=len(hosts) > 1)
        for kit, host in zip(state.engine_kits, hosts, strict=True)
    }
    if "server/engine" in state.all_engine_kits:  # the same engine, started by the server
        engines["server/engine"] = engines["engine"]
    server = new_certificate(authority, [state.server_address.host, *state.also], now=draft.now, days=days)
    return engines, server


def _empty(folder: Path) -> None:
    """What an interrupted attempt has left; the lock stays."""
    for each in folder.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        elif each.name != "fleet.lock":
            each.unlink()
