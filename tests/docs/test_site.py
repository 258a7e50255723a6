"""The site: it builds without a warning, so its links lead somewhere, and asks the internet for nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest

from docs.blocks import ROOT

OUTSIDE = re.compile(r"https?://[^\s\"'`)]*|url\([\"']?//[^)]*")
COMMENT = re.compile(r"/\*.*?\*/|(?:<|\\3c )!--.*?-->", re.DOTALL)
"""Who made it, and under which license; also in pictures that stand in a style sheet."""
WORDS = ("http://www.w3.org/", "https://bit.ly/2s3ChXG")
"""Nothing is loaded from there: names of languages, and what the search tells its developers to read."""


@dataclass
class Page(HTMLParser):
    """What a browser loads for a page."""

    path: Path
    assets: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "link":
            self.assets.append(given["href"])
        self.assets += [given[name] for name in ("src", "poster", "data") if given.get(name)]
        self.assets += [each.split()[0] for each in given.get("srcset", "").split(",") if each.strip()]
        self.assets += re.findall(r"url\(([^)]+)\)", given.get("style", ""))

    def __hash__(self) -> int:
        return hash(self.path)


@pytest.fixture(name="site", scope="module")
def build_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    told = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=120
    )
    assert told.returncode == 0, told.stderr
    assert not re.search(r"warn|error|deprecat", told.stderr, re.IGNORECASE), told.stderr
    return folder


@pytest.fixture(name="pages", scope="module")
def read_pages(site: Path) -> dict[str, Page]:
    return {str(path.relative_to(site)): Page(path) for path in sorted(site.rglob("*.html"))}


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        for asset in page.assets:
            assert not re.match(r"(https?:)?//", asset), f"{name}: {asset}"
    for path in [*site.rglob("*.css"), *site.rglob("*.js"), *site.rglob("*.svg")]:
        text = path.read_text(encoding="utf-8")
        if "/search/" in path.as_posix():  # the text of the pages: words, not code
            continue
        code = COMMENT.sub("", text)
        found = [each for each in OUTSIDE.findall(code) if not each.startswith(WORDS)]
        assert not found, f"{path.name}: {found}"


def test_scripts_in_pages_ask_for_nothing(pages: dict[str, Page]) -> None:
    for page in pages.values():
        for script in re.findall(r"<script[^>]*>(.*?)</script>", page.path.read_text(encoding="utf-8"), re.DOTALL):
            assert not re.search(r"https?://", script), page.path.name
