"""Who takes part: edges are added and revoked, and what they, the servers and the operators hold is renewed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from outvote.core.errors import InvalidTask
from outvote.fleet import kit_files
from outvote.fleet.addresses import check_host
from outvote.fleet.brought import read_brought
from outvote.fleet.certificates import CERTIFICATE_DAYS, Signed, new_certificate
from outvote.fleet.folder import Draft, Fleet
from outvote.fleet.making import OPERATOR_TOKEN, Brought, sign_all
from outvote.fleet.permissions import SERVER, check_edge_name, edge_permissions, server_permissions
from outvote.fleet.state import Issued, Member
from outvote.network.tokens import Token, make_token, read_tokens, tokens_file

EDGE_DAYS: Final = 365
APPLICATION: Final = "application"


@dataclass(frozen=True)
class Added:
    """A new edge; `token` is the secret of its application, which is shown once."""

    name: str
    kit: str
    expires: int
    token: str | None

    def __repr__(self) -> str:
        return f"Added({self.name!r})"


def add_edges(
    fleet: Fleet,
    names: Sequence[str],
    *,
    days: float = EDGE_DAYS,
    https: str | None = None,
    brought: Brought | None = None,
) -> list[Added]:
    """Kits for new edges: all of them, or none if one cannot be."""
    for name in names:
        check_edge_name(name)
    if len(set(names)) != len(names):
        raise InvalidTask(f"each edge is added once, got {', '.join(names)}")
    if https is not None and len(names) > 1:
        raise InvalidTask("--https is the host of one edge: add those that listen for others one by one")
    if https is None and brought is not None:
        raise InvalidTask("a certificate is for an edge that listens for others: give --https HOST, too")
    with fleet.change() as draft:
        for name in names:
            there = _same_name(draft, name)
            if there is not None and draft.state.edges[there].revoked is None:
                raise InvalidTask(
                    f"the edge {there!r} is there already: `outvote fleet renew {there}` gives it a new credential, "
                    f"`outvote fleet revoke {there}` ends it"
                )
        return [_add(draft, name, days=days, https=https, brought=brought) for name in names]


def _same_name(draft: Draft, name: str) -> str | None:
    """Also one that differs by case only: folders of some systems do not tell them apart."""
    return next((each for each in draft.state.edges if each.lower() == name.lower()), None)


def _add(draft: Draft, name: str, *, days: float, https: str | None, brought: Brought | None) -> Added:
    was = _same_name(draft, name)
    edges = dict(draft.state.edges)
    if was is not None:
        del edges[was]
        draft.files |= dict.fromkeys(_there(draft, f"edges/{was}"))
    credential, secret = draft.issue(name, edge_permissions(name), days=days)
    host = None if https is None else check_host(https)
    edges[name] = Member(credential, https=host)
    draft.set(edges=edges)
    draft.files |= kit_files.edge_kit(draft, name, secret)
    token = None
    if host is not None:
        token, kept = make_token(APPLICATION, "application", days=days, now=draft.now)
        certificate = _edge_certificate(draft, host, days=CERTIFICATE_DAYS, brought=brought)
        draft.files |= kit_files.https(f"edges/{name}", certificate)
        draft.files[f"edges/{name}/tokens.json"] = tokens_file([kept])
    return Added(name, f"edges/{name}", credential.expires, token)


def _there(draft: Draft, kit: str) -> list[str]:
    folder = draft.folder / kit
    return [f"{kit}/{each.name}" for each in folder.iterdir()] if folder.is_dir() else []


def _edge_certificate(draft: Draft, host: str, *, days: float, brought: Brought | None) -> Signed:
    if brought is not None:
        return read_brought(
            brought.certificate, brought.key, draft.read("ca.pem"), hosts=[host], now=draft.now, client=False
        )
    return new_certificate(draft.authority(), [host], now=draft.now, days=days)


def revoke_edge(fleet: Fleet, name: str) -> bool:
    """Nothing that was ever issued to it counts any more, once engines are told; returns whether that is new."""
    with fleet.change() as draft:
        member = _edge(draft, name)
        if member.revoked is not None:
            return False
        draft.revoke(member.all_credentials())
        _set_edge(draft, name, msgspec.structs.replace(member, revoked=int(draft.now), older=[]))
        return True


def renew_edges(
    fleet: Fleet, names: Sequence[str] | None, *, days: float = EDGE_DAYS, revoke_old: bool = False
) -> list[str]:
    """New credentials in the same kits; None renews all edges. Old ones end by themselves, or at once."""
    with fleet.change() as draft:
        if names is None:
            names = [name for name, member in draft.state.edges.items() if member.revoked is None]
        for name in dict.fromkeys(names):
            member = _edge(draft, name)
            if member.revoked is not None:
                raise InvalidTask(f"the edge {name!r} is revoked: `outvote fleet add {name}` lets it in again")
            credential, secret = draft.issue(name, edge_permissions(name), days=days)
            _set_edge(draft, name, _renewed(draft, member, credential, revoke_old=revoke_old))
            draft.files[f"edges/{name}/edge.creds"] = secret
        return list(dict.fromkeys(names))


def renew_server(fleet: Fleet, *, days: float = CERTIFICATE_DAYS, revoke_old: bool = False) -> None:
    """A new credential for the servers."""
    with fleet.change() as draft:
        credential, secret = draft.issue(SERVER, server_permissions(), account="log", days=days)
        draft.set(servers=_renewed(draft, draft.state.servers, credential, revoke_old=revoke_old))
        draft.files["server/server.creds"] = secret


def _renewed(draft: Draft, member: Member, credential: Issued, *, revoke_old: bool) -> Member:
    old = draft.still_good(member.all_credentials())
    if revoke_old:
        draft.revoke(old)
        old = []
    return msgspec.structs.replace(member, credential=credential, older=old)


def renew_certificates(fleet: Fleet, *, days: float = CERTIFICATE_DAYS, brought: Brought | None = None) -> list[str]:
    """New certificates of engines, servers and edges that listen for others; returns the kits that have changed."""
    with fleet.change() as draft:
        if brought is not None and not draft.state.brought:
            raise InvalidTask("this fleet signs its certificates itself: leave out --certificate and --key")
        if brought is None:
            draft.authority()  # refuses where the user brings them
        engines, server = sign_all(draft, brought=brought, days=days)
        for kit, certificate in engines.items():
            draft.files |= {f"{kit}/engine.pem": certificate.chain, f"{kit}/engine.key": certificate.key}
        draft.files |= kit_files.https("server", server)
        changed = [*draft.state.engine_kits, "server"]
        if not draft.state.brought:
            for name, member in draft.state.edges.items():
                if member.https is not None and member.revoked is None:
                    certificate = _edge_certificate(draft, member.https, days=days, brought=None)
                    draft.files |= kit_files.https(f"edges/{name}", certificate)
                    changed.append(f"edges/{name}")
        return changed


def renew_operator(fleet: Fleet, *, days: float = CERTIFICATE_DAYS, revoke_old: bool = False) -> None:
    """A new token in the operator's kit; its hash goes to the servers."""
    with fleet.change() as draft:
        secret, kept = make_token(OPERATOR_TOKEN, "admin", days=days, now=draft.now)
        others = [
            each
            for each in read_tokens(draft.folder / "server/tokens.json")
            if each.expires > draft.now and not (revoke_old and each.name == OPERATOR_TOKEN)
        ]
        draft.files["server/tokens.json"] = tokens_file([*others, kept])
        draft.files["operator/token"] = secret.encode("ascii") + b"\n"


# ---- tokens of the APIs


def add_token(fleet: Fleet, name: str, role: str, *, days: float, edge: str | None = None) -> str:
    """A token of the servers' API, or of one edge's; its secret, which is shown once."""
    allowed = ("application",) if edge is not None else ("admin", "viewer")
    if role not in allowed:
        raise InvalidTask(
            f"a token of {'an edge' if edge is not None else 'the server'} has the role {' or '.join(allowed)}, got "
            f"{role!r}"
        )
    with fleet.change() as draft:
        where, found = _tokens(draft, edge)
        if any(each.name == name for each in found):
            raise InvalidTask(f"there is a token {name!r} already: remove it first, or give this one another name")
        secret, kept = make_token(name, role, days=days, now=draft.now)  # type: ignore[arg-type]  # checked above
        draft.files[where] = tokens_file([*found, kept])
        return secret


def remove_token(fleet: Fleet, name: str, *, edge: str | None = None) -> int:
    """Returns how many had the name: a renewed one and those before it share it."""
    with fleet.change() as draft:
        where, found = _tokens(draft, edge)
        left = [each for each in found if each.name != name]
        if len(left) == len(found):
            raise InvalidTask(
                f"unknown token: got {name!r}, there are {sorted({each.name for each in found}) or 'none'}"
            )
        draft.files[where] = tokens_file(left)
        return len(found) - len(left)


def list_tokens(fleet: Fleet, *, edge: str | None = None) -> list[Token]:
    with fleet.change() as draft:
        return _tokens(draft, edge)[1]


def _tokens(draft: Draft, edge: str | None) -> tuple[str, list[Token]]:
    if edge is None:
        where = "server/tokens.json"
    else:
        if _edge(draft, edge).https is None:
            raise InvalidTask(f"the API of {edge!r} listens on its own machine only, and asks for no token")
        where = f"edges/{edge}/tokens.json"
    return where, read_tokens(draft.folder / where)


def _edge(draft: Draft, name: str) -> Member:
    member = draft.state.edges.get(check_edge_name(name))
    if member is None:
        raise InvalidTask(f"unknown edge: got {name!r}, there are {sorted(draft.state.edges) or 'none'}")
    return member


def _set_edge(draft: Draft, name: str, member: Member) -> None:
    draft.set(edges=draft.state.edges | {name: member})
