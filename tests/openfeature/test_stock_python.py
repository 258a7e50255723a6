"""The stock SDK with the stock provider for OFREP, unmodified: flags are evaluated, and a task is driven to its end."""

from __future__ import annotations

import random
import runpy
import signal
from collections.abc import Iterator

import httpx
import pytest
from openfeature import api
from openfeature.client import OpenFeatureClient
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import Reason

from network.processes import Running, Start, an_edge

from .shop import HERE, SWITCH, buys, create, green_has_won, play, provided


@pytest.fixture
def ams(start: Start, server: Running) -> Running:
    return an_edge(start, server, "ams")


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
    assert str(shown.flag_metadata["ticket"]).isdigit()
    on = flags.get_boolean_details("switch", False)
    assert on.value is (on.variant == "true")
    assert (on.reason, on.error_code) == (Reason.SPLIT, None)
    body = {"arm": on.variant, "ticket": on.flag_metadata["ticket"], "reward": 1}
    assert httpx.post(f"{ams.url('edge')}/v1/tasks/switch/reward", json=body).status_code == 204


def test_what_cannot_be_evaluated_is_the_default_with_its_reason(
    server: Running, ams: Running, flags: OpenFeatureClient
) -> None:
    create(server, ams)
    unknown = flags.get_string_details("nobody", "mine")
    assert (unknown.value, unknown.reason, unknown.error_code) == ("mine", Reason.ERROR, ErrorCode.FLAG_NOT_FOUND)
    assert "unknown task: got 'nobody', this edge hosts ['shop']" in str(unknown.error_message)
    for mismatch in (
        flags.get_boolean_details("shop", True),
        flags.get_integer_details("shop", 3),
        flags.get_float_details("shop", 0.5),
        flags.get_object_details("shop", {}),
    ):
        assert (mismatch.reason, mismatch.error_code) == (Reason.ERROR, ErrorCode.TYPE_MISMATCH)
    ams.end(signal.SIGTERM)
    away = flags.get_string_details("shop", "mine")
    assert (away.value, away.reason, away.error_code) == ("mine", Reason.ERROR, ErrorCode.GENERAL)


def test_a_task_is_driven_to_its_winner_by_the_code_of_the_documents(
    server: Running, ams: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(server, ams)
    monkeypatch.setenv("OUTVOTE_EDGE", ams.url("edge"))
    shop, rng = runpy.run_path(str(HERE / "stock_shop.py")), random.Random(1)
    try:

        def visit() -> None:
            variant, ticket = shop["button"]()
            assert ticket is not None
            shop["earned"](variant, ticket, buys(rng, variant))

        play(ams, visit)
        green_has_won(ams, shop["flags"])
        visit()  # goes on, and changes nothing
        ams.end(signal.SIGTERM)
        assert shop["button"]() == ("green", None)
    finally:
        provider = shop["flags"].provider
        api.clear_providers()
        provider.session.close()
