"""Logging in: a token is shown to the server once, and the browser keeps it for a while.

Whoever is here has been told why; where they are led afterwards is a page of this server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from outvote.access.tokens import TokenBook, Verdict
from outvote.web.refusals import NO_TOKEN, NOT_FOR_SERVERS, Refusal

WHY: Final[Mapping[str, str]] = {
    "missing": "This server tells what it knows only to who has a token.",
    "unknown": "The token that your browser kept is not known here any more: it was revoked, or is another server's.",
    "expired": "The token that your browser kept has expired.",
}
TROUBLE: Final[Mapping[str, str]] = {
    "missing": "Paste a token first.",
    "unknown": "This token is not known here: it was cut off when it was copied, was revoked, or is another server's.",
    "expired": "This token has expired. Ask for a new one: `outvote fleet token` makes them.",
    "role": "This token is for applications at an edge. Here an admin's or a viewer's is needed.",
}


def judge(tokens: TokenBook, token: str) -> tuple[Verdict, Refusal | None]:
    """What came of showing a token."""
    verdict = tokens.check(token.encode())
    if verdict.role is None:
        return verdict, NO_TOKEN[verdict.why]
    return verdict, NOT_FOR_SERVERS if verdict.role == "application" else None


def page(
    back: str, *, why: str = "missing", refusal: Refusal | None = None, other_site: bool = False
) -> dict[str, Any]:
    """What it says. When a link of another site led here, browsers keep the token to themselves: then one goes on."""
    return {
        "back": back,
        "why": WHY.get(why, WHY["missing"]),
        "trouble": None if refusal is None else TROUBLE[refusal.reason],
        "other_site": other_site,
    }
