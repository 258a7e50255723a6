"""What there is in a fleet, and until when: for `outvote fleet list`. No secret is in it."""

from __future__ import annotations

from typing import Any

from outvote.fleet.certificates import expires
from outvote.fleet.draft import Draft
from outvote.fleet.folder import Fleet
from outvote.fleet.state import Member, lasts


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
            "certificates": _certificates(draft),
        }


def _member(name: str, member: Member, now: float) -> dict[str, Any]:
    return {
        "name": name,
        "key": member.credential.key,
        "issued": member.credential.issued,
        "expires": member.credential.expires,
        "revoked": member.revoked,
        "state": lasts(member.credential.expires, now) if member.revoked is None else "revoked",
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


def _certificates(draft: Draft) -> list[dict[str, Any]]:
    edges = [f"edges/{name}/https.pem" for name, each in draft.state.edges.items() if each.https is not None]
    files = ["ca.pem", *(f"{kit}/engine.pem" for kit in draft.state.engine_kits), "server/https.pem", *edges]
    ends = {name: expires(draft.read(name)) for name in files}
    return [{"file": name, "expires": at, "state": lasts(at, draft.now)} for name, at in ends.items()]
