"""Who takes part: edges are added and revoked, and what they, the servers and the operators hold is renewed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from outvote.access.tokens import Token, make_token
from outvote.core.errors import InvalidConfiguration, one_of
from outvote.fleet.addresses import check_host
from outvote.fleet.brought import ExternalCertificate, read_brought
from outvote.fleet.certificates import CERTIFICATE_DAYS, new_certificate
from outvote.fleet.draft import OPERATOR_TOKEN, Draft, check_days
from outvote.fleet.folder import Fleet
from outvote.fleet.making import sign_all
from outvote.fleet.permissions import SERVER, check_edge_name, edge_permissions, server_permissions
from outvote.fleet.state import Issued, Member

EDGE_DAYS: Final = 365
APPLICATION: Final = "application"


@dataclass(frozen=True)
class Added:
    """A new edge; `token` is the secret of its application, which is shown once."""

    name: str
    kit: str
    expires: int
    token: str | None = field(repr=False)


def add_edges(
    fleet: Fleet,
    names: Sequence[str],
    *,
    days: float = EDGE_DAYS,
    https: str | None = None,
    brought: ExternalCertificate | None = None,
) -> list[Added]:
    """Kits for new edges: all of them, or none if one cannot be."""
    for name in names:
        check_edge_name(name)
    if len({name.lower() for name in names}) != len(names):
        raise InvalidConfiguration(f"must be named once each, got {', '.join(names)}", field="edges", code="duplicate")
    if https is not None and len(names) > 1:
        raise InvalidConfiguration("is the host of one edge: add such edges one by one", field="https", code="conflict")
    if https is None and brought is not None:
        raise InvalidConfiguration("needs --https HOST, too", field="certificate", code="conflict")
    with fleet.change() as draft:
        for name in names:
            _check_new(draft, name)
        return [_add(draft, name, days=days, https=https, brought=brought) for name in names]


def _check_new(draft: Draft, name: str) -> None:
    """Refuse also a name that differs by case only: folders of some systems do not tell them apart."""
    there = next((each for each in draft.state.edges if each.lower() == name.lower()), None)
    if there is None:
        return
    if draft.state.edges[there].revoked is None:
        raise InvalidConfiguration(
            f"{there!r} exists already: `outvote fleet renew {there}` gives it a new credential, `outvote fleet revoke "
            f"{there}` ends it",
            field="edge",
            code="duplicate",
        )
    if there != name:
        problem = f"{name!r} differs from the revoked edge {there!r} by case only: add {there!r} again"
        raise InvalidConfiguration(problem, field="edge", code="conflict")


def _add(draft: Draft, name: str, *, days: float, https: str | None, brought: ExternalCertificate | None) -> Added:
    member = Member(draft.issue(name, edge_permissions(name), days=days))
    secret = None
    if https is not None:
        host = check_host(https, "https")
        secret, token = make_token(APPLICATION, "application", days=days, now=draft.now)
        certificate = _edge_certificate(draft, host, days=CERTIFICATE_DAYS, brought=brought)
        member = msgspec.structs.replace(member, https=host, certificate=certificate, tokens=[token])
    _set(draft, name, member)
    return Added(name, f"edges/{name}", member.credential.expires, secret)


def _edge_certificate(draft: Draft, host: str, *, days: float, brought: ExternalCertificate | None) -> str:
    if brought is not None:
        signed = read_brought(brought, draft.read("ca.pem"), hosts=[host])
    else:
        signed = new_certificate(draft.authority(), [host], now=draft.now, days=days)
    return draft.keep_certificate(signed)


def revoke_edge(fleet: Fleet, name: str) -> bool:
    """Nothing that was ever issued to it counts any more, once engines are told; returns whether that is new."""
    with fleet.change() as draft:
        member = _member(draft, name)
        if member.revoked is not None:
            return False
        draft.revoke(member.all_credentials())
        _set(draft, name, msgspec.structs.replace(member, revoked=int(draft.now), older=[]))
        return True


def renew_edges(
    fleet: Fleet, names: Sequence[str] | None, *, days: float = EDGE_DAYS, revoke_old: bool = False
) -> list[str]:
    """New credentials in the same kits; None renews all edges. Old ones end by themselves, or at once."""
    with fleet.change() as draft:
        if names is None:
            names = [name for name, member in draft.state.edges.items() if member.revoked is None]
        for name in dict.fromkeys(names):
            if _member(draft, name).revoked is not None:
                problem = f"{name!r} is revoked: `outvote fleet add {name}` lets it in again"
                raise InvalidConfiguration(problem, field="edge", code="conflict")
            credential = draft.issue(name, edge_permissions(name), days=days)
            _renew(draft, name, credential, revoke_old=revoke_old)
        return list(dict.fromkeys(names))


def renew_server(fleet: Fleet, *, days: float = CERTIFICATE_DAYS, revoke_old: bool = False) -> None:
    """A new credential for the servers."""
    with fleet.change() as draft:
        credential = draft.issue(SERVER, server_permissions(), account="log", days=days)
        _renew(draft, None, credential, revoke_old=revoke_old)


def _renew(draft: Draft, name: str | None, credential: Issued, *, revoke_old: bool) -> None:
    member = _member(draft, name)
    old = draft.still_good(member.all_credentials())
    if revoke_old:
        draft.revoke(old)
        old = []
    _set(draft, name, msgspec.structs.replace(member, credential=credential, older=old))


def renew_certificates(
    fleet: Fleet, *, days: float = CERTIFICATE_DAYS, brought: ExternalCertificate | None = None
) -> list[str]:
    """New certificates of engines, servers and edges that listen for others; returns the kits that have changed."""
    with fleet.change() as draft:
        if brought is not None and not draft.state.brought:
            problem = "must be left out, and --key: this fleet signs its certificates itself"
            raise InvalidConfiguration(problem, field="certificate", code="conflict")
        sign_all(draft, brought=brought, days=check_days(days))
        changed = [*draft.state.engine_kits, "server"]
        if not draft.state.brought:
            for name, member in draft.state.edges.items():
                if member.https is not None and member.revoked is None:
                    certificate = _edge_certificate(draft, member.https, days=days, brought=None)
                    _set(draft, name, msgspec.structs.replace(member, certificate=certificate))
                    changed.append(f"edges/{name}")
        return changed


def renew_operator(fleet: Fleet, *, days: float = CERTIFICATE_DAYS, revoke_old: bool = False) -> None:
    """A new token in the operator's kit; its hash goes to the servers."""
    with fleet.change() as draft:
        others = [
            each
            for each in draft.state.servers.tokens
            if each.expires > draft.now and not (revoke_old and each.name == OPERATOR_TOKEN)
        ]
        _set_tokens(draft, None, [*others, draft.issue_operator_token(days=days)])


# ---- tokens of the APIs


def add_token(fleet: Fleet, name: str, role: str, *, days: float, edge: str | None = None) -> str:
    """A token of the servers' API, or of one edge's; its secret, which is shown once."""
    allowed = ("application",) if edge is not None else ("admin", "viewer")
    if role not in allowed:
        problem = f"must be {' or '.join(allowed)} for {'the server' if edge is None else 'an edge'}, got {role!r}"
        raise InvalidConfiguration(problem, field="role", code="choice")
    with fleet.change() as draft:
        tokens = _tokens(draft, edge)
        if any(each.name == name for each in tokens):
            problem = f"{name!r} exists already: remove it first, or give this one another name"
            raise InvalidConfiguration(problem, field="token", code="duplicate")
        secret, token = make_token(name, role, days=check_days(days), now=draft.now)  # type: ignore[arg-type]  # checked above
        _set_tokens(draft, edge, [*tokens, token])
        return secret


def remove_token(fleet: Fleet, name: str, *, edge: str | None = None) -> int:
    """Returns how many had the name: a renewed one and those before it share it."""
    with fleet.change() as draft:
        tokens = _tokens(draft, edge)
        left = [each for each in tokens if each.name != name]
        if len(left) == len(tokens):
            problem = f"{name!r} is unknown, there are {one_of(sorted({each.name for each in tokens})) or 'none'}"
            raise InvalidConfiguration(problem, field="token", code="unknown")
        _set_tokens(draft, edge, left)
        return len(tokens) - len(left)


def _tokens(draft: Draft, edge: str | None) -> list[Token]:
    member = _member(draft, edge)
    if member.certificate is None:
        problem = f"{edge!r} has an API for its own machine only, which asks for no token"
        raise InvalidConfiguration(problem, field="edge", code="conflict")
    return member.tokens


def _set_tokens(draft: Draft, edge: str | None, tokens: list[Token]) -> None:
    _set(draft, edge, msgspec.structs.replace(_member(draft, edge), tokens=tokens))


# ---- members by name; None is the servers


def _member(draft: Draft, name: str | None) -> Member:
    if name is None:
        return draft.state.servers
    member = draft.state.edges.get(check_edge_name(name))
    if member is None:
        problem = f"{name!r} is unknown, there are {one_of(sorted(draft.state.edges)) or 'none'}"
        raise InvalidConfiguration(problem, field="edge", code="unknown")
    return member


def _set(draft: Draft, name: str | None, member: Member) -> None:
    if name is None:
        draft.set(servers=member)
    else:
        draft.set(edges=draft.state.edges | {name: member})
