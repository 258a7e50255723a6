"""Pages as a test reads them: elements, what is wrong with them, and where they lead. Without a browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlsplit

VOID = frozenset({"meta", "link", "img", "input", "br", "hr"})
CONTROLS = frozenset({"input", "select", "textarea"})
LEADING = ("href", "src", "action", "formaction", "data-source", "poster", "srcset", "xlink:href")


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    above: Element | None
    words: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """With that of all elements in it."""
        return " ".join(" ".join(self.words).split())

    def ancestors(self) -> Iterator[Element]:
        above = self.above
        while above is not None:
            yield above
            above = above.above


class Page(HTMLParser):
    """One page; to read it is to check that every element that is opened is closed in its place."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open[-1].tag}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        twice = [name for name, times in Counter(name for name, _ in attrs).items() if times > 1]
        assert not twice, f"{tag} has {twice} twice"
        above = self._open[-1] if self._open else None
        made = Element(tag, {name: value or "" for name, value in attrs}, above)
        self.elements.append(made)
        if tag not in VOID:
            self._open.append(made)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"closed and never opened: {tag}"
        assert self._open[-1].tag == tag, f"{tag} is closed in {self._open[-1].tag}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for each in self._open:
            each.words.append(data)

    # ---- what a test asks for

    def all(self, tag: str, **attributes: str) -> list[Element]:
        return [
            each
            for each in self.elements
            if each.tag == tag and all(each.attributes.get(name) == value for name, value in attributes.items())
        ]

    def one(self, tag: str, **attributes: str) -> Element:
        (found,) = self.all(tag, **attributes)
        return found

    @property
    def text(self) -> str:
        return self.one("body").text

    @property
    def leads(self) -> list[str]:
        """Every address in it, as it is written."""
        return [each.attributes[name] for each in self.elements for name in LEADING if name in each.attributes]

    @property
    def links(self) -> set[str]:
        """Where a click leads to, or what is loaded: all that can be asked for with GET."""
        got = {each.attributes[name] for each in self.elements for name in ("href", "src") if name in each.attributes}
        return {link for link in got if not link.startswith("#")}

    @property
    def rows(self) -> list[list[str]]:
        """The cells of the table's body, if there is one table."""
        body = self.one("tbody")
        return [
            [cell.text for cell in self.elements if cell.above is row and cell.tag in ("td", "th")]
            for row in self.all("tr")
            if row.above is body
        ]

    def value(self, name: str) -> str:
        """What a field of a form holds."""
        (found,) = [each for each in self.elements if each.tag in CONTROLS and each.attributes.get("name") == name]
        if found.tag == "select":
            chosen = [each for each in self.all("option") if each.above is found and "selected" in each.attributes]
            return chosen[0].attributes.get("value", chosen[0].text) if chosen else ""
        return "".join(found.words) if found.tag == "textarea" else found.attributes.get("value", "")


def faults(page: Page) -> list[str]:
    """What would trouble somebody who cannot see the page, or leads nowhere on it."""
    found = []
    ids = Counter(each.attributes["id"] for each in page.elements if "id" in each.attributes)
    found += [f"id {name} is there {times} times" for name, times in ids.items() if times > 1]
    if len(page.all("h1")) != 1:
        found.append(f"{len(page.all('h1'))} elements h1")
    for each in page.elements:
        named = each.attributes.get("aria-labelledby", "").split()
        href = each.attributes.get("href", "")
        wanted = [*named, *([href[1:]] if href.startswith("#") else []), *each.attributes.get("for", "").split()]
        found += [f"{each.tag} leads to {name}, which is not there" for name in wanted if name not in ids]
        if each.tag in CONTROLS and not _labelled(page, each):
            found.append(f"{each.tag} {each.attributes} has no label")
        if each.tag in ("button", "a") and not (each.text or each.attributes.get("aria-label")):
            found.append(f"{each.tag} {each.attributes} says nothing")
        if each.tag == "img" and "alt" not in each.attributes:
            found.append(f"img {each.attributes} has no text instead")
    if page.one("html").attributes.get("lang") != "en" or not page.one("title").text:
        found.append("no language or title")
    return found


def _labelled(page: Page, control: Element) -> bool:
    around = [each for each in control.ancestors() if each.tag == "label"]
    pointing = page.all("label", **{"for": control.attributes["id"]}) if "id" in control.attributes else []
    return any(each.text for each in (*around, *pointing)) or bool(control.attributes.get("aria-label"))


def outside(page: Page) -> list[str]:
    """Addresses that are not this server's own: a page must work where there is no other."""
    return [
        link for link in page.leads if urlsplit(link).scheme or urlsplit(link).netloc or not link.startswith(("/", "#"))
    ]
