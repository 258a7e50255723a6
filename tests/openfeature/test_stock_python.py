"""The stock SDK with the stock provider for OFREP, unmodified: flags are evaluated, and a task is driven to its end."""

from __future__ import annotations

import random
import runpy
import signal
from collections.abc import Iterator

import httpx
import pytest
from openfeature.client import OpenFeatureClient
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.flag_evaluation import Reason

from helpers.processes import Running

from .shop import HERE, SWITCH, buys, counts, create, end, green_has_won, play, provided


@pytest.fixture
def flags(ams: Running) -> Iterator[OpenFeatureClient]:
    provider = OFREPProvider(ams.url("edge"))
    with provided(provider) as client:
        yield client
    provider.session.close()


def test_strings_and_booleans_come_with_variant_reason_and_ticket(
    server: Running, ams: Running, flags: OpenFeatureClient
) -> None:
    create(server, ams)
    create(server, ams, **SWITCH)
    visitor = EvaluationContext("visitor 17", {"country": "NL", "basket": [{"price": 3.5}]})
    shown = flags.get_string_details("shop", "none", visitor)
    assert shown.value in ("red", "green")
    assert (shown.variant, shown.reason, shown.error_code) == (shown.value, Reason.SPLIT, None)
    assert str(shown.flag_metadata["ticket"]).count(".") == 4
    on = flags.get_boolean_details("switch", False)
    assert on.value is (on.variant == "true")
    assert (on.reason, on.error_code) == (Reason.SPLIT, None)
    body = {"ticket": on.flag_metadata["ticket"], "reward": 1}
    assert httpx.post(f"{ams.url('edge')}/v1/tasks/switch/reward", json=body).status_code == 204


def test_a_task_is_driven_to_its_winner_by_the_code_of_the_documents(
    server: Running, ams: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(server, ams)
    monkeypatch.setenv("OUTVOTE_EDGE", ams.url("edge"))
    shop, rng = runpy.run_path(str(HERE / "stock_shop.py")), random.Random(1)
    try:

        def visit() -> None:
            variant, ticket = shop["button"]()
            shop["earned"](ticket, buys(rng, variant))

        play(ams, visit)
        green_has_won(ams, shop["flags"])
        before = counts(ams)
        visit()  # goes on, and changes nothing
        assert counts(ams) == before
        ams.end(signal.SIGTERM)
        assert shop["button"]() == ("green", "uncounted")
    finally:
        end(shop)
