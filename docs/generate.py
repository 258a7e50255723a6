"""Writes the generated parts of the documents anew (`make docs`); a test fails when they are out of date.

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`, and its text comes from the code: the
package `generators` beside this file makes it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [each for each in (str(DOCS), str(DOCS.parent)) if each not in sys.path]

from generators import (  # noqa: E402
    attacks,
    cli_reference,
    examples,
    faults,
    http_reference,
    measurements,
    privacy_schemas,
    protocol_facts,
    python_reference,
)
from generators.included_code import included  # noqa: E402

PART = re.compile(r"<!-- generated: (?P<name>[a-z-]+) -->\n.*?<!-- end -->", re.DOTALL)
PARTS: dict[str, Callable[[], str]] = {
    **measurements.measured_tables(),
    **faults.tables(),
    **included(),
    "attacks": attacks.attacks,
    "arm-states": protocol_facts.arm_states,
    "claims": measurements.claims,
    "cli-reference": cli_reference.cli_reference,
    "demo-output": examples.demo_output,
    "http-edge": http_reference.edge_reference,
    "http-problems": http_reference.problem_types,
    "http-server": http_reference.server_reference,
    "plan-example": examples.plan_example,
    "privacy-schemas": privacy_schemas.privacy_schemas,
    "protocol-names": protocol_facts.protocol_names,
    "pulls-per-player": protocol_facts.pulls_per_player,
    "python-reference": python_reference.python_reference,
    "simulate-example": examples.simulate_example,
}


def documents() -> list[Path]:
    return [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]


def regenerate(text: str) -> str:
    """The document with its generated parts written anew."""
    return PART.sub(lambda part: f"<!-- generated: {part['name']} -->\n{PARTS[part['name']]()}\n<!-- end -->", text)


def write() -> int:
    for path in documents():
        old = path.read_text(encoding="utf-8")
        new = regenerate(old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(f"updated {path.relative_to(DOCS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(write())
