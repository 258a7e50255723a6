"""`outvote`: finds the command, and turns errors into one line and an exit code (1 failed, 2 bad usage)."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from outvote import __version__
from outvote.cli import audit, demo, edge, fleet, paper, plan, server, simulate, task
from outvote.cli.options import check_writable
from outvote.core.errors import InvalidInput, OutvoteError

EXTRAS = {
    "sim": ("numpy", "scipy", "numba", "matplotlib"),
    "dask": ("distributed",),
    "dashboard": ("jinja2", "markupsafe"),
    "network": (
        "cryptography", "httptools", "msgspec", "nats", "nkeys", "prometheus_client", "starlette", "uvicorn", "uvloop",
    ),
}  # fmt: skip
"""Which extra of the package brings which modules; `rich` comes with two."""
SIMULATE = ("plan", "simulate", "paper")


class Parser(argparse.ArgumentParser):
    """A parser whose help is laid out as written, and whose errors are one line and say where to read on."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Let the error of a value say what is allowed, where argparse would only call the value invalid."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            if isinstance(error.__context__, InvalidInput):
                raise argparse.ArgumentError(action, str(error.__context__)) from None
            raise

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def make_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="outvote",
        description="Find the best variant across a fleet of edge sites without one user event leaving its site.",
        epilog="Each command explains itself: outvote simulate --help",
    )
    parser.add_argument("--version", action="version", version=f"outvote {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for command in (demo, plan, simulate, paper, server, edge, task, fleet, audit):
        command.add_to(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    args, unknown = make_parser().parse_known_args(argv)
    name = f"outvote {args.command}"
    if unknown:
        print(f"{name}: error: unknown option {unknown[0]!r} (see {name} --help)", file=sys.stderr)
        return 2
    try:
        if isinstance(getattr(args, "json", None), str):  # the name of a file, or '-'
            check_writable(args.json, "the JSON file")
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except OutvoteError as error:
        complain(args, "failed", f"error: {error}")
        return 2 if isinstance(error, InvalidInput) else 1
    except ModuleNotFoundError as error:
        extra = extra_for((error.name or "").partition(".")[0], args.command)
        if extra is None:
            raise
        print(f"{name}: error: needs {error.name}: pip install 'outvote[{extra}]'", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        complain(args, "interrupted", f"interrupted, {getattr(args, 'when_interrupted', 'nothing was written')}")
        return 130
    except BrokenPipeError:  # the reader of our output has gone: say no more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def extra_for(module: str, command: str) -> str | None:
    """The extra to install for a command that misses a module; None if none brings it."""
    if module == "rich":
        return "sim" if command in SIMULATE else "network"
    return next((extra for extra, modules in EXTRAS.items() if module in modules), None)


def complain(args: argparse.Namespace, event: str, text: str) -> None:
    """Last words on standard error: a line for people, or one of the log where programs read it."""
    if getattr(args, "log", "text") == "json":
        from outvote.observability import logs

        logs.last_words("info" if event == "interrupted" else "error", event, text)
    else:
        print(f"outvote {args.command}: {text}", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
