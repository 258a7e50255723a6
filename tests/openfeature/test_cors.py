"""Which pages may use an edge: none, unless they are named. What a browser really does is in `test_web`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from helpers.edge_http import check_problem, host, in_process, task
from outvote.cli.main import main
from outvote.core.errors import InvalidConfiguration
from outvote.edge.api import make_app
from outvote.edge.cors import check_origin
from outvote.edge.ofrep import FLAGS
from outvote.edge.site import Edge

SHOP, BLOG, OTHER = "https://shop.example", "http://blog.example:8080", "https://other.example"
PATHS = [("POST", f"{FLAGS}/shop"), ("POST", FLAGS), ("POST", "/v1/tasks/shop/decide"), ("GET", "/v1/tasks")]


def asked(edge: Edge, method: str, path: str, origins: list[str], **headers: str) -> httpx.Response:
    return asyncio.run(in_process(make_app(edge, origins=origins), method, path, headers=headers))


def about_origins(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_a_page_that_is_named_may_read_answers_and_their_tag(method: str, path: str, edge: Edge) -> None:
    host(edge, task())
    for origin in (SHOP, BLOG):
        answer = asked(edge, method, path, [SHOP, BLOG], Origin=origin)
        assert answer.status_code == 200
        assert about_origins(answer) == {
            "access-control-allow-origin": origin, "access-control-expose-headers": "etag",
        }  # fmt: skip
        assert answer.headers["vary"] == "origin"
    any_page = asked(edge, method, path, ["*"], Origin=OTHER)
    assert any_page.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_other_pages_decide_nothing_and_are_told_nothing_of_origins(method: str, path: str, edge: Edge) -> None:
    host(edge, task())
    before = edge.tasks["shop"].player.snapshot()
    for origins, headers in (
        ([SHOP], {"Origin": OTHER}),
        ([SHOP], {"Origin": f"{SHOP}.evil.example"}),
        ([SHOP], {"Origin": SHOP.replace("https", "http")}),
        ([SHOP], {"Origin": f"{SHOP}:444"}),
        ([SHOP], {"Origin": "null"}),
        ([], {"Origin": SHOP}),
        ([], {"Origin": "null"}),
        ([], {"Origin": "http://edge", "Sec-Fetch-Site": "same-site"}),
        ([SHOP], {"Sec-Fetch-Site": "cross-site"}),
    ):
        answer = asked(edge, method, path, origins, **headers)
        assert answer.status_code == (200 if method == "GET" else 403)  # a browser keeps from a page what it looked at
        assert about_origins(answer) == {}
        if path.startswith("/ofrep/"):
            assert answer.json()["errorCode"] == "GENERAL"
        elif method == "POST":
            check_problem(answer, 403, "other-origin", "--allow-origin")
    assert edge.tasks["shop"].player.snapshot() == before


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_programs_and_pages_of_the_same_origin_are_told_nothing_of_origins(method: str, path: str, edge: Edge) -> None:
    host(edge, task())
    for origins, headers in (
        ([SHOP], {}),
        (["*"], {}),
        ([], {"Origin": "http://edge"}),  # which is what these tests call it
        ([], {"Origin": SHOP, "Sec-Fetch-Site": "same-origin"}),  # behind a proxy, as the browser says
        ([], {"Sec-Fetch-Site": "none"}),
    ):
        answer = asked(edge, method, path, origins, **headers)
        assert answer.status_code == 200
        assert about_origins(answer) == {}


def test_a_browser_that_asks_first_is_told_what_is_allowed(edge: Edge) -> None:
    host(edge, task())
    before = edge.tasks["shop"].player.snapshot()
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,if-none-match"}
    for _, path in PATHS:
        answer = asked(edge, "OPTIONS", path, [SHOP], Origin=SHOP, **asks)
        assert (answer.status_code, answer.content) == (204, b"")
        allowed = about_origins(answer)
        assert allowed["access-control-allow-origin"] == SHOP
        assert "POST" in allowed["access-control-allow-methods"]
        assert {"content-type", "if-none-match"} <= set(allowed["access-control-allow-headers"].split(", "))
        assert "access-control-allow-credentials" not in allowed
        refused = asked(edge, "OPTIONS", path, [SHOP], Origin=OTHER, **asks)
        assert refused.status_code == 405
        assert about_origins(refused) == {}
    assert edge.tasks["shop"].player.snapshot() == before


def test_refusals_can_be_read_by_the_page_too(edge: Edge) -> None:
    answer = asked(edge, "POST", f"{FLAGS}/nobody", [SHOP], Origin=SHOP)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (404, SHOP)


@pytest.mark.parametrize("origin", ["*", SHOP, BLOG, "http://localhost:3000", "http://[::1]:3000"])
def test_an_origin_is_what_a_browser_sends(origin: str) -> None:
    assert check_origin(origin) == origin


WRONG = [
    "", "shop.example", "https://", "https:shop.example", f"{SHOP}/", f"{SHOP}/path", f"{SHOP}?a", f"{SHOP}#a", "null",
    "ftp://shop.example", "https://Shop.example", "HTTPS://shop.example", "https://*.shop.example/", "http://[::1",
    "https://me@shop.example", "https://shop.example:443", "http://shop.example:80", "https://shop.example:x", "**",
    "https://shop.example:99999", f"{SHOP},{BLOG}/",
]  # fmt: skip


@pytest.mark.parametrize("origin", WRONG)
def test_what_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(
        InvalidConfiguration, match=r"^--allow-origin must be like https://shop\.example, or \* for all, got"
    ):
        check_origin(origin)


def test_an_edge_that_is_told_no_origin_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        main(["edge", "ams", "--nats", "nats://127.0.0.1:1", "--allow-origin", SHOP, "--allow-origin", "shop.example"])
        == 2
    )
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("outvote edge: error: --allow-origin must be like https://shop.example")
    assert list(tmp_path.iterdir()) == []
