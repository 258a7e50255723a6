"""What there is in a fleet, and until when: for `outvote fleet list`. No secret is in it."""

from __future__ import annotations

from typing import Any

from outvote.fleet.certificates import expires
from outvote.fleet.draft import Draft
from outvote.fleet.folder import Fleet
from outvote.fleet.state import Member, lasts, standing


def overview(fleet: Fleet) -> dict[str, Any]:
    with fleet.change() as draft:  # which changes nothing: it only keeps others from changing it meanwhile
        state, now = draft.state, draft.now
        return {
            "name": state.name,
            "folder": str(fleet.folder.absolute()),
            "engines": state.nats,
            "server": f"https://{state.server_address}",
            "told": state.told >= state.claimed,
            "edges": [_member(name, member, now) for name, member in sorted(state.edges.items())],
            "servers": _member("server", state.servers, now),
            "tokens": _all_tokens(draft),
            "certificates": [_certificate(draft, each) for each in _certificates(draft)],
        }


def _member(name: str, member: Member, now: float) -> dict[str, Any]:
    return {
        "name": name,
        "key": member.credential.key,
        "issued": member.credential.issued,
        "expires": member.credential.expires,
        "revoked": member.revoked,
        "state": standing(member, now),
        "older": len([each for each in member.older if each.expires > now]),
        "https": member.https,
    }


def _all_tokens(draft: Draft) -> list[dict[str, Any]]:
    members = {"server": draft.state.servers} | draft.state.edges
    return [
        {
            "of": of,
            "name": token.name,
            "role": token.role,
            "issued": token.issued,
            "expires": token.expires,
            "state": lasts(token.expires, draft.now),
        }
        for of, member in members.items()
        for token in member.tokens
    ]


def _certificates(draft: Draft) -> list[str]:
    edges = [f"edges/{name}/https.pem" for name, each in draft.state.edges.items() if each.https is not None]
    return ["ca.pem", *(f"{kit}/engine.pem" for kit in draft.state.engine_kits), "server/https.pem", *edges]


def _certificate(draft: Draft, name: str) -> dict[str, Any]:
    ends = expires(draft.read(name))
    return {"file": name, "expires": ends, "state": lasts(ends, draft.now)}
