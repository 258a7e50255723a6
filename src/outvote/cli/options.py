"""What the commands share: options, actions, and where results are written."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from outvote.core.errors import InvalidConfiguration
from outvote.core.protocols import networked
from outvote.core.task import DEFAULT_PROTOCOL
from outvote.files import write_whole
from outvote.quantities import number


def add_json(
    parser: argparse._ActionsContainer,
    says: str = "print one JSON object instead of a table, or write it to FILE beside the table",
) -> None:
    """`main` refuses a FILE that cannot be written before the command runs."""
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help=says)


def add_fleet(parser: argparse.ArgumentParser, says: str, *, sites: int) -> None:
    """The fleet that a command starts on this machine; `says` is what its protocol is to the command."""
    says = f"{says} ({DEFAULT_PROTOCOL})"
    parser.add_argument("--protocol", default=DEFAULT_PROTOCOL, choices=networked(), help=says)
    parser.add_argument("--sites", type=number, default=sites, help=f"how many sites, each a process ({sites})")


def add_action(
    actions: argparse._SubParsersAction[Any], command: str, name: str, summary: str, example: str, *, more: str = ""
) -> argparse.ArgumentParser:
    """An action of a command, as `create` is of `outvote task`."""
    parser: argparse.ArgumentParser = actions.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + "." + (more and f"\n\n{more}"),
        epilog=f"example:\n  outvote {command} {example}\n",
    )
    return parser


def tell(args: argparse.Namespace, record: dict[str, Any], text: str) -> None:
    """What was done: to a program, to a person, or to both."""
    if write_result(args, record):
        print(text)
    sys.stdout.flush()


def write_result(args: argparse.Namespace, record: dict[str, Any]) -> bool:
    """Write a result as JSON where that is wanted; return whether people are to see it."""
    if args.json:
        write_json(record, args.json)
    return bool(args.json != "-")


def add_workers(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--workers", type=number, help="processes to use; results do not depend on it (all cores)")
    parser.add_argument("--dask", metavar="ADDRESS", help="run on the Dask cluster whose scheduler is at ADDRESS")


def check_writable(path: str | None, what: str) -> None:
    """Refuse a file that cannot be written before the work, not after it."""
    if path is None or path == "-":
        return
    folder = Path(path).resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidConfiguration(
            f"{what} cannot be written: {folder} must be an existing folder that you may write to"
        )
    if Path(path).is_dir():
        raise InvalidConfiguration(f"{what} must be a file, got the folder {path!r}")


def write_json(record: dict[str, Any], where: str) -> None:
    """To standard output for '-', else to a file that appears whole or not at all."""
    text = json.dumps(record, allow_nan=False, ensure_ascii=False) + "\n"
    if where == "-":
        sys.stdout.write(text)
    else:
        write_whole(where, text)
