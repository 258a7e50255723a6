"""The doors of both HTTP APIs: tokens and roles, hosts and origins, what is said of refusals, tokens that change."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.edge_http import DECIDE, REWARD, check_problem, host, in_process, reward_of, task
from helpers.holders import Holders
from helpers.operating import TALLY, operated
from outvote.edge.api import make_app as edge_app
from outvote.edge.ofrep import FLAGS
from outvote.edge.openapi import openapi as edge_document
from outvote.edge.site import Edge
from outvote.log.memory import MemoryEngine
from outvote.server.admin.api import Admin
from outvote.server.admin.openapi import openapi as admin_document
from outvote.web.exposure import LOCAL

TURNED_AWAY = [
    ({}, "token-missing", "missing", "a token is needed"),
    ({"Authorization": "Basic b3V0dm90ZQ=="}, "token-missing", "missing", "a token is needed"),
    ({"Authorization": "Bearer outvote-made-up"}, "token-unknown", "unknown", "not known here"),
]
"""Headers; the kind, the reason and the words of the refusal."""


@pytest.fixture
def holders(tmp_path: Path) -> Holders:
    return Holders(tmp_path)


def refused(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.getMessage().startswith("requests_refused")]


def check_secret(holders: Holders, *texts: str) -> None:
    """No token is in them, nor what is left of one without its beginning."""
    for text in texts:
        for secret in [*holders.secrets.values(), "made-up"]:
            assert secret not in text
            assert secret.removeprefix("outvote-") not in text


# ---- the server's


def routes() -> list[tuple[str, str]]:
    return [
        (method, path.replace("{task}", "shop").replace("{edge}", "ams"))
        for path, methods in Admin(None).routes.items()  # type: ignore[arg-type]  # nothing is asked of it
        for method in methods
    ]


def test_every_path_of_a_server_needs_a_token_but_those_that_tell_nothing(
    memory: MemoryEngine, holders: Holders, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with operated(memory, tokens=holders.book) as (server, client):
            before = server.state.read
            for method, path in routes():
                if path in ("/healthz", "/openapi.json"):
                    continue
                for headers, kind, _, says in TURNED_AWAY:
                    answer = await client.request(method, path, headers=headers, json=TALLY)
                    check_problem(answer, 401, kind, says)
                    assert answer.headers["www-authenticate"] == "Bearer"
                answer = await client.request(method, path, headers=holders.header("former"))
                check_problem(answer, 401, "token-expired", "has expired")
                answer = await client.request(method, path, headers=holders.header("shop"))
                check_problem(answer, 403, "not-allowed", "for applications")
            assert server.state.read == before
            assert (await client.get("/nothing")).status_code == 401  # not even that there is nothing
            assert (await client.get("/healthz")).json() == {"status": "ok"}
            assert (await client.get("/openapi.json")).status_code == 200
            told = (await client.get("/healthz", headers=holders.header("looker"))).json()
            assert told["engine_connected"] is True
            page = await client.get("/metrics", headers=holders.header("looker"))
            for reason in ("missing", "unknown", "expired", "role"):
                assert f'outvote_http_refused_total{{reason="{reason}"}}' in page.text
            assert 'outvote_http_refused_total{reason="host"} 0.0' in page.text
            check_secret(holders, page.text, caplog.text)

    asyncio.run(scenario())
    assert Counter(refused(caplog)) == Counter(  # once for each reason, however many there were
        f"requests_refused reason={reason} count=1" for reason in ("missing", "unknown", "expired", "role")
    )


def test_a_viewer_looks_and_an_admin_does_all(memory: MemoryEngine, holders: Holders) -> None:
    async def scenario() -> None:
        async with operated(memory, tokens=holders.book) as (server, client):
            viewer, admin = holders.header("looker"), holders.header("ops")
            assert (await client.post("/v1/tasks", json=TALLY, headers=admin)).status_code == 201
            server.monitor.changes.close()  # else /v1/events would never end
            for method, path in routes():
                if method == "GET":
                    for looks in ("GET", "HEAD"):
                        answer = await client.request(looks, path, headers=viewer)
                        assert answer.status_code == 200, (looks, path)
                else:
                    answer = await client.request(method, path, headers=viewer, json=TALLY)
                    check_problem(answer, 403, "not-allowed", "an admin's is needed")
            assert [found.task.name for found in server.state.tasks.values()] == ["shop"]
            assert (await client.delete("/v1/tasks/shop", headers=admin)).status_code == 204
            assert not server.state.tasks

    asyncio.run(scenario())


def test_a_cookie_is_a_token_too_but_makes_up_for_no_wrong_one_and_serves_no_other_page(
    memory: MemoryEngine, holders: Holders, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with operated(memory, tokens=holders.book) as (server, client):
            cookie = {"Cookie": f"other=1; outvote={holders.secrets['looker']}"}
            assert (await client.get("/v1/tasks", headers=cookie)).status_code == 200
            wrong = await client.get("/v1/tasks", headers={**cookie, **holders.header("nobody")})
            check_problem(wrong, 401, "token-unknown", "not known")
            other = {"Cookie": f"__Host-outvote={holders.secrets['looker']}"}  # of TLS, which this is not
            assert (await client.get("/v1/tasks", headers=other)).status_code == 401
            admin = {"Cookie": f"outvote={holders.secrets['ops']}"}
            for origin in ("http://evil.example", "http://server:8601", "https://other", "null", ""):
                answer = await client.post("/v1/tasks", json=TALLY, headers={**admin, "Origin": origin})
                check_problem(answer, 403, "other-origin", "not from other pages")
            for site in ("cross-site", "same-site"):
                answer = await client.post("/v1/tasks", json=TALLY, headers={**admin, "Sec-Fetch-Site": site})
                check_problem(answer, 403, "other-origin", "this server's own pages")
            assert not server.state.tasks
            page = await client.get("/metrics", headers=admin)
            assert 'outvote_http_refused_total{reason="origin"} 7.0' in page.text
            own = {**admin, "Origin": "http://server", "Sec-Fetch-Site": "same-origin"}
            assert (await client.post("/v1/tasks", json=TALLY, headers=own)).status_code == 201

    asyncio.run(scenario())
    assert "requests_refused reason=origin count=1" in refused(caplog)
    assert "evil" not in caplog.text


def test_without_tokens_a_server_of_this_machine_must_be_called_so(
    memory: MemoryEngine, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with operated(memory, hosts=LOCAL) as (_, client):
            for name in ("localhost", "LOCALHOST:8600", "127.0.0.1:1", "[::1]:8600"):
                assert (await client.get("/v1/tasks", headers={"Host": name})).status_code == 200
            for name in (
                "evil.example",
                "localhost.evil.example",
                "127.0.0.1.evil.example:8600",
                "10.0.0.5",
                "x@[::1]",
            ):
                for method, path in (("GET", "/v1/tasks"), ("POST", "/v1/tasks"), ("GET", "/healthz"), ("GET", "/no")):
                    answer = await client.request(method, path, headers={"Host": name})
                    check_problem(answer, 403, "unknown-host", "localhost, 127.0.0.1 or")
            assert (
                'outvote_http_refused_total{reason="host"} 20.0'
                in (await client.get("/metrics", headers={"Host": "localhost"})).text
            )

    asyncio.run(scenario())
    assert refused(caplog) == ["requests_refused reason=host count=1"]
    assert "evil" not in caplog.text


# ---- the edge's

GOOD = {"ticket": "uncounted", "reward": 1}
PATHS = [
    ("POST", DECIDE),
    ("POST", REWARD),
    ("GET", "/v1/tasks"),
    ("GET", "/v1/tasks/shop"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("GET", "/nothing"),
    ("POST", FLAGS),
    ("POST", f"{FLAGS}/shop"),
]


def test_every_path_of_an_edge_needs_a_token_but_its_health(
    edge: Edge, holders: Holders, caplog: pytest.LogCaptureFixture
) -> None:
    hosted = host(edge, task())
    app = edge_app(edge, tokens=holders.book)
    before = hosted.player.snapshot()

    async def ask(method: str, path: str, headers: dict[str, str]) -> httpx.Response:
        return await in_process(app, method, path, headers=headers, json=GOOD if path == REWARD else None)

    async def scenario() -> None:
        for method, path in PATHS:
            for headers, kind, status, says in (
                *((headers, kind, 401, says) for headers, kind, _, says in TURNED_AWAY),
                (holders.header("former"), "token-expired", 401, "expired"),
                (holders.header("looker"), "not-allowed", 403, "an application's is needed"),
            ):
                answer = await ask(method, path, headers)
                assert answer.status_code == status
                assert ("www-authenticate" in answer.headers) == (status == 401)
                if path.startswith("/ofrep/"):
                    assert answer.json()["errorCode"] == "GENERAL"
                    assert says in answer.json()["errorDetails"]
                else:
                    check_problem(answer, status, kind, says)
        assert hosted.player.snapshot() == before
        assert (await ask("GET", "/healthz", {})).json()["status"] == "ok"
        for name in ("shop", "ops"):
            made = await ask("POST", DECIDE, holders.header(name))
            assert made.status_code == 200
            body = reward_of(made.json())
            taken = await in_process(app, "POST", REWARD, headers=holders.header(name), json=body)
            assert taken.status_code == 204
            assert (await ask("POST", f"{FLAGS}/shop", holders.header(name))).status_code == 200
        page = (await ask("GET", "/metrics", holders.header("shop"))).text
        assert 'outvote_edge_refused_requests_total{status="401"} 36.0' in page
        check_secret(holders, page, caplog.text)

    asyncio.run(scenario())
    assert len(refused(caplog)) == 4


def test_a_page_that_may_use_an_edge_shows_a_token_after_the_browser_has_asked(edge: Edge, holders: Holders) -> None:
    host(edge, task())
    shop = "https://shop.example"
    app = edge_app(edge, tokens=holders.book, origins=[shop])

    async def scenario() -> None:
        asks = {
            "Origin": shop,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization",
        }
        allowed = await in_process(app, "OPTIONS", DECIDE, headers=asks)
        assert allowed.status_code == 204
        assert "authorization" in allowed.headers["access-control-allow-headers"]
        without = await in_process(app, "POST", DECIDE, headers={"Origin": shop})
        assert without.status_code == 401
        assert without.headers["access-control-allow-origin"] == shop  # the page may read why
        site = {"Origin": shop, "Sec-Fetch-Site": "cross-site"}
        made = await in_process(app, "POST", DECIDE, headers={**site, **holders.header("shop")})
        assert made.status_code == 200
        other = {"Origin": "https://other.example", **holders.header("shop")}
        assert (await in_process(app, "POST", DECIDE, headers=other)).status_code == 403

    asyncio.run(scenario())


# ---- what the documents say of it


@pytest.mark.parametrize("document", [admin_document, edge_document])
def test_the_documents_say_that_a_token_may_be_needed_and_what_comes_without(document: Any) -> None:
    found = document()
    assert found["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert found["security"] == [{"token": []}, {}]
    for path, item in found["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            is_open = operation.get("security") == []
            assert is_open == (path == "/healthz" or (document is admin_document and path == "/openapi.json"))
            kind = "Failed" if path.startswith("/ofrep/") else "Refused"
            expected = {"403": kind, "408": "Refused", "431": "Refused"} | ({} if is_open else {"401": kind})
            for status, each in expected.items():
                assert operation["responses"][status] == {"$ref": f"#/components/responses/{each}{status}"}
    for name, response in found["components"]["responses"].items():
        [(media, content)] = response["content"].items()
        of_problem = name.startswith("Refused")
        assert media == ("application/problem+json" if of_problem else "application/json")
        assert content["schema"]["$ref"].endswith("/Problem" if of_problem else "/EvaluationFailed")
