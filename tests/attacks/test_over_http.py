"""Attackers at the server's API and at a site's: without a token, with one that is none, slow, or from a web page."""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import suppress

import httpx
import pytest

from attacks.conftest import Attack
from attacks.secured import SHOP, Secured
from helpers.processes import DEADLINE, until
from outvote.access.tokens import PREFIX, make_token, read_tokens, tokens_file
from outvote.files import write_private

ANYBODY = "anybody who reaches the server"
CHANGES = [
    ("POST", "/v1/tasks"),
    ("DELETE", "/v1/tasks/shop"),
    ("POST", "/v1/tasks/shop/stop"),
    ("POST", "/v1/tasks/shop/kill"),
    ("PUT", "/v1/tasks/shop/expectation"),
    ("POST", "/v1/sites/honest/discount"),
    ("POST", "/tasks/shop/delete"),
]
LOOKS = ["/v1/tasks", "/v1/tasks/shop", "/v1/sites", "/v1/events", "/metrics", "/", "/fleet"]


def expired(secured: Secured) -> str:
    """A token that was good until yesterday."""
    path = secured.kit("server") / "tokens.json"
    secret, token = make_token("yesterday", "admin", days=1, now=time.time() - 2 * 86400)
    write_private(path, tokens_file([each for each in read_tokens(path) if each.name != "yesterday"] + [token]))
    return secret


@pytest.mark.parametrize("kind", ["missing", "unknown", "expired"])
def test_a_call_with_no_good_token(secured: Secured, attack: Attack, kind: str) -> None:
    said = {"missing": "is needed", "unknown": "not known", "expired": "expired"}[kind]
    token = {"missing": None, "unknown": PREFIX + "a" * 43, "expired": expired(secured)}[kind]
    with secured.client(token) as caller:
        if kind == "expired":  # the file is looked at again within a second
            until(lambda: "expired" in caller.get("/v1/tasks").text, "the file of tokens is read again")
        for method, path in CHANGES:
            answer = caller.request(method, path, json={})
            assert answer.status_code in (401, 403), (method, path)
        for path in LOOKS:
            answer = caller.get(path)
            assert answer.status_code == 401, path
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert said in answer.json()["detail"]
            assert token is None or token not in answer.text
        assert caller.get("/healthz").json() == {"status": "ok"}
    assert secured.is_told("requests_refused", reason=kind)
    attack.refused(
        f"call the server's API, token {kind}",
        by=ANYBODY,
        happened="401 for every path but /healthz, which tells only its status",
        logged="`requests_refused`, at most one line a minute for each reason",
    )


def test_a_change_with_a_viewer_s_token(secured: Secured, attack: Attack) -> None:
    token = secured.command("token", "add", "looker", "--role", "viewer").strip().splitlines()[-1].split()[-1]
    assert token.startswith(PREFIX)
    with secured.client(token) as viewer:
        until(lambda: viewer.get("/v1/tasks").status_code == 200, "the new token is known")
        for method, path in CHANGES:
            assert viewer.request(method, path, json={}).status_code == 403, (method, path)
    attack.refused(
        "change something with a token that may only look",
        by="somebody with a viewer's token",
        happened="403 for every change",
        logged="`requests_refused`, at most one line a minute for each reason",
    )


def test_clients_that_never_finish(secured: Secured, attack: Attack) -> None:
    """Half a head and half a body, at the server and at a site: all are ended, and others are served meanwhile."""
    body = b"POST /v1/tasks/shop/reward HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{"
    slow: list[socket.socket] = []
    try:
        for half in (b"", b"GET /v1/tasks HT", body):
            for port, tls in ((secured.server.port("server"), True), (secured.honest.port("edge"), False)):
                plain = socket.create_connection(("127.0.0.1", int(port)), timeout=DEADLINE)
                slow.append(secured.trust().wrap_socket(plain, server_hostname="127.0.0.1") if tls else plain)
                slow[-1].sendall(half)
        slow.append(
            socket.create_connection(("127.0.0.1", int(secured.server.port("server"))), timeout=DEADLINE)
        )  # no TLS yet
        assert secured.operator.get("/v1/tasks").status_code == 200
        assert secured.application.get("/v1/tasks").status_code == 200
        for each in slow:
            answer = heard(each)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), answer
    finally:
        for each in slow:
            each.close()
    for log in (secured.server_log, secured.edge_log):
        until(lambda log=log: secured.is_told("requests_unfinished", log), "it is logged")  # type: ignore[misc]
    attack.refused(
        "begin requests, or a TLS handshake, and never finish them",
        by=f"{ANYBODY}, or a program beside a site",
        happened="the connection is ended after 10 s; others are served meanwhile",
        logged="`requests_unfinished`, at most one line a minute",
    )


def heard(connection: socket.socket) -> bytes:
    """All that comes until the other side ends it."""
    answer = b""
    with suppress(ConnectionError, ssl.SSLError):
        while chunk := connection.recv(4096):
            answer += chunk
    return answer


def test_plaintext(secured: Secured, attack: Attack) -> None:
    with pytest.raises(httpx.HTTPError):
        httpx.get(secured.url.replace("https", "http") + "/v1/tasks", trust_env=False)
    with socket.create_connection(("127.0.0.1", int(secured.nats.rpartition(":")[2])), timeout=DEADLINE) as plain:
        plain.sendall(b'CONNECT {"verbose":false}\r\nPUB outvote.up.mallory.a.b.0 1\r\nx\r\nPING\r\n')
        answer = heard(plain)
    assert b"PONG" not in answer
    assert b"INFO" not in answer  # not even who it is
    attack.refused(
        "speak plaintext to the server's API and to the engine",
        by=ANYBODY,
        happened="no answer: both take TLS only, from the first byte on",
        logged="one line in the engine's log",
    )


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}], ids=str)
def test_a_change_from_another_origin(secured: Secured, attack: Attack, headers: dict[str, str]) -> None:
    """With an operator's good token, as a browser would send the cookie along."""
    answer = secured.operator.post("/v1/tasks", json={**SHOP, "name": "evil"}, headers=headers)
    assert answer.status_code == 403
    assert answer.json()["type"].endswith("other-origin")
    body = {"ticket": "uncounted", "reward": 1}
    assert secured.application.post("/v1/tasks/shop/reward", json=body, headers=headers).status_code == 403
    assert secured.application.post("/v1/tasks/shop/decide", headers=headers).status_code == 403
    for log in (secured.server_log, secured.edge_log):
        assert secured.is_told("requests_refused", log, reason="origin")
    attack.refused(
        f"a request of another site's web page ({next(iter(headers))})",
        by="a page that an operator or a user has open",
        happened="403 at the server and at the site",
        logged="`requests_refused`, at most one line a minute for each reason",
    )


def test_a_name_that_leads_here(secured: Secured, attack: Attack) -> None:
    """DNS rebinding: a page of evil.example, whose name suddenly means this machine, is of the same origin."""
    headers = {"Host": "evil.example:8700", "Origin": "http://evil.example:8700"}
    answer = secured.application.post("/v1/tasks/shop/decide", headers=headers)
    assert answer.status_code == 403
    assert answer.json()["type"].endswith("unknown-host")
    assert secured.is_told("requests_refused", secured.edge_log, reason="host")
    attack.refused(
        "reach a site's API under another name (DNS rebinding)",
        by="a page that a user has open",
        happened="403: only names of this machine are answered",
        logged="`requests_refused`, at most one line a minute for each reason",
    )
