"""What `outvote server` and `outvote edge` are told of security: a kit, or that none is wanted.

Nothing is sent or offered in plaintext beyond this machine unless `--insecure` says so.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from outvote.access.engine_access import Access
    from outvote.access.kits import Certificate, MemberKit
    from outvote.access.tokens import TokenBook


@dataclass(frozen=True)
class Security:
    """What a process has."""

    access: Access | None
    """To the engine."""
    certificate: Certificate | None
    """Of its HTTP API."""
    tokens: TokenBook | None
    """Who may use that."""
    insecure: bool


def add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("security")
    group.add_argument("--kit", metavar="FOLDER", help="what `outvote fleet` made for it")
    group.add_argument(
        "--insecure",
        action="store_true",
        help="allow plaintext, and an API without tokens, beyond this machine: only on a network that you trust",
    )


def security(args: argparse.Namespace, kit: MemberKit | None) -> Security:
    """From the kit; each file is read once here, so that what is wrong with it is said at once."""
    from outvote.access.engine_access import Access
    from outvote.access.tls import server_context
    from outvote.access.tokens import TokenBook

    if kit is None:
        return Security(None, None, None, args.insecure)
    access = Access(kit.creds, kit.ca)
    access.credential()
    access.context()
    if kit.certificate is not None:
        server_context(kit.certificate)
    return Security(access, kit.certificate, TokenBook(kit.tokens) if kit.tokens else None, args.insecure)


def check_listening(what: str, host: str, found: Security) -> None:
    """An HTTP API beyond this machine has both: TLS, and tokens. `what` begins a sentence: 'the API listens at'."""
    from outvote.web.exposure import check_exposed

    check_exposed(what, host, secured=None not in (found.certificate, found.tokens), insecure=found.insecure)


def check_connecting(urls: str, found: Security) -> None:
    """Whoever is between this process and the engine must not read along, or speak for it."""
    from outvote.web.exposure import check_exposed

    for url in urls.split(","):
        parts = urlsplit(url)
        secured = found.access is not None or parts.scheme in ("tls", "wss")
        check_exposed("it would connect to", parts.hostname or "", secured=secured, insecure=found.insecure)


def reaches_beyond(urls: tuple[str, ...]) -> bool:
    """Whether a fleet is more than this machine."""
    from outvote.web.exposure import is_loopback

    return not all(is_loopback(urlsplit(url).hostname or "") for url in urls)
