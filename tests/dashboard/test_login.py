"""Logging in without a script: why one must, what the browser is given, where one is led, what a viewer is shown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest

from dashboard.looking import Looking, looking, shown
from helpers.holders import Holders
from helpers.operating import TALLY
from helpers.processes import DEADLINE
from outvote.access.tokens import TokenBook, make_token, tokens_file
from outvote.engine.process import Engine
from outvote.files import write_private
from outvote.server.admin.guard import LONGEST_LOGIN, local_path


@pytest.fixture
def holders(tmp_path: Path) -> Holders:
    return Holders(tmp_path)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, DEADLINE))


async def html(seen: Looking, path: str) -> str:
    """A whole page as it was sent."""
    answer = await seen.client.get(path, follow_redirects=True)
    shown(answer)
    return answer.text


def cookie_of(answer: httpx.Response) -> dict[str, str]:
    """Its attributes, and as `value` what it holds."""
    [text] = answer.headers.get_list("set-cookie")
    first, *rest = text.split("; ")
    name, _, value = first.partition("=")
    attributes = {key.lower(): given for key, _, given in (each.partition("=") for each in rest)}
    return {"name": name, "value": value, **attributes}


def test_who_is_not_logged_in_is_led_to_the_login_and_back(engine: Engine, holders: Holders) -> None:
    async def scenario() -> None:
        async with looking(engine, tokens=holders.book) as seen:
            for path, login in (
                ("/", "/login"),
                ("/fleet?state=alive&q=a", "/login?next=%2Ffleet%3Fstate%3Dalive%26q%3Da"),
                ("/nothing", "/login?next=%2Fnothing"),
            ):
                answer = await seen.client.get(path)
                assert (answer.status_code, answer.headers["location"]) == (303, login)
            form = await seen.client.post("/tasks/new", data={"name": "x"})
            assert (form.status_code, form.headers["location"]) == (303, "/login")  # what was sent is not sent again
            api = await seen.client.get("/v1/tasks")
            assert api.status_code == 401
            assert api.headers["content-type"] == "application/problem+json"
            page = await html(seen, "/fleet")
            assert "only to who has a token" in page
            assert 'name="next" value="/fleet"' in page
            for link in ("/tasks/new", "/metrics", "Log out"):
                assert link not in page  # nothing that a stranger cannot use
            answer = await seen.send("/login", token=holders.secrets["looker"], next="/fleet")
            assert (answer.status_code, answer.headers["location"]) == (303, "/fleet")
            page = await html(seen, "/fleet")
            assert 'looker</span> <span class="chip">viewer' in page
            assert "Log out" in page
            out = await seen.send("/logout")
            assert (out.status_code, out.headers["location"], cookie_of(out)["max-age"]) == (303, "/login", "0")
            assert (await seen.client.get("/fleet")).headers["location"] == "/login?next=%2Ffleet"

    run(scenario())


def test_the_browser_keeps_a_token_for_itself_and_not_for_long(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    (day, kept), (hour, also) = make_token("day", "admin", days=1), make_token("hour", "admin", days=1 / 24)
    write_private(path, tokens_file([kept, also]))

    async def scenario() -> None:
        async with looking(engine, tokens=TokenBook(path)) as seen:
            for secret, lasts in ((day, LONGEST_LOGIN), (hour, 3600)):
                found = cookie_of(await seen.send("/login", token=f"  {secret}\n"))
                assert found["name"] == "outvote"
                assert found["value"] == secret
                assert 0 <= lasts - int(found["max-age"]) < 60
                assert (found["path"], found["samesite"], found["httponly"]) == ("/", "strict", "")
                assert {"secure", "domain"} & set(found) == set()
            safe = await seen.client.post("https://server/login", data={"token": day})
            assert cookie_of(safe)["name"] == "__Host-outvote"
            assert "secure" in cookie_of(safe)

    run(scenario())


def test_a_token_that_is_not_good_is_refused_with_a_reason_and_not_shown_again(
    engine: Engine, holders: Holders, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        async with looking(engine, tokens=holders.book) as seen:
            for token, status, says in (
                ("", 401, "only to who has a token"),
                ("outvote-guess", 401, "not known here"),
                (holders.secrets["former"], 401, "has expired"),
                (holders.secrets["shop"], 403, "applications"),
                ("<script>alert(1)</script>", 401, "not known here"),
            ):
                answer = await seen.send("/login", token=token, next="/fleet")
                page = shown(answer, status)
                assert says in page.text
                assert "set-cookie" not in answer.headers
                if token:
                    assert token not in answer.text
            seen.client.cookies.set("outvote", holders.secrets["former"])
            answer = await seen.client.get("/")
            assert answer.headers["location"] == "/login?why=expired"
            assert "This token has expired" in (await seen.page("/")).text
            for why in ("unknown", "nonsense", "<b>"):
                assert (await seen.page(f"/login?why={why}")).text
            figures = await seen.client.get("/metrics", headers=holders.header("ops"))
            assert 'outvote_http_refused_total{reason="unknown"} 2.0' in figures.text

    run(scenario())
    for secret in [*holders.secrets.values(), "outvote-guess"]:
        assert secret not in caplog.text


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("/fleet?q=a%20b", "/fleet?q=a%20b"),
        ("/tasks/shop", "/tasks/shop"),
        ("https://evil.example/", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("/\n/evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("evil", "/"),
        ("", "/"),
        ("/login?next=/login", "/"),
        ("/logout", "/"),
    ],
)
def test_nobody_is_led_to_another_site(asked: str, path: str) -> None:
    assert local_path(asked) == path


def test_a_login_is_sent_by_our_own_page_only_and_needs_no_script(engine: Engine, holders: Holders) -> None:
    async def scenario() -> None:
        async with looking(engine, tokens=holders.book) as seen:
            headers = {"Origin": "http://evil.example"}
            answer = await seen.client.post("/login", data={"token": holders.secrets["ops"]}, headers=headers)
            assert answer.status_code == 403
            assert "set-cookie" not in answer.headers
            assert (await seen.client.post("/logout", headers=headers)).status_code == 403
            first = await seen.client.get("/login?next=https://evil.example")
            assert first.status_code == 200
            assert "evil" not in first.text
            assert "script-src 'self'" in first.headers["content-security-policy"]
            assert first.headers["cache-control"] == "no-store"
            assert "go on" not in first.text
            led = await seen.client.get("/login?next=/fleet", headers={"Sec-Fetch-Site": "cross-site"})
            assert '<a href="/fleet">go on</a>' in led.text  # the browser has kept the token to itself
            for path in ("/static/outvote.css", "/static/icon.svg"):
                assert (await seen.client.get(path)).status_code == 200

    run(scenario())


def test_a_viewer_is_shown_all_and_offered_no_change(engine: Engine, holders: Holders) -> None:
    async def scenario() -> None:
        async with looking(engine, tokens=holders.book) as seen:
            await seen.client.post("/v1/tasks", json=TALLY, headers=holders.header("ops"))
            pages = ("/", "/tasks/shop", "/fleet", "/tasks/new", "/tasks/shop/stop")
            texts = {}
            for name in ("ops", "looker"):
                await seen.send("/login", token=holders.secrets[name])
                texts[name] = {path: await html(seen, path) for path in pages}
            assert 'href="/tasks/new"' in texts["ops"]["/"]
            assert 'href="/tasks/new"' not in texts["looker"]["/"]
            for offered in ("/stop", "/kill", "/delete", "/expectation"):
                assert offered in texts["ops"]["/tasks/shop"]
                assert offered not in texts["looker"]["/tasks/shop"]
            for path in ("/tasks/new", "/tasks/shop/stop"):
                assert "disabled" not in texts["ops"][path]
                assert '<button type="submit" disabled' in texts["looker"][path]
                assert "Your token is a viewer's" in texts["looker"][path]
            refused = await seen.send("/tasks/shop/stop")
            assert "a viewer's, who may look" in shown(refused, 403).text
            assert (await seen.client.get("/v1/tasks/shop")).json()["stopped"] is False

    run(scenario())


def test_without_tokens_there_is_no_login(engine: Engine) -> None:
    async def scenario() -> None:
        async with looking(engine) as seen:
            assert (await seen.client.get("/login")).status_code == 404
            page = await seen.page("/")
            assert "Log out" not in page.text
            assert "New task" in page.text

    run(scenario())
