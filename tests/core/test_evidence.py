"""The evidence against each arm: rounds by hand, and that the best arm's wealth is at most 1 on average.

By hand there are two bets with half of the money each: on means ¼ and ¾, and on .4 and .6; both have their border at
½. A tally of two with z successes pays

    z                           0        1       2
    ¼ and ¾, of the suspect     9/4      3/4     1/4
    .4 and .6, of the suspect   1.44     .96     .64

and, of the rival, the same in reverse.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import permutations, product
from typing import Any

import pytest

from outvote.core.tally import evidence as module
from outvote.core.tally.bets import Bets, bets, wealth
from outvote.core.tally.evidence import Evidence
from outvote.core.task import Task

from . import laws


def by_hand(size: int, budget: float | None, epsilon: float) -> Bets:
    rows = [
        (z * math.log(0.5) + (size - z) * math.log(1.5), z * math.log(0.8) + (size - z) * math.log(1.2))
        for z in range(size + 1)
    ]
    return Bets((math.log(0.5), math.log(0.5)), tuple(rows), tuple(reversed(rows)))


def new_task(arms: int, *, delta: float = 0.05, **options: Any) -> Task:
    fields: dict[str, Any] = {"players": 4, "epsilon": 0, "protocol": "tally", "floor": 2}
    return Task(arms=arms, delta=delta, **{**fields, **options})


@pytest.fixture
def evidence(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Evidence]:
    """Makes evidence with the two bets by hand."""
    monkeypatch.setattr(module, "bets", by_hand)
    return lambda arms, **options: Evidence(new_task(arms, **options))


def feed(evidence: Evidence, *rounds: Sequence[int], size: int = 2) -> None:
    """One tally of every arm, again and again."""
    for results in rounds:
        for arm, successes in enumerate(results):
            evidence.add(0, arm, size, successes)


def fortunes(evidence: Evidence) -> list[float]:
    return [math.exp(account.log_wealth) for account in evidence.accounts]


# ---- rounds by hand


def test_before_the_first_round_every_fortune_is_1(evidence: Callable[..., Evidence]) -> None:
    new = evidence(3)
    assert fortunes(new) == [1.0, 1.0, 1.0]
    assert (new.contenders, new.rounds, new.leader()) == ([0, 1, 2], 0, 0)


def test_one_round_of_two_arms(evidence: Callable[..., Evidence]) -> None:
    one = evidence(2)
    feed(one, (2, 0))
    # Arm 0 leads by its index. Arm 1 against it: ½·(9/4·9/4 + 1.44·1.44) = ½·(5.0625 + 2.0736) = 3.56805.
    # Arm 0 against arm 1: ½·(¼·¼ + .64·.64) = ½·(.0625 + .4096) = .23605.
    assert fortunes(one) == pytest.approx([0.23605, 3.56805])
    assert one.rounds == 1


def test_a_second_round_multiplies_each_bet_and_not_the_sum(evidence: Callable[..., Evidence]) -> None:
    two = evidence(2)
    feed(two, (2, 0), (1, 1))
    # Arm 1: ½·(5.0625·(¾)² + 2.0736·.96²) = ½·(2.84765625 + 1.91102976) = 2.379343005
    # Arm 0: ½·(.0625·(¾)² + .4096·.96²) = ½·(.03515625 + .37748736) = .206321805
    assert fortunes(two) == pytest.approx([0.206321805, 2.379343005])


def test_every_arm_is_compared_with_the_leader_of_the_rounds_before_and_the_leader_with_the_second(
    evidence: Callable[..., Evidence],
) -> None:
    three = evidence(3)
    feed(three, (0, 2, 1))
    # Nothing was known before, so arm 0 leads and arm 1 is second, though this round says otherwise.
    # Arm 0 against 1: 9/4·9/4 and 1.44·1.44: 3.56805. Arm 1 against 0: ¼·¼ and .64·.64: .23605.
    # Arm 2 against 0: ¾·¼ = .1875 and .96·.64 = .6144: .40095.
    assert fortunes(three) == pytest.approx([3.56805, 0.23605, 0.40095])
    assert three.leader() == 1  # standings .5/3, 2.5/3, 1.5/3
    feed(three, (0, 2, 1))
    # Arm 0 against 1, as before: ½·(5.0625² + 2.0736²) = ½·(25.62890625 + 4.29981696) = 14.964361605.
    # Arm 1 against 2: from ½·(¼·¾ + .64·.96) = .40095 to ½·(.1875² + .6144²) = .206321805.
    # Arm 2 against 1: from ½·(¾·9/4 + .96·1.44) = 1.53495 to ½·(1.6875² + 1.3824²) = 2.379343005.
    expected = [14.964361605, 0.23605 * 0.206321805 / 0.40095, 0.40095 * 2.379343005 / 1.53495]
    assert fortunes(three) == pytest.approx(expected)


def test_a_round_of_another_size_goes_on_with_the_same_bets(evidence: Callable[..., Evidence]) -> None:
    mixed = evidence(2)
    feed(mixed, (2, 0))
    feed(mixed, (5, 0), size=5)
    # Arm 1: ½·(5.0625·1.5^10 + 2.0736·1.2^10)
    assert fortunes(mixed)[1] == pytest.approx(0.5 * (5.0625 * 1.5**10 + 2.0736 * 1.2**10))
    assert [account.trials for account in mixed.accounts] == [7, 7]
    assert [account.successes for account in mixed.accounts] == [7, 0]


def test_a_round_with_the_real_bets_is_their_mixture() -> None:
    real = Evidence(new_task(2))
    feed(real, (2, 1), (2, 0))
    table = bets(2, None, 0.0)
    paid = [
        math.exp(weight + table.worse[1][index] + table.worse[0][index] + 2 * table.better[2][index])
        for index, weight in enumerate(table.log_weights)
    ]
    assert fortunes(real)[1] == pytest.approx(math.fsum(paid))


# ---- who is refuted


def test_an_arm_is_refuted_when_its_fortune_reaches_one_over_delta(evidence: Callable[..., Evidence]) -> None:
    # Arm 1 has 3.56805, then 14.96, then ½·(5.0625³ + 2.0736³) = 69.3; 1/.05 = 20
    some = evidence(2)
    feed(some, (2, 0), (2, 0))
    assert some.contenders == [0, 1]
    feed(some, (2, 0))
    assert some.contenders == [0]
    assert fortunes(some)[1] == pytest.approx(0.5 * (5.0625**3 + 2.0736**3))


@pytest.mark.parametrize(("delta", "contenders"), [(1 / 14.965, [0, 1]), (1 / 14.964, [0])])
def test_the_limit_is_exactly_one_over_delta(
    delta: float, contenders: list[int], evidence: Callable[..., Evidence]
) -> None:
    some = evidence(2, delta=delta)
    feed(some, (2, 0), (2, 0))  # 14.964361605
    assert some.contenders == contenders


@pytest.mark.parametrize(("delta", "contenders"), [(2 / 14.965, [0, 1]), (2 / 14.964, [0])])
def test_where_there_is_an_epsilon_half_of_delta_is_for_refuting(
    delta: float, contenders: list[int], evidence: Callable[..., Evidence]
) -> None:
    some = evidence(2, delta=delta, epsilon=0.9)
    some._margin_threshold = math.inf  # the stop is tested below
    feed(some, (2, 0), (2, 0))
    assert some.contenders == contenders


def test_the_strongest_evidence_is_dropped_first_and_never_the_last_arm(evidence: Callable[..., Evidence]) -> None:
    some = evidence(4)
    for account, log_wealth in zip(some.accounts, (50.0, 90.0, 40.0, 70.0), strict=True):
        account.log_wealth = log_wealth  # all of them beyond ln 20, and a round of even results cannot change that
    feed(some, (1, 1, 1, 1))
    assert some.contenders == [2]
    feed(some, (0, 0, 0, 0))
    assert some.contenders == [2]
    assert some.rounds == 1  # nothing is left to compare


def test_of_equally_refuted_arms_the_last_stays(evidence: Callable[..., Evidence]) -> None:
    some = evidence(3)
    for account in some.accounts:
        account.log_wealth = 100.0
    some._drop_the_refuted()
    assert some.contenders == [2]


def test_the_leader_is_the_contender_with_the_highest_standing_and_the_lowest_index(
    evidence: Callable[..., Evidence],
) -> None:
    some = evidence(3)
    feed(some, (1, 2, 2))
    assert some.leader() == 1
    some.contenders.remove(1)
    assert some.leader() == 2
    assert [account.standing for account in some.accounts] == pytest.approx([1.5 / 3, 2.5 / 3, 2.5 / 3])


# ---- which tallies make a round


def test_a_round_needs_a_tally_of_every_contender_of_one_size(evidence: Callable[..., Evidence]) -> None:
    some = evidence(3)
    assert some.add("a", 0, 2, 1) == []
    assert some.add("a", 1, 5, 1) == []
    assert some.add("b", 2, 2, 1) == []
    assert some.add("b", 0, 5, 3) == []
    assert [some.waiting(arm) for arm in range(3)] == [2, 1, 1]
    assert some.rounds == 0
    assert some.add("c", 2, 5, 4) == [("b", 0, 5, 3), ("a", 1, 5, 1), ("c", 2, 5, 4)]
    assert [some.waiting(arm) for arm in range(3)] == [1, 0, 1]
    assert some.add("c", 1, 2, 2) == [("a", 0, 2, 1), ("c", 1, 2, 2), ("b", 2, 2, 1)]
    assert some.rounds == 2


def test_tallies_of_an_arm_are_used_in_the_order_in_which_they_came(evidence: Callable[..., Evidence]) -> None:
    some = evidence(2)
    for player, successes in (("a", 1), ("b", 0), ("c", 2)):
        some.add(player, 0, 2, successes)
    assert [some.add("d", 1, 2, 1)[0] for _ in range(3)] == [("a", 0, 2, 1), ("b", 0, 2, 0), ("c", 0, 2, 2)]


def test_once_an_arm_is_refuted_the_others_play_the_rounds_that_waited_for_it(
    evidence: Callable[..., Evidence],
) -> None:
    some = evidence(3)
    for _ in range(4):
        for arm in (0, 1):
            some.add("a", arm, 2, 2)
            some.add("a", arm, 5, 5)
    assert some.add("a", 2, 2, 0) and some.add("a", 2, 2, 0)  # noqa: PT018  # one round each
    assert (some.contenders, some.rounds) == ([0, 1, 2], 2)
    # The third refutes arm 2; then the fourth of size 2 and all four of size 5 need it no more.
    used = some.add("a", 2, 2, 0)
    assert (some.contenders, some.rounds) == ([0, 1], 3 + 1 + 4)
    assert [size for _, arm, size, _ in used if arm == 0] == [2] * 2 + [5] * 4
    assert [arm for _, arm, _, _ in used] == [0, 1, 2] + [0, 1] * 5


def test_the_order_in_which_tallies_of_different_arms_arrive_does_not_matter() -> None:
    rng = random.Random(5)
    streams = [[1, 2, 0, 2] * 3, [2, 1, 2, 0] * 3, [0] * 12]  # the third is refuted on the way
    found = []
    for _ in range(30):
        some, queues = Evidence(new_task(3, delta=0.2)), [list(stream) for stream in streams]
        while any(queues):
            arm = rng.choice([arm for arm in range(3) if queues[arm]])
            successes = queues[arm].pop(0)
            if arm in some.contenders:
                some.add(0, arm, 2, successes)
        found.append((some.contenders, fortunes(some), some.rounds))
    assert found[0][0] == [0, 1]
    assert all(each == found[0] for each in found)


def test_arms_are_treated_alike_whatever_their_index() -> None:
    # Once a round has set the arms apart (2, 1, 0; then 4, 2, 0; 5, 3, 1), no tie is left to the index.
    rounds = [(2, 1, 0), (2, 1, 0), (1, 1, 1), (0, 2, 0)]

    def found(order: Sequence[int]) -> list[float]:
        some = Evidence(new_task(3, delta=1e-9))
        for number, results in enumerate(rounds):
            feed(some, [results[name] for name in order])
            if not number:
                for account in some.accounts:
                    account.log_wealth = 0.0  # what the first round was worth depends on who was taken for the leader
        return fortunes(some)

    for order in permutations(range(3)):
        assert found(order) == pytest.approx([found(range(3))[name] for name in order])


# ---- the best arm's wealth is at most 1 on average


def outcomes(arms: int, sizes: Sequence[int], task: Task) -> Iterable[tuple[tuple[tuple[int, ...], ...], Evidence]]:
    """Every possible result of so many rounds, and the evidence after them."""
    for results in product(*(product(range(size + 1), repeat=arms) for size in sizes)):
        some = Evidence(task)
        for size, each in zip(sizes, results, strict=True):
            feed(some, each, size=size)
        yield results, some


MEANS: dict[int, list[tuple[float, ...]]] = {
    2: [(0.5, 0.5), (0.3, 0.3), (0.98, 0.98), (0.6, 0.5), (0.5, 0.6), (0.9, 0.1), (1.0, 1.0), (0.0, 0.0), (0.02, 0.01)],
    3: [(0.5, 0.5, 0.5), (0.2, 0.2, 0.2), (0.9, 0.9, 0.9), (0.7, 0.7, 0.1), (0.3, 0.6, 0.6), (0.2, 0.3, 0.25)],
}


@pytest.mark.parametrize(
    ("arms", "sizes", "options"),
    [
        (2, (2,), {}),
        (2, (2, 2), {}),
        (2, (2, 2), {"delta": 0.5}),
        (2, (3, 3), {"floor": 3}),
        (2, (2, 5), {}),
        (2, (2, 2), {"privacy_budget": 1.0}),
        (2, (3, 3), {"floor": 3, "privacy_budget": 0.5}),
        (2, (2, 2, 2), {"delta": 0.7}),
        (3, (2,), {}),
        (3, (2, 2), {"delta": 0.6}),
        (3, (2, 2), {"privacy_budget": 2.0}),
        (3, (3,), {"floor": 3}),
    ],
    ids=str,
)
def test_the_best_arms_wealth_is_at_most_1_on_average_after_any_number_of_rounds(
    arms: int, sizes: tuple[int, ...], options: dict[str, Any]
) -> None:
    task = new_task(arms, **options)
    totals = {(means, arm): 0.0 for means in MEANS[arms] for arm in range(arms) if means[arm] == max(means)}
    weights = dict.fromkeys(MEANS[arms], 0.0)
    law = {
        (size, mean): laws.sent(size, mean, task.privacy_budget)
        for size in sizes
        for mean in sum(MEANS[arms], start=())
    }
    for results, some in outcomes(arms, sizes, task):
        found = fortunes(some)
        for means in MEANS[arms]:
            likely = math.prod(
                law[size, mean][z]
                for size, each in zip(sizes, results, strict=True)
                for mean, z in zip(means, each, strict=True)
            )
            weights[means] += likely
            for arm in range(arms):
                if (means, arm) in totals:
                    totals[means, arm] += likely * found[arm]
    assert list(weights.values()) == pytest.approx([1.0] * len(weights))
    assert max(totals.values()) <= 1 + 1e-12
    assert max(totals.values()) > 0.75  # and little is given away


def test_a_worse_arms_wealth_grows_on_average() -> None:
    law = {mean: laws.binomial(2, mean) for mean in (0.9, 0.3)}
    mean_wealth = math.fsum(
        law[0.9][first] * law[0.3][second] * fortunes(some)[1]
        for ((first, second),), some in outcomes(2, (2,), new_task(2))
    )
    assert mean_wealth > 1.3


# ---- the ε-stop


def test_the_wealth_of_the_epsilon_stop_is_at_most_1_on_average_where_the_rival_is_worse_by_epsilon() -> None:
    epsilon = 0.3
    for budget in (None, 1.0):
        task = new_task(2, epsilon=epsilon, delta=1e-6, privacy_budget=budget)
        table = bets(2, budget, epsilon)
        totals = dict.fromkeys([(0.3, 0.0), (0.5, 0.2), (0.65, 0.35), (1.0, 0.7), (0.9, 0.1)], 0.0)
        for results, some in outcomes(2, (2, 2), task):
            suspect, rival = some.accounts
            paid = math.exp(wealth(table.log_weights, suspect.margin_worse, rival.margin_better))
            for means in totals:
                law = [laws.sent(2, mean, budget) for mean in means]
                totals[means] += paid * math.prod(law[arm][each[arm]] for each in results for arm in (0, 1))
        assert max(totals.values()) <= 1 + 1e-12
        assert max(totals.values()) > 0.6


def test_the_leader_is_good_enough_once_no_other_can_be_better_by_epsilon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # By hand: bets of the stop that pay 3/2 a round for even results, those on differences nothing. The stop needs
    # 2·(K − 1)/δ = 2·2/.4 = 10: (3/2)^5 = 7.6, (3/2)^6 = 11.4.
    def half_as_much_again(size: int, budget: float | None, epsilon: float) -> Bets:
        each = math.log(1.5) / 2 if epsilon else 0.0
        return Bets((0.0,), ((each,),) * (size + 1), ((each,),) * (size + 1))

    monkeypatch.setattr(module, "bets", half_as_much_again)
    some = Evidence(new_task(3, epsilon=0.1, delta=0.4))
    feed(some, *[(1, 2, 1)] * 5)
    assert some.contenders == [0, 1, 2]
    feed(some, (1, 2, 1))
    assert some.contenders == [1]


@pytest.mark.parametrize(
    ("results", "contenders"), [((2, 0, 1), [0, 1, 2]), ((1, 2, 0), [0, 1, 2]), ((2, 0, 0), [0]), ((0, 0, 2), [2])]
)
def test_the_stop_needs_every_other_contender(
    results: tuple[int, ...], contenders: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only an arm without success is shown not to be better than the leader by ε: it pays 1000, others pay 1.
    def only_for_the_poorest(size: int, budget: float | None, epsilon: float) -> Bets:
        each = ((math.log(1000.0),), (0.0,), (0.0,)) if epsilon else ((0.0,),) * 3
        return Bets((0.0,), each, ((0.0,),) * 3)

    monkeypatch.setattr(module, "bets", only_for_the_poorest)
    some = Evidence(new_task(3, epsilon=0.1))
    feed(some, results)
    assert some.contenders == contenders


def test_equal_arms_are_told_apart_with_an_epsilon_only() -> None:
    fixed, tolerant = Evidence(new_task(2)), Evidence(new_task(2, epsilon=0.4))
    for some in (fixed, tolerant):
        for _ in range(200):
            feed(some, (1, 1))
    assert fixed.contenders == [0, 1]
    assert tolerant.contenders == [0]
    assert tolerant.rounds < 50


# ---- snapshots


def through_json(record: Mapping[str, Any]) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(record, allow_nan=False))
    return loaded


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.2}, {"privacy_budget": 1.0}], ids=str)
def test_evidence_restored_at_any_step_goes_on_as_the_original(options: dict[str, Any]) -> None:
    rng = random.Random(8)
    task = new_task(3, delta=0.3, **options)
    some = Evidence(task)
    twins: list[Evidence] = []
    for _ in range(60):
        arm = rng.randrange(3)
        size = rng.choice([2, 2, 5])
        successes = sum(rng.random() < (0.9, 0.8, 0.2)[arm] for _ in range(size))
        twins.append(Evidence(task))
        twins[-1].restore(through_json(some.snapshot()))
        if arm in some.contenders:
            used = some.add("a", arm, size, successes)
            assert [twin.add("a", arm, size, successes) for twin in twins] == [used] * len(twins)
        assert all(twin.snapshot() == some.snapshot() for twin in twins)
    assert some.rounds > 3


# ---- eliminated elsewhere


def test_arms_that_were_eliminated_elsewhere_contend_no_more(evidence: Callable[..., Evidence]) -> None:
    three = evidence(3)
    feed(three, (0, 2, 1))
    three.withdraw([1])
    assert three.contenders == [0, 2]
    feed(three, (0, 2, 1))
    assert three.rounds == 2, "a round waits for nothing of an arm that is out"


def test_if_the_only_contender_is_eliminated_elsewhere_the_least_refuted_stays(
    evidence: Callable[..., Evidence],
) -> None:
    three = evidence(3, delta=0.5)
    feed(three, (1, 2, 0), (1, 2, 0))  # arm 1 is best, and arm 2 is worse than arm 0
    assert three.contenders == [1]
    assert fortunes(three)[2] > fortunes(three)[0] >= 2
    three.withdraw([1])
    assert three.contenders == [0]
    three.withdraw([0, 1])
    assert three.contenders == [2]
    three.withdraw([0, 1, 2])
    assert three.contenders == [2], "never none"


def test_those_that_only_the_epsilon_stop_ended_contend_again_without_its_winner() -> None:
    found = Evidence(new_task(3, delta=0.5, epsilon=0.5, floor=3))
    while len(found.contenders) > 1:
        feed(found, (2, 2, 2), size=3)
    (winner,) = found.contenders
    assert max(fortunes(found)) < 2 / 0.5
    found.withdraw([winner])
    assert found.contenders == [arm for arm in range(3) if arm != winner]
