"""Every command of `outvote` with its options, from its parser. Not argparse's own help: that differs by version."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from generators.tables import paragraphs, table
from outvote.cli.main import make_parser


def cli_reference() -> str:
    """One section for each command and each action of `outvote task`."""
    return "\n\n".join(part for parser in _commands(make_parser()) for part in _section(parser))


def _commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of its commands, in the order of its help."""
    yield parser
    for choices in _subparsers(parser):
        for command in choices.choices.values():
            yield from _commands(command)


def _subparsers(parser: argparse.ArgumentParser) -> list[argparse._SubParsersAction[argparse.ArgumentParser]]:
    return [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]


def _section(parser: argparse.ArgumentParser) -> Iterator[str]:
    depth = len(parser.prog.split())
    yield f"{'#' * min(depth + 1, 4)} {parser.prog}"
    if parser.description:
        yield paragraphs(parser.description)
    yield f"`{_usage(parser)}`"
    for choices in _subparsers(parser):
        rows = [
            (f"[`{each.dest}`](#{_anchor(parser.prog, each.dest)})", each.help or "")
            for each in choices._choices_actions
        ]
        yield table(["command" if depth == 1 else "action", "what it does"], rows)
    for group in parser._action_groups:
        rows = [(_names(action), _help(action, parser)) for action in group._group_actions if _is_told(action)]
        if rows:
            standard = group.title in ("positional arguments", "options", "optional arguments")
            yield table([f"{group.title}" if not standard else _heading(group), "meaning"], rows)
    if parser.epilog and parser.epilog.startswith("example"):
        lines = [line.strip() for line in parser.epilog.splitlines()[1:] if line.strip()]
        yield "\n".join(["```bash", *lines, "```"])


def _heading(group: argparse._ArgumentGroup) -> str:
    return "argument" if group.title == "positional arguments" else "option"


def _usage(parser: argparse.ArgumentParser) -> str:
    """What must be said, and that there are options."""
    words = [parser.prog]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            words += [str(action.metavar), "…"]
        elif action.required and action.option_strings:
            words.append(f"{action.option_strings[-1]} {_value(action)}")
        elif not action.option_strings:
            words.append(_value(action) if action.required else f"[{_value(action)}]")
    return " ".join([*words[:1], *(["[options]"] if not _subparsers(parser) else []), *words[1:]])


def _is_told(action: argparse.Action) -> bool:
    hidden = action.help == argparse.SUPPRESS
    return not hidden and not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)


def _names(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{_value(action)}`"
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    if action.nargs == 0:
        return names
    value = f"[{_value(action)}]" if action.nargs == "?" else _value(action)
    return f"{names} `{value}`"


def _value(action: argparse.Action) -> str:
    if action.metavar is not None:
        return str(action.metavar)
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper()


def _help(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    """With what argparse would put in, and names of options as code."""
    text = (action.help or "") % {**vars(action), "prog": parser.prog}
    text = "show the version and exit" if isinstance(action, argparse._VersionAction) else text
    return re.sub(r"(?<![\w`])(--[a-z][a-z-]*)", r"`\1`", text.replace("*", r"\*"))


def _anchor(*words: str) -> str:
    return "-".join(word.replace(" ", "-") for word in words)
