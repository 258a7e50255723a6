"""How a command asks a server: where it is, whom to trust, and the token that says who asks.

A token is sent over TLS, or to this machine; it is never followed elsewhere, shown or logged.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from outvote.cli.serving import Failed
from outvote.core.errors import InvalidInput

if TYPE_CHECKING:
    import ssl

MAX_WAIT: Final = 15.0
"""Timeout in seconds: longer than the server's own timeout for its engine, so that its error arrives."""
SERVER: Final = "http://127.0.0.1:8600"
KIT: Final = "OUTVOTE_KIT"
"""The variable that names an operator's kit."""
ADVICE: Final = "name an outvote server with --server, or a --kit that knows one"
WHAT_TO_DO: Final = {
    "token-missing": "the server at {server} wants a token: give --kit FOLDER, or --token-file FILE",
    "token-unknown": "the server at {server} does not know this token: it was revoked, or is another server's. "
    "`outvote fleet token` makes a new one",
    "token-expired": "the token has expired: `outvote fleet token` makes a new one",
}


def add_options(parser: argparse.ArgumentParser, *, default: str | None = None) -> None:
    """For a command and, with argparse.SUPPRESS, for its actions."""
    group = parser.add_argument_group("server")
    group.add_argument("--server", type=_server, default=default, metavar="URL", help=f"where it is ({SERVER})")
    group.add_argument(
        "--kit", default=default, metavar="FOLDER", help=f"an operator's kit, which knows where it is ({KIT}, if set)"
    )
    group.add_argument("--token-file", default=default, metavar="FILE", help="the token that says who asks (the kit's)")
    group.add_argument("--ca", default=default, metavar="PEM", help="who signs its certificate (the kit's)")
    group.add_argument(
        "--insecure",
        action="store_true",
        default=default or False,
        help="send the token in plaintext beyond this machine: only on a network that you trust",
    )


def _server(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f"must be an address like {SERVER}, got {text!r}")
    return text.rstrip("/")


@dataclass(frozen=True)
class ServerTarget:
    """A server, and what it is asked with."""

    server: str
    token: str | None = field(default=None, repr=False)
    context: ssl.SSLContext | None = None


def asked(args: argparse.Namespace) -> ServerTarget:
    """From the options, which come on top of the kit. The variable counts where no server is named: a token must not go
    to another one by mistake."""
    server, token_file, ca = args.server, args.token_file, args.ca
    folder = args.kit or (os.environ.get(KIT) if server is None else None)
    if folder:
        from outvote.access.kits import read_operator_kit

        kit = read_operator_kit(Path(folder))
        server, token_file, ca = server or kit.server.rstrip("/"), token_file or kit.token, ca or kit.ca
    server = server or SERVER
    token = None
    if token_file is not None:
        from outvote.access.tokens import read_secret

        token = read_secret(Path(token_file))
    return ServerTarget(server, token, _context(server, ca, has_token=token is not None, insecure=args.insecure))


def _context(server: str, ca: str | Path | None, *, has_token: bool, insecure: bool) -> ssl.SSLContext | None:
    if server.startswith("https://"):
        from outvote.access.tls import client_context

        return client_context(None if ca is None else Path(ca))
    if has_token:
        from urllib.parse import urlsplit

        from outvote.web.exposure import check_exposed

        host = urlsplit(server).hostname or ""
        check_exposed("the token would be sent in plaintext to", host, secured=False, insecure=insecure)
    return None


def as_given(args: argparse.Namespace) -> str:
    """The same options for another command, as a person has to type them."""
    given = {"server": args.server, "kit": args.kit, "token-file": args.token_file, "ca": args.ca}
    words = [f" --{name} {shlex.quote(str(value))}" for name, value in given.items() if value is not None]
    return "".join(words) + (" --insecure" if args.insecure else "")


def ask(
    args: argparse.Namespace, method: str, path: str, body: dict[str, Any] | None = None, *, holds: str = "id"
) -> dict[str, Any]:
    """One request; what the server refuses becomes one line. A server's answer has the field `holds`, or is empty."""
    from http.client import HTTPException

    target = asked(args)
    data = None if body is None else as_json(body)
    try:
        status, answer = _send(target, method, path, data)
    except (OSError, HTTPException, ValueError) as error:
        raise Failed(_unreachable(target, error)) from None
    record = _object(answer)
    if status == 204 or (200 <= status < 300 and holds in record):
        return record
    _check_no_edge(target)
    if status < 300 or "detail" not in record:
        raise Failed(f"what answers at {target.server} is no outvote server: it says {status}; {ADVICE}")
    _refused(target.server, status, record)


def _send(target: ServerTarget, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    """Return the status and the body of the response, for any status: no redirects, no proxies. It uses `http.client`
    because httpx would add a tenth of a second to the start of every command."""
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.parse import urlsplit

    headers = {"Content-Type": "application/json"}
    if target.token is not None:
        headers["Authorization"] = f"Bearer {target.token}"
    parts = urlsplit(target.server)
    if not parts.hostname:
        raise ValueError("the address names no host")
    connection = HTTPConnection(parts.hostname, parts.port or 80, timeout=MAX_WAIT)
    if parts.scheme == "https":
        connection = HTTPSConnection(parts.hostname, parts.port or 443, timeout=MAX_WAIT, context=target.context)
    with closing(connection):
        connection.request(method, parts.path + path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()


def as_json(body: dict[str, Any]) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"a task holds numbers, texts and lists of them only: {error}") from None


def _object(text: bytes) -> dict[str, Any]:
    """The JSON object of an answer; empty if it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _unreachable(target: ServerTarget, reason: object) -> str:
    import ssl
    from http.client import BadStatusLine, HTTPException, RemoteDisconnected

    server = target.server
    if isinstance(reason, ssl.SSLCertVerificationError):
        return (
            f"the certificate that {server} shows is not to be trusted: {reason.verify_message}; give the --kit or the "
            "--ca of its fleet, and the name that the certificate is for"
        )
    if isinstance(reason, ssl.SSLError):
        plain = ServerTarget(server.replace("https://", "http://", 1))
        if isinstance(other := _check_no_edge(plain), BadStatusLine):  # an engine speaks before TLS begins
            return _unreachable(target, other)
        return f"what answers at {server} speaks no TLS that is good enough: {reason.reason}; is it http://?"
    if isinstance(reason, RemoteDisconnected):
        return f"what answers at {server} hangs up: does it speak https://?"
    if isinstance(reason, HTTPException):
        what = "is the engine (NATS), not a server" if str(reason).startswith("INFO {") else "does not speak HTTP"
        return f"what answers at {server} {what}: {ADVICE}"
    why = getattr(reason, "strerror", None) or reason
    return f"no server answers at {server}: {why}; start one with outvote server, or name another with --server"


def _check_no_edge(target: ServerTarget) -> Exception | None:
    """Refuse an edge, which tells its name to everybody; return why nothing answered. No token is sent."""
    from http.client import HTTPException

    try:
        _, answer = _send(replace(target, token=None), "GET", "/healthz")
    except (OSError, HTTPException, ValueError) as error:
        return error
    if "site" in _object(answer):
        raise Failed(f"what answers at {target.server} is an edge, not a server: {ADVICE}")
    return None


def _refused(server: str, status: int, problem: dict[str, Any]) -> NoReturn:
    detail, kind = str(problem["detail"]), str(problem.get("type", "")).rpartition(":")[2]
    if status in (400, 413, 422):
        field, code = problem.get("field"), str(problem.get("code", "invalid"))
        words = detail.removeprefix(f"{field} ")  # the detail begins with the field's name
        raise InvalidInput(words, field=None if words == detail else field, code=code)
    raise Failed(WHAT_TO_DO[kind].format(server=server) if kind in WHAT_TO_DO else detail)
