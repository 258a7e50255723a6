"""A protocol is one room: who is not in `core`, `simulation` or `theory` hardly ever asks which protocol it has.

Counted: comparisons and patterns with a protocol's name, `isinstance` and `type(…) is` with a class of one protocol,
and tables by protocol. Run as a program it lists them: python tests/package/test_protocol_branches.py [FOLDER]
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "outvote"
HOME = ("core", "simulation", "theory")
"""Where protocols live."""
NAMES = {"dme", "edme", "tally", "blocks"}
CLASSES = {"MedianPlayer", "VoteServer", "Vote", "TallyPlayer", "TallyServer", "Tally", "BlockPlayer", "BlockServer"}
MOST = 4


def branches(source: Path) -> list[str]:
    """Every place outside `HOME` that asks for the protocol, as file:line."""
    found = []
    for path in sorted(source.rglob("*.py")):
        if path.relative_to(source).parts[0] not in HOME:
            lines = {line for node in ast.walk(ast.parse(path.read_text())) for line in asks(node)}
            found += [f"{path.relative_to(source)}:{line}" for line in sorted(lines)]
    for path in sorted(source.rglob("*.html")):
        named = rf"""["']({"|".join(NAMES)})["']"""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(rf"[!=]= *{named}|in *[(\[][^)\]]*{named}|{named} *:", line):
                found.append(f"{path.relative_to(source)}:{number}")
    return found


def asks(node: ast.AST) -> Iterator[int]:
    """The line of a node that asks."""
    if isinstance(node, ast.Compare):
        is_type = any(isinstance(op, ast.Is | ast.IsNot | ast.Eq) for op in node.ops)
        if names_one(node) or (is_type and has_class(node)):
            yield node.lineno
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
        if has_class(node):
            yield node.lineno
    elif isinstance(node, ast.Dict):
        if any(isinstance(key, ast.Constant) and key.value in NAMES for key in node.keys):
            yield node.lineno
    elif isinstance(node, ast.match_case) and (names_one(node.pattern) or has_class(node.pattern)):
        yield node.pattern.lineno


def names_one(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Constant) and part.value in NAMES for part in ast.walk(node))


def has_class(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Name) and part.id in CLASSES for part in ast.walk(node))


def test_who_asks_for_the_protocol_is_counted_on_one_hand() -> None:
    found = branches(SOURCE)
    assert len(found) <= MOST, found


def test_every_way_to_ask_is_found(tmp_path: Path) -> None:
    lines = (
        'if task.protocol == "tally": ...', 'x = 1 if name in ("dme", "edme") else 2', "isinstance(server, VoteServer)",
        "type(message) is Tally", '{"tally": 1}', 'match name:\n    case "dme": ...',
    )  # fmt: skip
    for number, line in enumerate(lines):
        (tmp_path / f"{number}.py").write_text(line)
        (tmp_path / "core").mkdir(exist_ok=True)
        (tmp_path / "core" / f"{number}.py").write_text(line)
    (tmp_path / "page.html").write_text('{% if protocol == "tally" %}\n{{ {"dme": "votes"}[protocol] }}\n{{ tally }}')
    (tmp_path / "plain.py").write_text(
        'simulate(protocol="tally")\nfor name in ("dme", "edme"): ...\nx = "tally" + y\n'
    )
    assert len(branches(tmp_path)) == len(lines) + 2


if __name__ == "__main__":
    listed = branches(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
    print(*listed, f"{len(listed)} places", sep="\n")
