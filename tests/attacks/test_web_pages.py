"""A web page of another origin, in a real Chromium in which an operator is logged in: it can neither read nor change.

The page is on this machine too, at another port: to a browser that is the same *site*, so that it sends the cookie.
"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from attacks.conftest import Attack
from attacks.secured import Secured
from browser.conftest import chromium
from browser.windows import PATIENCE, another_origin

__all__ = ["chromium"]

TRY = """async ([server, edge]) => {
  const told = {};
  const attempt = async (name, url, options) => {
    try {
      const answer = await fetch(url, {credentials: 'include', ...options});
      told[name] = answer.type === 'opaque' ? 'opaque' : 'read: ' + (await answer.text()).slice(0, 40);
    } catch (error) { told[name] = 'blocked'; }
  };
  const json = {'Content-Type': 'application/json'}, plain = {'Content-Type': 'text/plain'};
  await attempt('read tasks', server + '/v1/tasks', {});
  await attempt('read a page', server + '/', {});
  await attempt('stop, unseen', server + '/v1/tasks/shop/stop', {method: 'POST', mode: 'no-cors'});
  await attempt('stop, asked', server + '/v1/tasks/shop/stop', {method: 'POST', headers: json, body: '{}'});
  await attempt('delete', server + '/v1/tasks/shop', {method: 'DELETE'});
  await attempt('decide, unseen', edge + '/v1/tasks/shop/decide', {method: 'POST', mode: 'no-cors'});
  await attempt('reward, unseen', edge + '/v1/tasks/shop/reward', {method: 'POST', mode: 'no-cors', headers: plain,
    body: '{"ticket": "uncounted", "reward": 1}'});
  await attempt('decide, read', edge + '/v1/tasks/shop/decide', {method: 'POST'});
  return told;
}"""


def test_a_web_page_of_another_origin(secured: Secured, attack: Attack, chromium: Browser, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        f'<!doctype html><title>evil</title><form method="post" action="{secured.url}/tasks/shop/delete">'
        f'<button>A kitten</button></form><iframe src="{secured.url}/"></iframe>'
    )
    decided = secured.application.get("/v1/tasks/shop").json()
    context = chromium.new_context(ignore_https_errors=True)
    try:
        context.set_default_timeout(PATIENCE)
        operator = context.new_page()
        operator.goto(secured.url)
        operator.fill("input[name=token]", secured.token)
        operator.click("#login button")
        operator.wait_for_selector("text=shop")
        with another_origin(tmp_path) as url:
            evil = context.new_page()
            evil.goto(url)
            told = evil.evaluate(TRY, [secured.url, secured.honest.url("edge")])
            inside = evil.frames[1]
            assert "shop" not in inside.content()  # frame-ancestors 'none': an empty page
            with evil.expect_navigation():
                evil.click("button")
            assert "not from" in evil.content() or "403" in evil.content()
        operator.reload()
        operator.wait_for_selector("text=shop")  # it is there, and the operator is still logged in
    finally:
        context.close()
    assert {name: said for name, said in told.items() if said not in ("blocked", "opaque")} == {}
    assert {name for name, said in told.items() if said == "opaque"} <= {
        "stop, unseen",
        "decide, unseen",
        "reward, unseen",
    }
    assert secured.application.get("/v1/tasks/shop").json() == decided
    attack.refused(
        "read, stop and delete tasks, decide and reward, from a web page of another origin, with the operator's cookie "
        "(in Chromium: fetch, form, frame)",
        by="a page that an operator has open",
        happened="403 for every change; the browser gives it nothing to read, and shows no page of ours in a frame",
        logged="`requests_refused`, at most one line a minute for each reason",
    )
