"""What `outvote server` and `outvote edge` are told of security: a kit, or its parts, or that none is wanted.

Options come on top of the kit. Nothing is sent or offered in plaintext beyond this machine unless `--insecure` says so.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from outvote.core.errors import InvalidTask

if TYPE_CHECKING:
    from outvote.network.access import Access
    from outvote.network.kits import Certificate, EdgeKit, ServerKit
    from outvote.network.tokens import TokenBook


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
    group.add_argument("--kit", metavar="FOLDER", help="what `outvote fleet` made for it; options come on top")
    group.add_argument("--creds", metavar="FILE", help="its credential at the engine")
    group.add_argument("--ca", metavar="PEM", help="who signs the engine's certificate")
    group.add_argument("--certificate", metavar="PEM", help="the certificate of its HTTP API, with those that sign it")
    group.add_argument("--key", metavar="PEM", help="the key of that certificate")
    group.add_argument("--tokens", metavar="FILE", help="the tokens that its HTTP API takes")
    group.add_argument(
        "--insecure",
        action="store_true",
        help="allow plaintext, and an API without tokens, beyond this machine: only on a network that you trust",
    )


def security(args: argparse.Namespace, kit: EdgeKit | ServerKit | None) -> Security:
    """From the kit and the options; each file is read once here, so that what is wrong with it is said at once."""
    from outvote.network.access import Access
    from outvote.network.kits import Certificate
    from outvote.network.tls import server_context
    from outvote.network.tokens import TokenBook, check_private

    _together(args, "creds", "ca", unless=kit is not None)
    _together(args, "certificate", "key")
    creds = Path(args.creds) if args.creds else kit and kit.creds
    ca = Path(args.ca) if args.ca else kit and kit.ca
    access = None
    if creds and ca:
        check_private(creds)
        access = Access(creds, ca)
        access.credential()
        access.context()
    certificate = kit.certificate if kit else None
    if args.certificate:
        certificate = Certificate(Path(args.certificate), Path(args.key))
    if certificate is not None:
        check_private(certificate.key)
        server_context(certificate)
    tokens = Path(args.tokens) if args.tokens else kit and kit.tokens
    return Security(access, certificate, TokenBook(tokens) if tokens else None, args.insecure)


def check_listening(what: str, host: str, found: Security) -> None:
    """An HTTP API beyond this machine has both: TLS, and tokens. `what` begins a sentence: 'the API listens at'."""
    from outvote.network.exposure import check_exposed

    check_exposed(what, host, secured=None not in (found.certificate, found.tokens), insecure=found.insecure)


def check_connecting(urls: str, found: Security) -> None:
    """Whoever is between this process and the engine must not read along, or speak for it."""
    from outvote.network.exposure import check_exposed

    for url in urls.split(","):
        parts = urlsplit(url)
        secured = found.access is not None or parts.scheme in ("tls", "wss")
        check_exposed("it would connect to", parts.hostname or "", secured=secured, insecure=found.insecure)


def reaches_beyond(urls: tuple[str, ...]) -> bool:
    """Whether a fleet is more than this machine."""
    from outvote.network.exposure import is_loopback

    return not all(is_loopback(urlsplit(url).hostname or "") for url in urls)


def _together(args: argparse.Namespace, first: str, second: str, *, unless: bool = False) -> None:
    given = [getattr(args, each) is not None for each in (first, second)]
    if any(given) and not all(given) and not unless:
        raise InvalidTask(f"--{first} and --{second} go together: give both, or a --kit")
