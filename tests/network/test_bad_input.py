"""Bad input over HTTP, to a real edge and a real server: refused, with what was received, and it changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from network.processes import DEADLINE, Running, an_edge, commands, request, until

TASK = {"name": "shop", "arms": ["red", "green"], "players": ["ams"], "epsilon": 0, "delta": 0.05, "protocol": "tally"}
REWARD = "/v1/tasks/shop/reward"
TOO_LARGE = b" " * (64 * 1024 + 1)


class Fleet(NamedTuple):
    """A server and an edge with one task, one decision of which waits for its reward."""

    server: Running
    edge: Running
    decision: dict[str, Any]

    def counts(self) -> tuple[Any, ...]:
        """All that bad input must not change."""
        task = request(f"{self.edge.url('edge')}/v1/tasks/shop")
        metrics = httpx.get(f"{self.edge.url('edge')}/metrics", trust_env=False).text.splitlines()
        events = [line for line in metrics if line.startswith(("outvote_edge_decisions", "outvote_edge_rewards"))]
        tasks = request(self.server.url("server") + "/v1/tasks")["tasks"]
        return task, events, tasks


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """One for all cases: none of them changes anything."""
    with commands(tmp_path_factory.mktemp("fleet")) as start:
        server = start("server", "--port", "0", "--engine-port", "0", "--store", "log")
        edge = an_edge(start, server, "ams")
        request(server.url("server") + "/v1/tasks", TASK)
        until(lambda: bool(request(f"{edge.url('edge')}/v1/tasks")["tasks"]))
        yield Fleet(server, edge, request(f"{edge.url('edge')}/v1/tasks/shop/decide", method="POST"))


def reward(**fields: Any) -> dict[str, Any]:
    """A reward for the decision that waits, but for what is given."""
    return {"arm": None, "ticket": "0", "reward": 1} | fields


CASES: dict[str, tuple[str, str, Any, int, list[str]]] = {
    "decide on an unknown task": (
        "edge",
        "/v1/tasks/none/decide",
        None,
        404,
        ["got 'none'", "this edge hosts ['shop']"],
    ),
    "reward of an unknown task": (
        "edge",
        "/v1/tasks/none/reward",
        reward(),
        404,
        ["got 'none'", "this edge hosts ['shop']"],
    ),
    "stop of an unknown task": ("server", "/v1/tasks/none/stop", None, 404, ["got 'none'", "there are ['shop']"]),
    "an unknown arm": ("edge", REWARD, reward(arm="pink"), 404, ["got 'pink'", "['red', 'green']"]),
    "an index too large": ("edge", REWARD, reward(arm=2), 404, ["got 2", "0 to 1"]),
    "a reward above 1": ("edge", REWARD, reward(reward=1.5), 422, ["from 0 to 1, got 1.5"]),
    "a reward below 0": ("edge", REWARD, reward(reward=-0.1), 422, ["from 0 to 1, got -0.1"]),
    "no decision waits": (
        "edge",
        REWARD,
        {"arm": "another", "reward": 1},
        409,
        ["waits for a reward", "each decision once"],
    ),
    "a ticket never issued": ("edge", REWARD, reward(ticket="99"), 409, ["got 99", "issued 0 to"]),
    "a reward that is not JSON": ("edge", REWARD, b"reward=1", 400, ["must be JSON", "malformed"]),
    "a task that is not JSON": ("server", "/v1/tasks", b"name=shop", 400, ["JSON", "line 1 column 1"]),
    "a reward too large": ("edge", REWARD, TOO_LARGE, 413, ["at most 65536 bytes"]),
    "a task too large": ("server", "/v1/tasks", TOO_LARGE, 413, ["65,536 bytes"]),
    "a task that exists": (
        "server",
        "/v1/tasks",
        TASK | {"delta": 0.1},
        409,
        ["'shop' exists already", "delta is 0.05, asked is 0.1"],
    ),
    "a name with a space": (
        "server",
        "/v1/tasks",
        TASK | {"name": "a b"},
        422,
        ["1 to 64 letters, digits, '_' or '-', got 'a b'"],
    ),
    "a name with other letters, too long": (
        "server",
        "/v1/tasks",
        TASK | {"name": "ü" * 65},
        422,
        [f"got '{'ü' * 65}'"],
    ),
    "a name with a dot": (
        "edge",
        "/v1/tasks/a.b/decide",
        None,
        422,
        ["1 to 64 letters, digits, '_' or '-', got 'a.b'"],
    ),
    "a name too long": ("edge", f"/v1/tasks/{'a' * 65}/reward", reward(), 422, [f"got '{'a' * 65}'"]),
}


@pytest.mark.parametrize(("whose", "path", "body", "status", "says"), CASES.values(), ids=CASES)
def test_bad_input_is_refused_with_what_was_received_and_changes_nothing(
    whose: str, path: str, body: Any, status: int, says: list[str], fleet: Fleet
) -> None:
    before = fleet.counts()
    if isinstance(body, dict) and "arm" in body:  # which arm waits, and so which does not, the cycle tells
        body = body | {"arm": arm_of(body["arm"], fleet.decision["arm"])}
    content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    running = fleet.edge if whose == "edge" else fleet.server
    answer = httpx.post(running.url(whose) + path, content=content, timeout=DEADLINE, trust_env=False)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["type"].startswith("urn:outvote:problem:")
    for part in says:
        assert part in problem["detail"]
    assert fleet.counts() == before


def arm_of(named: str | int | None, waiting: str) -> str | int:
    if named is None:
        return waiting
    return ("green" if waiting == "red" else "red") if named == "another" else named


def test_after_all_bad_input_the_decision_can_still_be_rewarded_once(fleet: Fleet) -> None:
    """So no refused reward was taken for it: a second one is refused for that reason."""
    body = {"arm": fleet.decision["arm"], "ticket": fleet.decision["ticket"], "reward": 1}
    first, second = (
        httpx.post(fleet.edge.url("edge") + REWARD, json=body, timeout=DEADLINE, trust_env=False) for _ in range(2)
    )
    assert (first.status_code, second.status_code) == (204, 409)
