"""`outvote task`: create, look at, follow, stop and delete the tasks of a server. What people see is in `task_show`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from outvote.cli import asking
from outvote.cli.asking import as_json, ask
from outvote.cli.options import add_action, add_json, tell, write_result
from outvote.cli.serving import Failed
from outvote.core.errors import InvalidConfiguration, InvalidTask, OutvoteError
from outvote.presenters import task_fields
from outvote.presenters.formats import plural
from outvote.quantities import number

EXAMPLE = """\
examples:
  outvote task create --name banner --variants red,green,blue --sites 12 --reward-window 30m
  outvote task create --file banner.toml
  outvote task watch banner
  outvote task sites
  outvote task --kit outvote-fleet/operator list --json
"""
STATES = """\
alive    it gave a sign of life lately: sites ask every half minute what is new
awaited  this server has not heard it yet, and has not listened long enough to tell
silent   it was there, and gives no sign any more
missing  a task names it as a site, and it never came
"""
EVERY = 1.0
"""Seconds between two looks at a task that is watched."""


def has_ended(found: Mapping[str, Any]) -> bool:
    """Whether there is nothing left to wait for."""
    return found["winner"] is not None or found["status"] in ("finished", "stopped")


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "task",
        help="create, look at, follow, stop and delete tasks",
        description="Create, look at, follow, stop and delete the tasks of a running server. Each action explains "
        "itself, and has --json: outvote task create --help",
        epilog=EXAMPLE,
    )
    asking.add_options(parser)
    parser.set_defaults(when_interrupted="the task goes on")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=type(parser))

    action = _add(
        actions,
        "create",
        "describe a new task; sites begin at once",
        "create --name banner --variants red,green,blue --sites 12 --reward-window 30m",
        create,
    )
    action.add_argument("--file", metavar="TASK.toml", help="read the fields from a file; options come on top")
    for field in task_fields.FIELDS:
        allowed = ": " + ", ".join(field.kind.schema["enum"]) if "enum" in field.kind.schema else ""
        default = "" if field.default in (None, (), "task") else f" ({field.default})"
        flag, shown = f"--{field.name.replace('_', '-')}", (field.name.rpartition("_")[2]).upper()
        action.add_argument(flag, dest=field.name, metavar=shown, help=field.help + allowed + default)
    _add_expectation(action)

    _add(actions, "list", "all tasks of the server", "list", partial(look, "tasks"))
    said = "all sites of the fleet, and which are alive"
    _add(actions, "sites", said, "sites", partial(look, "sites"), more=STATES)
    action = _add(
        actions,
        "expect",
        "say what you expect of a task, in place of what was said before",
        "expect banner --traffic 50000 --baseline .1 --difference .02",
        expect,
        more="What is left out is not expected any more.",
    )
    action.add_argument("task", metavar="TASK", help="its name or id")
    _add_expectation(action)
    for name, summary, run in (
        ("show", "one task: its variants, messages, bits and sites", partial(look, "task")),
        (
            "stop",
            "learn and decide no more; sites serve the fallback",
            partial(switch, "stop", "stopped", "nothing more is learnt"),
        ),
        (
            "kill",
            "the kill switch: sites serve the fallback at once, until the task is revived",
            partial(switch, "kill", "killed", "sites serve its fallback"),
        ),
        (
            "revive",
            "the kill switch back: the task goes on where it was",
            partial(switch, "revive", "revived", "it goes on where it was"),
        ),
        ("delete", "forget a task; its name is free again", delete),
    ):
        action = _add(actions, name, summary, f"{name} banner", run)
        action.add_argument("task", metavar="TASK", help="its name or id")
        if name == "delete":
            action.add_argument("--yes", action="store_true", help="do not ask first")
    for action in actions.choices.values():
        add_json(action)
    action = _add(actions, "watch", "follow a task until it has ended", "watch banner", watch)
    action.add_argument("task", metavar="TASK", help="its name or id")
    action.add_argument("--json", action="store_true", help="print one JSON object, on a line, for every change")


def _add(
    actions: argparse._SubParsersAction[Any], name: str, summary: str, example: str, run: Any, *, more: str = ""
) -> argparse.ArgumentParser:
    parser = add_action(actions, "task", name, summary, example, more=more)
    asking.add_options(parser, default=argparse.SUPPRESS)
    parser.set_defaults(run=run)
    return parser


def _add_expectation(parser: argparse.ArgumentParser) -> None:
    told = parser.add_argument_group("what you expect, for forecasts; no decision depends on it")
    told.add_argument("--traffic", type=number, metavar="EVENTS_PER_DAY", help="events in the whole fleet")
    told.add_argument(
        "--baseline", type=number, metavar="MEAN", help="mean reward of all variants but the best: 0 to 1"
    )
    told.add_argument("--difference", type=number, metavar="MEAN", help="how much better the best variant is")


# ---- actions

EXPECTED = ("traffic", "baseline", "difference")


def create(args: argparse.Namespace) -> int:
    fields = {} if args.file is None else read_file(args.file)
    for field in task_fields.FIELDS:
        text = getattr(args, field.name)
        if text is not None:
            fields[field.name] = task_fields.read(field, text)
    if "name" not in fields:
        raise InvalidTask("must be given: letters, digits, _ and -", field="name", code="missing")
    said = _expectation(args)
    made = ask(args, "POST", "/v1/tasks", fields)
    if said:
        made["expectation"] = _expect_of_new(args, made, said)
    follow = f"outvote task watch {made['name']}{asking.as_given(args)}"
    tell(args, made, f"created {made['name']} ({made['id']}); follow it with: {follow}")
    return 0


def _expectation(args: argparse.Namespace) -> dict[str, float]:
    """What was said of it, checked before anything is asked: a task must not be there without it."""
    said = {name: getattr(args, name) for name in EXPECTED if getattr(args, name) is not None}
    if said:
        from outvote.log.expectation import read_expectation

        read_expectation(as_json(said))
    return said


def _expect_of_new(args: argparse.Namespace, made: dict[str, Any], said: dict[str, float]) -> dict[str, Any]:
    try:
        return ask(args, "PUT", _path(made["id"]) + "/expectation", said, holds="traffic")
    except OutvoteError as error:
        words = "".join(f" --{name} {value}" for name, value in said.items())
        raise Failed(
            f"{made['name']} ({made['id']}) was created, but not what is expected of it: {error}. Say it again with: "
            f"outvote task expect {made['name']}{words}{asking.as_given(args)}"
        ) from None


def look(what: str, args: argparse.Namespace) -> int:
    """Show the tasks, one task, or the sites."""
    holds = {"tasks": "unreadable", "task": "bits", "sites": "counts"}[what]
    found = ask(args, "GET", _path(args.task) if what == "task" else f"/v1/{what}", holds=holds)
    if write_result(args, found):
        from outvote.cli import tables, task_show

        show = {"tasks": task_show.tasks, "task": task_show.task, "sites": task_show.sites}[what]
        tables.console().print(show(found))
    return 0


def expect(args: argparse.Namespace) -> int:
    said = _expectation(args)
    if not said:
        raise InvalidConfiguration("nothing is expected: give --traffic, --baseline or --difference", code="missing")
    from outvote.cli import task_show

    taken = ask(args, "PUT", _path(args.task) + "/expectation", said, holds="traffic")
    tell(args, taken, f"expected of {args.task} from now on: {task_show.expected(taken)}")
    return 0


def switch(verb: str, done: str, so: str, args: argparse.Namespace) -> int:
    """Stop a task, or use its kill switch, one way or the other."""
    switched = ask(args, "POST", f"{_path(args.task)}/{verb}")
    tell(args, switched, f"{done} {switched['name']} ({switched['id']}): {so}")
    return 0


def delete(args: argparse.Namespace) -> int:
    if not args.yes:
        _confirm(f"delete {args.task} and all that it learnt?")
    ask(args, "DELETE", _path(args.task))
    tell(args, {"deleted": args.task}, f"deleted {args.task}")
    return 0


def watch(args: argparse.Namespace) -> int:
    last = None
    with _screen(args.json) as draw:
        while True:
            found = ask(args, "GET", _path(args.task), holds="bits")
            if found != last:
                draw(found)
                last = found
            if has_ended(found):
                return 0
            args.task = found["id"]  # the name may be given to another
            time.sleep(EVERY)


def read_file(path: str) -> dict[str, Any]:
    """The fields of a task in TOML."""
    import tomllib

    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidConfiguration(f"{path!r} cannot be read: {error.strerror}", field="file") from None
    except ValueError as error:
        raise InvalidConfiguration(f"{path!r} must be TOML: {error}", field="file") from None


def _path(task: str) -> str:
    from urllib.parse import quote

    if not task.strip("."):
        raise InvalidConfiguration(f"must be a name or an id, got {task!r}", field="task")
    return f"/v1/tasks/{quote(task, safe='')}"


# ---- for people


def _confirm(question: str) -> None:
    """Ask the person at the terminal; nobody there, or no yes, is a refusal."""
    if not sys.stdin.isatty():
        raise InvalidConfiguration("nobody can be asked here: give --yes to delete it", code="missing")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failed("nothing was deleted")


def _in_words(found: dict[str, Any]) -> str:
    """A watched task in one line."""
    left, messages = found["remaining"], found["messages"]
    status = found["status"] + (", killed" if found["killed"] else "")
    return (
        f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S %Z}  {status}, {plural(len(left), 'variant')} left: "
        f"{', '.join(left)}; {plural(messages['up'] + messages['down'], 'message')}, "
        f"{plural(found['bits']['total'], 'bit')}"
    )


@contextmanager
def _screen(as_json: bool) -> Iterator[Any]:
    """Where a watched task is drawn: anew in place at a terminal, line by line elsewhere."""
    if as_json or not sys.stdout.isatty():
        yield lambda found: print(json.dumps(found, ensure_ascii=False) if as_json else _in_words(found), flush=True)
        return
    from rich.live import Live

    from outvote.cli import tables, task_show

    with Live(console=tables.console(), auto_refresh=False) as live:
        yield lambda found: live.update(task_show.picture(found), refresh=True)
