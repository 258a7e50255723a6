"""What the actions of `outvote fleet` do: `outvote.fleet` does it, here it is asked for and told. Thin."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from outvote.cli.options import tell, write_result
from outvote.cli.serving import Failed
from outvote.core.errors import InvalidConfiguration

if TYPE_CHECKING:
    from outvote.fleet.brought import ExternalCertificate
    from outvote.fleet.folder import Fleet
    from outvote.fleet.state import FleetFile

FOLDER = "outvote-fleet"


def _fleet(args: argparse.Namespace) -> Fleet:
    from outvote.fleet.folder import Fleet

    return Fleet(Path(args.folder))


def _brought(args: argparse.Namespace) -> ExternalCertificate | None:
    from outvote.fleet.brought import ExternalCertificate

    ca = getattr(args, "ca", None)
    if args.certificate is None and args.key is None and ca is None:
        return None
    if args.certificate is None or args.key is None:
        raise InvalidConfiguration(
            "is needed with its key: give --certificate and --key", field="certificate", code="missing"
        )
    return ExternalCertificate(Path(args.certificate), Path(args.key), None if ca is None else Path(ca))


def init(args: argparse.Namespace) -> int:
    from outvote.engine.process import DEFAULT_PORT
    from outvote.fleet.addresses import read_address
    from outvote.fleet.making import Plan, make_fleet
    from outvote.fleet.state import SERVER_PORT

    plan = Plan(
        engines=[
            read_address(each, default_port=DEFAULT_PORT, field="engine") for each in args.engine or ["localhost"]
        ],
        server=read_address(args.server, default_port=SERVER_PORT, field="server"),
        name=args.name,
        also=args.also,
        days=args.days,
        disk=args.disk,
        store=args.store,
        brought=_brought(args),
    )
    state = make_fleet(Path(args.folder), plan, now=time.time())
    folder = args.folder.rstrip("/")
    record = {
        "folder": str(Path(folder).absolute()),
        "name": state.name,
        "engines": state.nats,
        "server": f"https://{state.server_address}",
        "expires": state.servers.credential.expires,
        "kits": ["server", "operator", *state.engine_kits],
    }
    one = len(state.engines) == 1
    lines = [
        f"made the fleet {state.name!r} in {folder}: keep it on this machine, and a backup of it in a safe place",
        f"  {folder}/server    for the servers" + (", which start the engine, too" if one else ""),
        f"  {folder}/operator  for those who manage tasks",
        *(f"  {folder}/{each}  for an engine of your own{', instead' if one else ''}" for each in state.engine_kits),
        "next:",
        *([] if one else ["  nats-server --config nats.conf   in each engine's kit, on its machine"]),
        f"  {_server_command(folder, state)}",
        f"  outvote fleet {_option(folder)}add paris",
    ]
    tell(args, record, "\n".join(lines))
    return 0


def _server_command(folder: str, state: FleetFile) -> str:
    """What starts a server where the kits say that it is: its defaults are other ports, and one address for all."""
    from outvote.cli.security import reaches_beyond
    from outvote.engine.process import DEFAULT_PORT
    from outvote.fleet.state import SERVER_PORT

    [engine, *more], server = state.engine_addresses, state.server_address
    here = "0.0.0.0" if reaches_beyond(tuple(state.nats)) else "127.0.0.1"
    wanted = [("host", server.listen.host, here), ("port", server.port, SERVER_PORT)]
    if not more:
        wanted += [("engine-host", engine.listen.host, here), ("engine-port", engine.port, DEFAULT_PORT)]
    options = "".join(f" --{name} {value}" for name, value, default in wanted if value != default)
    return f"outvote server --kit {shlex.quote(folder + '/server')}{options}"


def add(args: argparse.Namespace) -> int:
    from outvote.cli import fleet_show
    from outvote.fleet.members import add_edges

    added = add_edges(_fleet(args), args.edges, days=args.days, https=args.https, brought=_brought(args))
    record = {
        "edges": [
            {"edge": each.name, "kit": _path(args, each.kit), "expires": each.expires}
            | ({} if each.token is None else {"token": each.token})
            for each in added
        ]
    }
    lines = []
    for each in added:
        command = f"outvote edge --kit {shlex.quote(_path(args, each.kit))}"
        lines.append(f"added {each.name}, until {fleet_show.day(each.expires)}: {command}")
        if each.token is not None:
            lines += [f"token of its application, shown once: {each.token}"]
    tell(args, record, "\n".join(lines))
    return 0


def list_all(args: argparse.Namespace) -> int:
    from outvote.cli import fleet_show
    from outvote.fleet.overview import overview

    found = overview(_fleet(args))
    if write_result(args, found):
        fleet_show.show(found)
    return 0


def revoke(args: argparse.Namespace) -> int:
    from outvote.fleet.members import revoke_edge
    from outvote.fleet.push import push

    fleet = _fleet(args)
    new = revoke_edge(fleet, args.edge)
    told = push(fleet)
    tasks = _discount(fleet, args.edge) if args.discount else None
    lines = [f"revoked {args.edge}" if new else f"{args.edge} was revoked before", _told(told)]
    if tasks is None:
        lines.append(
            "what it has sent goes on counting; if it must not: "
            f"outvote fleet {_option(args.folder)}revoke {args.edge} --discount"
        )
    else:
        lines.append(f"what it had sent counts no more in: {', '.join(tasks) or 'no task, there was nothing'}")
    tell(args, {"revoked": args.edge, "engines": told, "discounted": tasks}, "\n".join(lines))
    return 0


def _discount(fleet: Fleet, edge: str) -> list[str]:
    """Tell the server that what an edge has sent counts no more; returns the tasks in which it had sent something."""
    from outvote.cli.asking import ask

    kit = fleet.folder / "operator"
    given = argparse.Namespace(kit=kit, server=None, token_file=None, ca=None, insecure=False)
    try:
        return list(ask(given, "POST", f"/v1/sites/{edge}/discount", holds="tasks")["tasks"])
    except Failed as error:
        if str(error).startswith("unknown edge"):  # it never sent anything
            return []
        why = str(error).partition(";")[0]  # what follows is advice for commands that have --server
        raise Failed(
            f"{why}; it is revoked, and what it has sent still counts: ask again with `outvote fleet "
            f"{_option(str(fleet.folder))}revoke {edge} --discount`"
        ) from None


def push_again(args: argparse.Namespace) -> int:
    from outvote.fleet.push import push

    told = push(_fleet(args))
    tell(args, {"engines": told}, f"told: {', '.join(told)}")
    return 0


def renew(args: argparse.Namespace) -> int:
    from outvote.fleet import members
    from outvote.fleet.push import push

    if not (args.edges or args.all or args.server or args.certificates or args.operator):
        problem = "nothing to renew: name edges, or give --all, --server, --certificates or --operator"
        raise InvalidConfiguration(problem, code="missing")
    if args.edges and args.all:
        raise InvalidConfiguration("name edges, or give --all: not both", code="conflict")
    brought = _brought(args)
    if brought is not None and not args.certificates:
        raise InvalidConfiguration("needs --certificates, too", field="certificate", code="conflict")
    fleet = _fleet(args)
    days = {} if args.days is None else {"days": args.days}
    kits: list[str] = []
    if args.edges or args.all:
        done = members.renew_edges(fleet, args.edges or None, revoke_old=args.revoke_old, **days)
        kits += [f"edges/{each}" for each in done]
    if args.server:
        members.renew_server(fleet, revoke_old=args.revoke_old, **days)
        kits.append("server")
    if args.certificates:
        kits += members.renew_certificates(fleet, brought=brought, **days)
    if args.operator:
        members.renew_operator(fleet, revoke_old=args.revoke_old, **days)
        kits += ["operator", "server"]
    kits = list(dict.fromkeys(kits))
    revoked = args.revoke_old and (args.edges or args.all or args.server)
    told = push(fleet) if revoked else []
    lines = [f"renewed: {', '.join(kits) or 'nothing, there is none'}; bring these kits to where they are used"]
    if revoked:
        lines.append(_told(told))
    tell(args, {"kits": [_path(args, each) for each in kits], "engines": told}, "\n".join(lines))
    return 0


def token_add(args: argparse.Namespace) -> int:
    from outvote.fleet.members import add_token

    secret = add_token(_fleet(args), args.name, args.role, days=args.days, edge=args.edge)
    tell(args, {"name": args.name, "role": args.role, "token": secret}, secret)
    if not args.json:
        where = _path(args, "server" if args.edge is None else f"edges/{args.edge}")
        print(f"shown once: keep it now. What accepts it: {where}/tokens.json", file=sys.stderr)
    return 0


def token_remove(args: argparse.Namespace) -> int:
    from outvote.fleet.members import remove_token

    count = remove_token(_fleet(args), args.name, edge=args.edge)
    tell(args, {"removed": args.name, "count": count}, f"removed {args.name}")
    return 0


# ---- for all of them


def _told(engines: list[str]) -> str:
    return f"told: {', '.join(engines)}; whoever was connected with it is cut off"


def _path(args: argparse.Namespace, kit: str) -> str:
    return f"{args.folder.rstrip('/')}/{kit}"


def _option(folder: str) -> str:
    return "" if folder == FOLDER else f"--folder {shlex.quote(folder)} "
