"""The code blocks of all documents, and the anchors of their headings, as GitHub sees them."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        *ROOT.glob("tests/*.md"),
        *ROOT.glob("deploy/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
    ]
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ANY_FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One code block."""

    path: Path
    number: int
    language: str
    text: str
    after: str | None
    """The text of a plain block that follows at once: what it prints."""

    @property
    def document(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def name(self) -> str:
        return f"{self.document}-{self.number}-{self.language or 'plain'}"

    @property
    def lines(self) -> list[str]:
        """Commands, one on each line, without comments of their own and with what was broken put together."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line for line in lines if line.strip() and not line.startswith("#")]


def blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    made = []
    for number, (here, following) in enumerate(itertools.zip_longest(found, found[1:]), 1):
        at_once = following is not None and not text[here.end() : following.start()].strip()
        printed = following[2] if at_once and not following[1] else None
        made.append(Block(path, number, here[1], here[2], printed))
    return made


BLOCKS = [block for path in DOCUMENTS for block in blocks(path)]


def anchors(path: Path) -> set[str]:
    """Of the headings of a document; a second one of the same words is numbered."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    seen: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def links(path: Path) -> list[tuple[str, str]]:
    """File and anchor of each link that stays in the repository, those of pictures included."""
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text(encoding="utf-8")))
    targets = re.findall(r"\]\(\s*([^)\s]+)\)", text) + re.findall(r"(?:src|href)=\"([^\"]+)\"", text)
    return [(file, anchor) for file, _, anchor in (each.partition("#") for each in targets if "://" not in each)]
