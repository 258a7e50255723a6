"""The code of the guide with the stock SDK and provider: the fleet gets what visitors did, and finds the best variant.

Successes only, every outcome, or every outcome three times: each tally in the log is compared with what the test itself
counted, to the last success. Variants are worth .2, .5 and .8. Seeds are fixed; the worse ones win with probability
δ = .01 at most.
"""

from __future__ import annotations

import random
import runpy
from collections import Counter

import pytest

from helpers.audit import read_log
from helpers.processes import Running, request, sent_all, until
from outvote.core.decisions import Ticket
from outvote.core.messages import Tally
from outvote.log.records import Coder, DownSubject, UpSubject, parse, read_task

from .shop import HERE, create, end, play, tasks

WORTH = {"red": 0.2, "green": 0.5, "blue": 0.8}
REPORTED = {"successes only": (0, 1), "every outcome": (1, 1), "every outcome three times": (3, 3)}
"""How often a failure and a success are reported."""


@pytest.mark.parametrize("reported", REPORTED)
def test_the_fleet_gets_the_right_means_and_the_right_winner(
    reported: str, server: Running, ams: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = create(server, ams, variants=list(WORTH), sites=["ams"], reward_window=2, delta=0.01)
    monkeypatch.setenv("OUTVOTE_EDGE", ams.url("edge"))
    shop, rng = runpy.run_path(str(HERE / "stock_shop.py")), random.Random(reported)
    made, succeeded = Counter[tuple[int, int]](), Counter[tuple[int, int]]()  # by number and arm of a tally
    rewarded = 0

    def visit() -> None:
        nonlocal rewarded
        variant, text = shop["button"]()
        bought = rng.random() < WORTH[variant]
        for _ in range(REPORTED[reported][bought]):
            shop["earned"](text, int(bought))
        ticket = Ticket.parse(text)
        if ticket is not None:  # else the winner is out
            made[ticket.group, ticket.arm] += 1
            succeeded[ticket.group, ticket.arm] += bought
            rewarded += REPORTED[reported][bought] > 0

    try:
        play(ams, visit)
    finally:
        end(shop)

    shown = tasks(ams)["shop"]
    assert shown["winner"] == "blue"
    names = ("decisions", "rewards", "out", "late", "refused")
    decisions, rewards, out, *ignored = (sum(each[name] for each in shown["seen"]) for name in names)
    assert (decisions, ignored) == (made.total(), [0, 0])
    assert rewards <= rewarded <= rewards + out  # a variant may fall between a decision and its reward

    sent_all(ams)
    fleet = f"{server.url('server')}/v1/tasks/shop"
    until(lambda: request(fleet)["messages"]["up"] == shown["messages_kept"], "the server has read it all")
    log = read_log(server.url("nats"))
    [created] = [record for record in log if record.subject == str(DownSubject(task_id, "task"))]
    coder = Coder(read_task(created.payload))
    trials, successes = Counter[int](), Counter[int]()
    for record in log:
        where = parse(record.subject)
        if isinstance(where, UpSubject) and where.task_id == task_id:
            tally = coder.read_up(where, record.payload)
            assert isinstance(tally, Tally)
            place = tally.sequence, tally.arm
            assert (tally.trials, tally.successes) == (made[place], succeeded[place])
            trials[tally.arm] += tally.trials
            successes[tally.arm] += tally.successes
    found = request(fleet)
    assert found["winner"] == "blue"
    assert [(each["trials"], each["successes"]) for each in found["variants"]] == [
        (trials[arm], successes[arm]) for arm in range(len(WORTH))
    ]
    assert min(trials.values()) > 0
