"""`outvote.openfeature` with a real edge: the stock SDK evaluates, `track` rewards, and a decision counts once."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import runpy
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from openfeature import api
from openfeature.client import OpenFeatureClient
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode, ProviderNotReadyError
from openfeature.flag_evaluation import Reason
from openfeature.track import TrackingEventDetails

from helpers.processes import Running, Start, an_edge, request, until
from helpers.secured_edge import secured_edge
from outvote.client import Client, EdgeError
from outvote.openfeature import OutvoteProvider
from whole.test_client import answering, response

from .shop import HERE, SWITCH, buys, counts, create, green_has_won, play, provided

PATIENT = {"reward_window": 60}
"""Longer than a test takes: no reward is late."""
TICKET = r"[A-Za-z0-9_-]{8}(\.\d+){3}\.\d{13}"
ANN, BOB = EvaluationContext("ann"), EvaluationContext("bob")


@pytest.fixture
def flags(ams: Running) -> Iterator[OpenFeatureClient]:
    with provided(OutvoteProvider(ams.url("edge"), timeout=20)) as client:
        yield client


def test_a_task_is_driven_to_its_winner_by_the_code_of_the_documents(
    server: Running, ams: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(server, ams)
    monkeypatch.setenv("OUTVOTE_EDGE", ams.url("edge"))
    shop, rng = runpy.run_path(str(HERE / "our_shop.py")), random.Random(2)
    try:

        def visit() -> None:
            visitor = f"visitor {rng.randrange(1000)}"
            shop["earned"](visitor, buys(rng, shop["button"](visitor)))

        play(ams, visit)
        green_has_won(ams, shop["flags"])
    finally:
        api.clear_providers()


def test_strings_and_booleans_come_with_variant_reason_and_ticket(
    server: Running, ams: Running, flags: OpenFeatureClient
) -> None:
    create(server, ams)
    create(server, ams, **SWITCH)
    shown = flags.get_string_details("shop", "none", ANN)
    assert (shown.variant, shown.reason, shown.error_code) == (shown.value, Reason.SPLIT, None)
    assert re.fullmatch(TICKET, str(shown.flag_metadata["ticket"]))
    on = flags.get_boolean_details("switch", False, ANN)
    assert on.value is (on.variant == "true")
    request(f"{server.url('server')}/v1/tasks/shop/kill", method="POST")
    request(f"{server.url('server')}/v1/tasks/switch/stop", method="POST")
    until(lambda: flags.get_string_details("shop", "none").reason == Reason.DISABLED, "the edge has heard of the kill")
    until(lambda: flags.get_boolean_details("switch", False).reason == Reason.STATIC, "and of the stop")

    async def later() -> None:
        assert (await flags.get_string_details_async("shop", "none")).reason == Reason.DISABLED
        assert (await flags.get_boolean_details_async("switch", False)).reason == Reason.STATIC
        assert (await flags.get_object_details_async("shop", {})).error_code == ErrorCode.TYPE_MISMATCH

    asyncio.run(later())


def test_the_client_evaluates_and_rewards(server: Running, ams: Running) -> None:
    create(server, ams, **PATIENT)
    with Client(ams.url("edge"), timeout=20) as client:
        found = client.evaluate("shop")
        assert (found.value, found.reason) == (found.decision.variant, "SPLIT")
        assert client.reward(found.decision, 1)
        for name in ("nobody", "shop/x", "../shop", ""):
            with pytest.raises(EdgeError, match=r"the edge answered 404: (unknown task|nothing is at)"):
                client.evaluate(name)
    assert counts(ams) == (1, 1)


def test_what_cannot_be_evaluated_is_the_default_with_its_reason(
    server: Running, ams: Running, flags: OpenFeatureClient
) -> None:
    create(server, ams)
    unknown = flags.get_string_details("nobody", "mine")
    assert (unknown.value, unknown.reason, unknown.error_code) == ("mine", Reason.ERROR, ErrorCode.FLAG_NOT_FOUND)
    for mismatch in (
        flags.get_integer_details("shop", 3),
        flags.get_float_details("shop", 0.5),
        flags.get_object_details("shop", {}),
    ):
        assert (mismatch.reason, mismatch.error_code) == (Reason.ERROR, ErrorCode.TYPE_MISMATCH)
    assert counts(ams)[0] == 0  # none of these asked for a decision
    assert flags.get_boolean_details("shop", True).error_code == ErrorCode.TYPE_MISMATCH
    flags.track("shop")
    assert counts(ams)[1] == 0  # nor does what was not shown have a reward
    ams.end(signal.SIGTERM)
    away = flags.get_string_details("shop", "mine")
    assert (away.value, away.reason, away.error_code) == ("mine", Reason.ERROR, ErrorCode.PROVIDER_NOT_READY)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (response("200 OK", b"<html>"), ErrorCode.PARSE_ERROR),
        (response("200 OK", b'{"value": 3, "reason": "SPLIT", "variant": "3", "metadata": {}}'), ErrorCode.PARSE_ERROR),
        (response("200 OK", b'{"value": 3, "reason": "SPLIT", "variant": "3", "metadata": {"ticket": "1"}}'),
         ErrorCode.PARSE_ERROR),
        (response("500 Failed", b'{"errorDetails": "as it is"}'), ErrorCode.GENERAL),
        (response("413 Large", b"[]"), ErrorCode.GENERAL),
        (b"", ErrorCode.PROVIDER_NOT_READY),
    ],
)  # fmt: skip
def test_what_is_no_edge_is_the_default(answer: bytes, code: ErrorCode) -> None:
    with answering(lambda: answer) as (url, _), provided(OutvoteProvider(url)) as flags:
        found = flags.get_string_details("shop", "mine")
        assert (found.value, found.error_code) == ("mine", code)


def test_a_decision_is_rewarded_by_who_was_shown_it_and_counts_once(
    server: Running, ams: Running, flags: OpenFeatureClient
) -> None:
    create(server, ams, **PATIENT)
    flags.track("shop", ANN)  # nothing was shown yet
    flags.get_string_value("shop", "none", ANN)
    flags.get_string_value("shop", "none", BOB)
    flags.get_string_value("shop", "none")
    flags.track("shop", EvaluationContext("carl"))
    flags.track("page viewed", ANN)  # an event of another name
    assert counts(ams) == (3, 0)
    for value in (1.5, -1.0, float("nan")):
        with pytest.raises(ValueError, match="a number from 0 to 1"):
            flags.track("shop", ANN, TrackingEventDetails(value))
    for _ in range(3):
        flags.track("shop", ANN, TrackingEventDetails(0.0))
        flags.track("shop", BOB)
        flags.track("shop")
    assert counts(ams) == (3, 3)


def test_a_reward_is_that_of_the_last_decision(server: Running, ams: Running, flags: OpenFeatureClient) -> None:
    create(server, ams, **PATIENT)
    for _ in range(5):
        flags.get_string_value("shop", "none", ANN)
    for _ in range(5):
        flags.track("shop", ANN)
    assert counts(ams) == (5, 1)


def test_what_was_shown_without_an_edge_does_not_reward_an_earlier_decision(
    server: Running, start: Start, ams: Running
) -> None:
    create(server, ams, **PATIENT)
    with provided(OutvoteProvider(ams.url("edge"), timeout=3)) as flags:
        flags.get_string_value("shop", "none", ANN)
        ams.end(signal.SIGTERM)
        assert flags.get_string_value("shop", "mine", ANN) == "mine"
        again = an_edge(start, server, "ams", "--port", ams.port("edge"))
        flags.track("shop", ANN)
        assert counts(again) == (1, 0)


def test_a_reward_that_found_no_edge_may_be_tracked_again(
    server: Running, start: Start, ams: Running, caplog: pytest.LogCaptureFixture
) -> None:
    create(server, ams, **PATIENT)
    with provided(OutvoteProvider(ams.url("edge"))) as flags:
        flags.get_string_value("shop", "none", ANN)
        ams.end(signal.SIGTERM)
        flags.track("shop", ANN)  # no error to the application
        assert "rewards are lost" in caplog.text
        again = an_edge(start, server, "ams", "--port", ams.port("edge"))
        flags.track("shop", ANN)
        flags.track("shop", ANN)
        assert counts(again) == (1, 1)


def test_a_reward_that_was_not_answered_is_sent_again() -> None:
    evaluated = b'{"value": "red", "variant": "red", "reason": "SPLIT", "metadata": {"ticket": "7"}}'
    answers = [response("200 OK", evaluated), b"", response("204 No Content", b"")]
    with answering(lambda: answers.pop(0)) as (url, requests), provided(OutvoteProvider(url, timeout=20)) as flags:
        assert flags.get_string_value("shop", "none", ANN) == "red"
        flags.track("shop", ANN)
    assert len(requests) == 3
    assert not any(b"ann" in each for each in requests), "a targeting key left the process"


def test_memory_is_bounded_and_the_oldest_is_forgotten(
    server: Running, ams: Running, flags: OpenFeatureClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(server, ams, **PATIENT)
    monkeypatch.setattr("outvote.openfeature.MOST_DECISIONS", 3)
    for visitor in range(5):
        flags.get_string_value("shop", "none", EvaluationContext(str(visitor)))
    for visitor in range(5):
        flags.track("shop", EvaluationContext(str(visitor)))
    assert counts(ams) == (5, 3)
    with pytest.raises(ValueError, match="must be an address like"):
        OutvoteProvider("127.0.0.1:8700")


def test_threads_share_a_provider(server: Running, ams: Running, flags: OpenFeatureClient) -> None:
    create(server, ams, **PATIENT)
    together = threading.Barrier(8)

    def visit(visitor: int) -> None:
        for event in range(10):
            flags.get_string_value("shop", "none", EvaluationContext(str(visitor)))
            flags.track("shop", EvaluationContext(str(visitor)), TrackingEventDetails(event % 2))
        flags.get_string_value("shop", "none", ANN)
        together.wait()
        flags.track("shop", ANN)  # of one decision, by all of them

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(visit, range(8)))
    assert counts(ams) == (88, 81)


def test_what_is_served_while_the_task_is_killed_is_not_rewarded(
    server: Running, ams: Running, flags: OpenFeatureClient
) -> None:
    create(server, ams, **PATIENT)
    request(f"{server.url('server')}/v1/tasks/shop/kill", method="POST")
    until(lambda: flags.get_string_details("shop", "none", ANN).reason == Reason.DISABLED, "the edge has heard of it")
    assert flags.get_string_details("shop", "none", ANN).flag_metadata == {"ticket": "uncounted"}
    before = counts(ams)
    flags.track("shop", ANN)
    assert counts(ams) == before


def test_it_is_shut_down_and_started_again_and_says_nothing(
    server: Running, ams: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    create(server, ams, **PATIENT)
    provider = OutvoteProvider(ams.url("edge"), timeout=20)
    assert provider.get_metadata().name == "outvote"
    with provided(provider) as flags:
        flags.get_string_value("shop", "none", EvaluationContext("zebra7531"))
    with pytest.raises(ProviderNotReadyError, match="was shut down"):
        provider.resolve_string_details("shop", "none")
    provider.shutdown()  # again
    with provided(provider) as flags:
        flags.track("shop", EvaluationContext("zebra7531"))  # it was forgotten
        flags.get_string_value("shop", "none", EvaluationContext("zebra7531"))
        flags.track("shop", EvaluationContext("zebra7531"))
    assert counts(ams) == (2, 1)
    assert "zebra7531" not in caplog.text
    assert not [record for record in caplog.records if record.name.startswith("outvote")]


def test_a_provider_shows_its_token_to_an_edge_that_wants_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with secured_edge(tmp_path) as edge:
        secret = edge.holders.secrets["shop"]
        provider = OutvoteProvider(edge.url, timeout=20, token=secret, ca=edge.ca)
        with provided(provider) as client:
            assert client.get_string_details("shop", "none", ANN).reason == Reason.SPLIT
            client.track("shop", ANN)
            provider.shutdown()
            provider.initialize(ANN)  # as the SDK does when it is set again
            assert client.get_string_value("shop", "none", ANN) in ("red", "green")
        with provided(OutvoteProvider(edge.url, timeout=20, ca=edge.ca)) as client:
            found = client.get_string_details("shop", "none", ANN)
            assert (found.value, found.error_code) == ("none", ErrorCode.GENERAL)
            assert "a token is needed" in str(found.error_message)
    assert secret not in caplog.text
    assert secret not in repr(provider) + repr(vars(provider))
