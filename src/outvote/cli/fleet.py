"""`outvote fleet`: who may take part. Its options; `fleet_actions` says what they do, `fleet_show` what people see."""

from __future__ import annotations

import argparse
from typing import Any

from outvote.cli import fleet_actions as do
from outvote.cli.options import add_action, add_json
from outvote.quantities import number

EXAMPLE = """\
examples:
  outvote fleet init
  outvote fleet add paris lima
  outvote fleet revoke paris
  outvote fleet --folder /safe/outvote-fleet list --json
"""
ROLES = ("admin", "viewer", "application")


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "fleet",
        help="make keys, certificates and credentials: who may take part",
        description="Make a fleet's keys, certificates and credentials, in a folder that stays on one safe machine, "
        "and kits to give away, one for each site. Each action explains itself, and has --json: outvote fleet add "
        "--help",
        epilog=EXAMPLE,
    )
    _add_folder(parser, default=do.FOLDER)
    parser.set_defaults(when_interrupted="the folder is as it was before, or the next command completes the change")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=type(parser))
    _add_init(actions)
    _add_members(actions)
    _add_renew(actions)
    for action in actions.choices.values():
        add_json(action)
    _add_token(actions)


def _add_init(actions: argparse._SubParsersAction[Any]) -> None:
    action = _add(
        actions, "init", "make a new fleet", "init --engine engine.example.org --server admin.example.org", do.init
    )
    action.add_argument(
        "--engine",
        action="append",
        metavar="HOST[:PORT]",
        help="where edges and servers reach the engine; give it three times for three engines (localhost:4322)",
    )
    action.add_argument(
        "--server", default="localhost", metavar="HOST[:PORT]", help="where operators reach the server (localhost:8600)"
    )
    action.add_argument(
        "--also", action="append", default=[], metavar="HOST", help="one more name or address that certificates are for"
    )
    action.add_argument("--name", default="fleet", help="the fleet's name (fleet)")
    _add_days(action, "certificates, the servers' credential and the operators' token", 730)
    action.add_argument("--disk", type=number, metavar="BYTES", help="the most that the log may take (no limit)")
    action.add_argument(
        "--store",
        default="/var/lib/nats",
        metavar="FOLDER",
        help="where engines that you run yourself keep their files: it is in their nats.conf (/var/lib/nats)",
    )
    _add_brought(action, ca=True)


def _add_members(actions: argparse._SubParsersAction[Any]) -> None:
    action = _add(actions, "add", "let edges in, and make their kits", "add paris lima", do.add)
    action.add_argument("edges", nargs="+", metavar="EDGE", help="its name: letters, digits, '_' or '-'")
    _add_days(action, "its credential", 365)
    action.add_argument(
        "--https",
        metavar="HOST",
        help="its API listens for applications on other machines, at HOST: make a certificate and a token, too",
    )
    _add_brought(action)

    _add(actions, "list", "who is in the fleet, and until when", "list", do.list_all)

    action = _add(
        actions,
        "revoke",
        "shut an edge out, at once",
        "revoke paris --discount",
        do.revoke,
        more="What it has sent goes on counting, unless --discount.",
    )
    action.add_argument("edge", metavar="EDGE")
    action.add_argument("--discount", action="store_true", help="what it has sent counts no more in tasks that run")

    said = "tell the engine again what the folder says, as after a backup was restored"
    _add(actions, "push", said, "push", do.push_again)


def _add_renew(actions: argparse._SubParsersAction[Any]) -> None:
    action = _add(
        actions,
        "renew",
        "new credentials, certificates and tokens, in the same kits",
        "renew --all",
        do.renew,
        more="Old ones stay good until they expire, so that nobody is shut out while the new ones are brought to them.",
    )
    action.add_argument("edges", nargs="*", metavar="EDGE", help="credentials of these edges")
    action.add_argument("--all", action="store_true", help="credentials of all edges")
    action.add_argument("--server", action="store_true", help="the credential of the servers")
    action.add_argument("--certificates", action="store_true", help="certificates of engines, servers and edges")
    action.add_argument("--operator", action="store_true", help="the token in the operators' kit")
    _add_days(action, "what is new", None, "365 for edges, 730 for the rest")
    action.add_argument("--revoke-old", action="store_true", help="old credentials and tokens count no more, at once")
    _add_brought(action)


def _add_token(actions: argparse._SubParsersAction[Any]) -> None:
    parser = _add(actions, "token", "tokens of the servers' API, or of an edge's", "token add ci --role viewer", None)
    tokens = parser.add_subparsers(dest="what", metavar="WHAT", required=True, parser_class=type(parser))
    action = _add(
        tokens,
        "add",
        "make a token; its secret is shown once",
        "token add ci --role viewer",
        do.token_add,
        more="The kit's tokens.json has its hash: bring that to the server or the edge.",
    )
    action.add_argument("name", metavar="NAME")
    action.add_argument(
        "--role", choices=ROLES, required=True, help="admin: everything; viewer: only look; application: an edge's API"
    )
    _add_days(action, "it", 365)
    _add_edge(action)
    action = _add(tokens, "remove", "forget a token: it counts no more", "token remove ci", do.token_remove)
    action.add_argument("name", metavar="NAME")
    _add_edge(action)
    for action in tokens.choices.values():
        add_json(action)


def _add(
    actions: argparse._SubParsersAction[Any], name: str, summary: str, example: str, run: Any, *, more: str = ""
) -> argparse.ArgumentParser:
    parser = add_action(actions, "fleet", name, summary, example, more=more)
    _add_folder(parser, default=argparse.SUPPRESS)
    if run is not None:
        parser.set_defaults(run=run)
    return parser


def _add_folder(parser: argparse.ArgumentParser, *, default: str) -> None:
    parser.add_argument("--folder", default=default, metavar="FOLDER", help=f"the fleet's folder ({do.FOLDER})")


def _add_days(parser: argparse.ArgumentParser, what: str, default: int | None, told: str = "") -> None:
    parser.add_argument(
        "--days", type=number, default=default, help=f"how long {what} will be good ({told or default})"
    )


def _add_edge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--edge", metavar="EDGE", help="of this edge's API, not of the servers'")


def _add_brought(parser: argparse.ArgumentParser, *, ca: bool = False) -> None:
    group = parser.add_argument_group("certificates of your own")
    group.add_argument("--certificate", metavar="PEM", help="a certificate, followed by those that sign it")
    group.add_argument("--key", metavar="PEM", help="its key")
    if ca:
        group.add_argument("--ca", metavar="PEM", help="who signs it: edges and operators will trust these only")
