"""What the commands share: numbers, comma-separated lists, and where results are written."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from outvote import quantities
from outvote.core.errors import InvalidConfiguration, InvalidInput
from outvote.files import write_whole


def number(text: str) -> float:
    """One number, as people write it."""
    return _told(quantities.number, text)


def seconds(text: str) -> float:
    """A duration, as people write it."""
    return _told(quantities.seconds, text)


def _told(read: Callable[[str], float], text: str) -> float:
    """Let argparse tell why a value is refused, after the option's name."""
    try:
        return read(text)
    except InvalidInput as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def numbers(text: str) -> list[float]:
    """Numbers separated by commas."""
    return [number(part) for part in text.split(",")]


def number_or_numbers(text: str) -> float | list[float]:
    """One number, or several separated by commas."""
    return numbers(text) if "," in text else number(text)


def count_or_names(text: str) -> int | list[str]:
    """How many, or what they are called."""
    return int(text) if text.isascii() and text.isdigit() else text.split(",")


def add_json(
    parser: argparse._ActionsContainer,
    says: str = "print one JSON object instead of a table, or write it to FILE beside the table",
) -> None:
    """`main` refuses a FILE that cannot be written before the command runs."""
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help=says)


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
        return
    write_whole(where, text)
