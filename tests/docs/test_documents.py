"""Documents cannot drift: generated parts are fresh, and links lead somewhere, to headings as well as to files."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from docs.blocks import DOCS, DOCUMENTS, ROOT, anchors, links


@pytest.fixture(name="generate", scope="module")
def load_generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_parts_are_up_to_date(generate: ModuleType) -> None:
    found = set()
    for path in generate.documents():
        text = path.read_text(encoding="utf-8")
        found |= set(generate.PART.findall(text))
        assert generate.regenerate(text) == text, f"{path.name} is out of date: run python docs/generate.py"
    assert found == set(generate.PARTS)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for file, anchor in links(path):
        target = path.parent / file if file else path
        assert target.exists(), file
        if anchor:
            assert anchor in anchors(target), f"{file}#{anchor}"
