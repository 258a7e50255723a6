"""What f sites say, whatever it is and whenever they say it: the evidence that counts is at most what the others made.

A site counts as honest until it begins to lie: what its purse held then may stay.
"""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from amounts import examples
from outvote.core.messages import Vote
from outvote.core.tally.guarded import GuardedEvidence
from outvote.core.task import Task
from outvote.core.votes.server import VoteServer

SITES = 5
NEARLY = 1e-9


@st.composite
def histories(draw: st.DrawFn) -> tuple[Task, dict[int, int], list[tuple[int, int, tuple[int, ...]]]]:
    """A task, when each liar begins, and rounds of (site, size, successes of each arm)."""
    tolerate = draw(st.integers(1, 2))
    fields: dict[str, Any] = {"epsilon": draw(st.sampled_from([0, 0.3])), "delta": 0.05, "floor": 3}
    arms = draw(st.integers(2, 3))
    task = Task(arms=arms, players=SITES, protocol="tally", tolerate=tolerate, **fields)
    began = draw(st.dictionaries(st.integers(0, SITES - 1), st.integers(0, 12), max_size=tolerate))
    rounds = draw(
        st.lists(
            st.sampled_from((3, 7, 127)).flatmap(
                lambda size: st.tuples(
                    st.integers(0, SITES - 1),
                    st.just(size),
                    st.tuples(*[st.sampled_from((0, size // 2, size)) for _ in range(arms)]),
                )
            ),
            min_size=4,
            max_size=24,
        )
    )
    return task, began, rounds


@examples(40)
@given(histories())
def test_liars_add_nothing_to_what_the_others_have_shown(
    history: tuple[Task, dict[int, int], list[tuple[int, int, tuple[int, ...]]]],
) -> None:
    task, began, rounds = history
    found = GuardedEvidence(task)
    frozen: dict[int, list[float]] = {}
    for number, (site, size, results) in enumerate(rounds):
        for liar, begin in began.items():
            if begin <= number and liar not in frozen:
                frozen[liar] = [account.of.get(liar, (0.0, 0.0, 0.0))[1] for account in found.accounts]
        contenders = list(found.contenders)
        for arm in contenders:
            found.add(site, arm, size, results[arm])
        for arm, account in enumerate(found.accounts):
            honest = math.fsum(held for name, (_, held, _) in account.of.items() if name not in frozen)
            honest += math.fsum(values[arm] for values in frozen.values())
            assert account.log_wealth <= honest + NEARLY
        twin = GuardedEvidence(task)
        twin.restore(json.loads(json.dumps(found.snapshot())))
        assert twin.snapshot() == found.snapshot()
    again = GuardedEvidence(task)
    for site, size, results in rounds:
        for arm in list(again.contenders):
            again.add(site, arm, size, results[arm])
    assert again.snapshot() == found.snapshot()


@examples(80)
@given(st.data())
def test_the_best_arm_outlives_every_arm_that_all_honest_voters_drop_before_it(data: st.DataObject) -> None:
    """Lemma 4 with liars: arm 0 is best, the last arm bad; who is honest drops the bad one before the best."""
    arms, players = data.draw(st.integers(2, 4)), data.draw(st.integers(5, 8))
    tolerate = data.draw(st.integers(1, 2))
    active = data.draw(st.integers(1, max(1, 2 * (players - 2 * tolerate))))
    fields: dict[str, Any] = {"arms": arms, "players": players, "epsilon": 0.5, "delta": 0.05, "protocol": "dme"}
    task = Task(**fields, active_players=min(active, players), tolerate=tolerate)
    server, bad = VoteServer(task), arms - 1
    waiting: dict[int, list[int]] = {}
    for player in range(players):
        order = data.draw(st.permutations(range(arms)))
        if player >= tolerate and order.index(0) < order.index(bad):  # who is honest has the better order
            order = [{0: bad, bad: 0}.get(arm, arm) for arm in order]
        waiting[player] = order[: arms - 1]
    sent = dict.fromkeys(waiting, 0)
    while left := [player for player, order in waiting.items() if sent[player] < len(order)]:
        player = data.draw(st.sampled_from(left))
        server.receive(player, Vote(waiting[player][sent[player]], 0, sent[player]), 0)
        sent[player] += 1
        assert 0 in server.remaining or bad not in server.remaining
