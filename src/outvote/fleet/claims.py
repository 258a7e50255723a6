"""What NATS believes: who is the operator, which accounts there are, and what each user may do; each signed.

Pure: time is an argument. Claims are JSON Web Tokens of the NATS project's second version.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from outvote.fleet.keys import Key
from outvote.fleet.permissions import Permissions, Shared

VERSION: Final = 2
NO_LIMIT: Final = -1
_HEADER: Final = b'{"typ":"JWT","alg":"ed25519-nkey"}'


def operator_claims(operator: Key, *, name: str, system_account: str, now: float) -> str:
    """What an engine trusts: whom this key signs."""
    said = {"type": "operator", "version": VERSION, "system_account": system_account}
    return _signed(operator, operator.public, name, said, now=now)


def account_claims(
    operator: Key,
    account: str,
    *,
    name: str,
    now: float,
    log: bool = False,
    disk: int | None = None,
    offers: Sequence[Shared] = (),
    takes: Sequence[Shared] = (),
    of: str = "",
    revoked: Mapping[str, int] | None = None,
) -> str:
    """An account; with `log` it has JetStream, with at most `disk` bytes. It offers subjects to other accounts, and
    takes some of the account `of`. `revoked` says of users from when on what was issued to them before counts no more.
    No other engine may join as a leaf."""
    limits: dict[str, Any] = {
        "subs": NO_LIMIT,
        "data": NO_LIMIT,
        "payload": NO_LIMIT,
        "imports": len(takes),
        "exports": len(offers),
        "wildcards": True,
        "conn": NO_LIMIT,
        "leaf": 0,
    }
    if log:
        limits |= {
            "mem_storage": NO_LIMIT,
            "disk_storage": NO_LIMIT if disk is None else disk,
            "streams": 1,
            "consumer": NO_LIMIT,
        }
    said: dict[str, Any] = {"type": "account", "version": VERSION, "limits": limits}
    if offers:
        said["exports"] = [{"name": each.name, "subject": each.subject, "type": each.kind} for each in offers]
    if takes:
        said["imports"] = [
            {"name": each.name, "subject": each.subject, "type": each.kind, "account": of} for each in takes
        ]
    if revoked:
        said["revocations"] = dict(sorted(revoked.items()))
    return _signed(operator, account, name, said, now=now)


def user_claims(account: Key, user: str, *, name: str, may: Permissions, now: float, expires: float | None) -> str:
    """What one user of an account may do, and until when."""
    said = {
        "type": "user",
        "version": VERSION,
        "pub": {"allow": list(may.publish)},
        "sub": {"allow": list(may.subscribe)},
        "subs": may.subscriptions,
        "data": NO_LIMIT,
        "payload": may.payload,
        "allowed_connection_types": ["STANDARD", "WEBSOCKET"],  # not as another engine's leaf, nor as a broker's client
    }
    return _signed(account, user, name, said, now=now, expires=expires)


def creds(claims: str, user: Key) -> str:
    """A user's credential as clients of NATS read it."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{claims}\n------END NATS USER JWT------\n\n"
        "************************* IMPORTANT *************************\n"
        "This is a secret: whoever has it is let in as its owner.\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode('ascii')}\n------END USER NKEY SEED------\n"
    )


def _signed(
    issuer: Key, subject: str, name: str, said: Mapping[str, Any], *, now: float, expires: float | None = None
) -> str:
    claims: dict[str, Any] = {"iat": int(now), "iss": issuer.public, "name": name, "sub": subject, "nats": said}
    if expires is not None:
        claims["exp"] = int(expires)
    claims["jti"] = base64.b32encode(hashlib.sha256(_json(claims)).digest()).rstrip(b"=").decode("ascii")
    content = f"{_encoded(_HEADER)}.{_encoded(_json(claims))}"
    return f"{content}.{_encoded(issuer.sign(content.encode('ascii')))}"


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":"), sort_keys=True).encode()


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")
