"""A shop whose button is a flag: a task on a real server, edges beside it, and visitors who buy or do not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openfeature import api
from openfeature.client import OpenFeatureClient
from openfeature.flag_evaluation import Reason
from openfeature.provider import AbstractProvider

from helpers.processes import Running, request, until

HERE = Path(__file__).parent
MEANS = {"red": 0.1, "green": 0.9, "blue": 0.1, "true": 0.9, "false": 0.1}
"""What buttons earn."""
SHOP: dict[str, Any] = {
    "name": "shop", "protocol": "tally", "variants": ["red", "green"], "sites": 1, "reward_window": 1,
    "epsilon": 0, "delta": 0.1,
}  # fmt: skip
SWITCH = {**SHOP, "name": "switch", "variants": ["true", "false"]}


def create(server: Running, *edges: Running, **fields: Any) -> str:
    """The id of a new task, which all these edges know."""
    made = request(f"{server.url('server')}/v1/tasks", {**SHOP, **fields})
    for edge in edges:
        until(lambda edge=edge: made["name"] in tasks(edge), "the edge knows the task")  # type: ignore[misc]
    return str(made["id"])


def tasks(edge: Running) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in request(f"{edge.url('edge')}/v1/tasks")["tasks"]}


def counts(edge: Running, task: str = "shop") -> tuple[int, int]:
    """Decisions, and how many of them have a reward."""
    seen = tasks(edge)[task]["seen"]
    return sum(each["decisions"] for each in seen), sum(each["rewards"] for each in seen)


def play(edge: Running, event: Callable[[], object], task: str = "shop") -> None:
    """Events, some at a time, until the edge knows the winner."""

    def over() -> bool:
        if tasks(edge)[task]["finished"]:
            return True
        for _ in range(10):
            event()
        return False

    until(over, "the winner comes out")


def end(shop: dict[str, Any]) -> None:
    """Let go of what `stock_shop.py` has opened."""
    provider = shop["flags"].provider
    api.clear_providers()
    provider.session.close()
    shop["edge"].close()


def buys(rng: random.Random, variant: object) -> float:
    return float(rng.random() < MEANS[str(variant).lower()])


def green_has_won(edge: Running, flags: OpenFeatureClient) -> None:
    """The edge knows the winner, and whoever asks gets it from now on."""
    assert tasks(edge)["shop"]["winner"] == "green"
    after = flags.get_string_details("shop", "none")
    assert (after.value, after.variant, after.reason) == ("green", "green", Reason.STATIC)


@contextmanager
def provided(provider: AbstractProvider) -> Iterator[OpenFeatureClient]:
    """A client of the SDK with this provider, and nothing left behind."""
    domain = f"shop {id(provider)}"
    api.set_provider_and_wait(provider, domain)
    try:
        yield api.get_client(domain)
    finally:
        api.clear_providers()
