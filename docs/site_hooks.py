"""What `mkdocs build` does beyond its configuration: pages from outside docs/, and nothing from the internet.

The files in `PAGES` are pages of the site, too. Links are written for GitHub, from file to file; here those that cross
the border of docs/ are turned into links from page to page.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "tests/README.md": "testing.md",
    "SECURITY.md": "reporting.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}
"""Files outside docs/, and the pages that they are."""
LINK = re.compile(r"(\]\(|src=\")([^)#\"\s]+)")
OUTSIDE = re.compile(r"https://(?:unpkg\.com/|api\.github\.com/|\$\{e\}/api)")
"""What the theme's script would ask the internet for, if a page had a diagram or the site a repository."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    here = page.file.src_uri
    sources = {uri: source for source, uri in PAGES.items()}
    source = sources.get(here, f"docs/{here}")
    return LINK.sub(lambda found: found[1] + relink(found[2], source, here), markdown)


def relink(target: str, source: str, here: str) -> str:
    """Where a link of a file leads, seen from its page; what leads to no page stays as it is."""
    if "://" in target or target.startswith("mailto:"):
        return target
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if (ROOT / path / "README.md").is_file():  # what GitHub shows of a folder
        path += "/README.md"
    uri = PAGES.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
    return target if uri is None else posixpath.relpath(uri, posixpath.dirname(here) or ".")


def on_post_build(config: MkDocsConfig) -> None:
    """The theme loads some things from elsewhere when it needs them: this site never may. Nor need it know Thai."""
    shutil.rmtree(Path(config.site_dir) / "assets" / "javascripts" / "lunr")  # search in languages but English
    for path in Path(config.site_dir).rglob("*.js"):
        script = path.read_text(encoding="utf-8")
        if OUTSIDE.search(script):
            path.write_text(OUTSIDE.sub("about:blank#", script), encoding="utf-8")
