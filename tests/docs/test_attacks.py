"""The table of attacks in docs/security.md is of the attacks that the tests make."""

from __future__ import annotations

import ast
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_attack_is_in_the_table() -> None:
    made = {
        node.name
        for path in (ROOT / "tests" / "attacks").glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and "attack" in [each.arg for each in node.args.args]
    }
    kept = json.loads((ROOT / "docs" / "attacks.json").read_text(encoding="utf-8"))
    assert len(made) > 15
    assert {row["test"].partition("[")[0] for row in kept} == made, "run `make attacks`"
