"""The field `tolerate`, what liars can do as computed, and the liars of a simulation."""

from __future__ import annotations

import math
from typing import Any

import pytest

import outvote
from outvote import theory
from outvote.core.errors import InvalidInput, InvalidTask
from outvote.core.protocols import player
from outvote.core.tally.bets import bets, wealth
from outvote.core.tally.evidence import Evidence
from outvote.core.task import Task
from outvote.simulation.liars import LIES, Aim, Liar
from outvote.simulation.settings import read_settings

TALLY: dict[str, Any] = {"arms": 3, "players": 5, "epsilon": 0, "delta": 0.05, "protocol": "tally"}
DME: dict[str, Any] = {"arms": 3, "protocol": "dme", "players": 8, "epsilon": 0.5, "delta": 0.05}

# ---- the field


@pytest.mark.parametrize("tolerate", [-1, 3, 1.0, True, "1", None, 10**400])
def test_less_than_half_of_the_players_may_be_tolerated(tolerate: Any) -> None:
    with pytest.raises(InvalidTask, match="tolerate must be a whole number from 0 to 2, fewer than half of all 5"):
        Task(**TALLY, tolerate=tolerate)


@pytest.mark.parametrize(
    ("options", "most"),
    [({}, 2), ({"active_players": 1}, 3), ({"active_players": 6}, 2), ({"players": 3, "active_players": 2}, 1)],
)
def test_of_votes_so_many_that_the_others_can_still_decide(options: dict[str, Any], most: int) -> None:
    fields = DME | options
    assert Task(**fields, tolerate=most).quorums == (math.ceil(Task(**fields).active_players / 2) + most,)
    with pytest.raises(InvalidTask, match="tolerate"):
        Task(**fields, tolerate=most + 1)
    assert theory.most_tolerated(fields["players"], fields.get("active_players", fields["players"])) == most


def test_the_smallest_instance_of_edme_must_be_able_to_decide() -> None:
    task = Task(**{**DME, "protocol": "edme"}, instances=[2, 8], tolerate=3)
    assert task.quorums == (4, 7)
    with pytest.raises(InvalidTask, match="declare fewer as active"):
        Task(**{**DME, "protocol": "edme"}, instances=[6, 8], tolerate=3)


# ---- what liars can do, computed


def test_so_many_liars_make_a_quorum() -> None:
    assert theory.liars_to_eliminate(64) == 32
    assert theory.liars_to_eliminate(64, honest_votes=30) == 2
    assert theory.liars_to_eliminate(1) == 1
    assert theory.liars_to_eliminate(1, tolerate=4) == 5
    assert theory.liars_to_eliminate(4, honest_votes=9) == 0


def test_of_tally_only_the_minority_counts() -> None:
    assert [theory.most_tolerated(players) for players in (1, 2, 3, 4, 64)] == [0, 0, 1, 1, 31]


@pytest.mark.parametrize(("size", "delta"), [(3, 0.05), (7, 0.05), (3, 0.001), (127, 0.05)])
def test_one_liar_refutes_an_arm_with_the_claims_that_are_computed_and_no_fewer(size: int, delta: float) -> None:
    claims = theory.claims_to_refute(size, delta)
    assert claims is not None
    task = Task(arms=2, players=4, epsilon=0, delta=delta, protocol="tally", floor=3)
    found = Evidence(task)
    for _ in range(claims // size):
        assert found.contenders == [0, 1]
        found.add("liar", 0, size, 0)
        found.add("liar", 1, size, size)
    assert found.contenders == [1]


def test_what_honest_sites_have_reported_must_be_outweighed() -> None:
    fresh = theory.claims_to_refute(3, 0.05)
    after = theory.claims_to_refute(3, 0.05, suspect=(70, 100), rival=(50, 100))
    assert fresh is not None
    assert after is not None
    assert fresh < after
    found = Evidence(Task(arms=2, players=4, epsilon=0, delta=0.05, protocol="tally", floor=3))
    table = bets(127, None, 0.0)
    found.accounts[0].worse = list(table.worse[80])  # honest sites: 80 and 50 of 127
    found.accounts[1].better = list(table.better[50])
    found.accounts[0].log_wealth = wealth(table.log_weights, table.worse[80], table.better[50])
    found.accounts[0].successes, found.accounts[1].successes = 80, 50
    found.accounts[0].trials = found.accounts[1].trials = 127
    claims = theory.claims_to_refute(3, 0.05, suspect=(80, 127), rival=(50, 127))
    assert claims is not None
    for _ in range(claims // 3):
        assert found.contenders == [0, 1]
        found.add("liar", 0, 3, 0)
        found.add("liar", 1, 3, 3)
    assert found.contenders == [1]


# ---- liars in a simulation


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("protocol", ["dme", "edme", "tally"])
def test_no_lie_is_refused_by_a_server(lie: str, protocol: str) -> None:
    """A message that is refused raises, and ends the trial."""
    result = outvote.simulate(
        protocol=protocol, means=(0.97, 0.5, 0.05), players=4, epsilon=None if protocol == "tally" else 0.9,
        liars=2, lie=lie, horizon=1500, trials=1, delta=0.5, grid=1,
    )  # fmt: skip
    assert (result.engine, result.liars, result.lie) == ("core", 2, lie)


def liar(lie: str) -> Liar:
    task = Task(**TALLY)
    return Liar(task, player(task, 0), Aim.of(lie, (0.5, 0.7, 0.1)))


def test_each_lie_says_what_it_promises() -> None:
    sent = {}
    for lie in LIES:
        teller = liar(lie)
        found: list[Any] = []
        for _ in range(9):
            teller.reward(teller.decide(0), 1.0, 0)
            found += teller.tick(0)
        sent[lie] = {each.arm: (each.successes, each.trials) for each in found}
    assert sent["praise"] == {0: (0, 3), 1: (0, 3), 2: (3, 3)}
    assert sent["damn"] == {0: (3, 3), 1: (0, 3), 2: (3, 3)}
    assert sent["flood"] == {0: (0, 127), 1: (0, 127), 2: (127, 127)}
    assert sent["opposite"] == {0: (0, 3), 1: (0, 3), 2: (0, 3)}
    assert sent["silent"] == {}
    assert sent["switch"] == {0: (3, 3), 1: (3, 3), 2: (3, 3)}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"liars": 5}, "liars must be at most the 4 players, got 5"),
        ({"liars": -1}, "liars must be a whole number of at least 0"),
        ({"lie": "fib"}, "lie must be one of"),
        ({"tolerate": 2}, "tolerate must be a whole number from 0 to 1"),
        ({"protocol": "me-local", "liars": 1}, "liars is for protocols, got 1 for the baseline 'me-local'"),
    ],
)
def test_settings_that_cannot_be_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_settings(**{"protocol": "tally", "players": 4, **options})
