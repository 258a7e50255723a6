"""Lifts: against all pairs of means on a fine grid, mirrored, narrower than the box of two intervals, at the ends."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise

import pytest

from outvote.core.errors import UnknownArm
from outvote.core.messages import Tally
from outvote.core.tally.confidence import JeffreysOutbid, Outbid, interval, outbid
from outvote.core.tally.cycle import Cycle
from outvote.core.tally.lift import Lift, lift
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task

from . import laws

LIMIT = math.log(45 / 0.05)  # all pairs of ten arms
WIDENED = 1e-6
"""An end may be so much too wide, and never too narrow."""

Counts = list[tuple[int, list[int]]]


def reported(mean: float, tallies: int, sizes: Sequence[int], budget: float | None, seed: int) -> Counts:
    """So many tallies of each size, drawn from their law."""
    rng = random.Random(seed)
    counts: Counts = []
    for size in sizes:
        drawn = rng.choices(range(size + 1), laws.sent(size, mean, budget), k=tallies)
        counts.append((size, [drawn.count(z) for z in range(size + 1)]))
    return counts


def by_definition(counts: Counts, budget: float | None) -> Callable[[float], float]:
    """ln(mixture/likelihood), the mixture without noise as an integral over the arc-sine scale, by many points."""
    points = 128 if budget is not None else 4_000

    def log_likelihood(mean: float) -> float:
        total = 0.0
        for size, often in counts:
            if budget is None:
                for z, count in enumerate(often):
                    for events, p in ((z * count, mean), ((size - z) * count, 1 - mean)):
                        total += (events * math.log(p) if p > 0 else -math.inf) if events else 0.0
            else:
                law = laws.sent(size, mean, budget)
                total += sum(count * math.log(p) for count, p in zip(often, law, strict=True) if count)
        return total

    logs = [log_likelihood(math.sin((i + 0.5) * math.pi / 2 / points) ** 2) for i in range(points)]
    top = max(logs)
    mixture = top + math.log(math.fsum(math.exp(each - top) for each in logs) / points)
    return lambda mean: mixture - log_likelihood(mean)


def possible(
    first: Counts, second: Counts, budget: float | None, limit: float, steps: int
) -> list[tuple[float, float]]:
    """For each p of a grid the smallest and the largest q of the grid with both outbids within the limit, as pairs."""
    means = [i / steps for i in range(steps + 1)]
    one, two = (list(map(by_definition(counts, budget), means)) for counts in (first, second))
    found = []
    for p, used in zip(means, one, strict=True):
        inside = [q for q, more in zip(means, two, strict=True) if used + more <= limit]
        found += [(p, inside[0]), (p, inside[-1])] if inside else []
    return found


CASES = [  # means, tallies of each size, sizes, budget
    (0.5, 0.4, 20, (3, 7), None),
    (0.1, 0.6, 4, (3, 7), None),
    (0.02, 0.05, 30, (3, 7), None),
    (1.0, 0.9, 10, (3, 7), None),
    (0.0, 0.0, 10, (3, 7), None),
    (0.5, 0.4, 10, (7, 15), 1.0),
    (0.05, 0.3, 40, (7, 15), 1.0),
    (0.95, 0.7, 3, (7, 15), 0.5),
    (0.0, 1.0, 20, (7, 15), 2.0),
    (0.3, 0.2, 5, (7,), 20.0),
]


@pytest.mark.parametrize(("p", "q", "tallies", "sizes", "budget"), CASES, ids=str)
def test_a_lift_holds_all_possible_pairs_and_little_more(
    p: float, q: float, tallies: int, sizes: tuple[int, ...], budget: float | None
) -> None:
    first, second = (reported(mean, tallies, sizes, budget, seed) for seed, mean in enumerate((p, q)))
    found = lift(outbid(first, budget), outbid(second, budget), LIMIT)
    steps = 1_000 if budget is None else 300
    pairs = possible(first, second, budget, LIMIT, steps)
    differences = [a - b for a, b in pairs]
    (low, high), coarse = found.difference_interval, 2 / steps
    assert low <= min(differences) <= low + coarse
    assert high - coarse <= max(differences) <= high
    least, most = found.relative_interval
    assert all(a >= (1 + least) * b for a, b in pairs)
    assert most is None or all(a <= (1 + most) * b for a, b in pairs)
    assert (most is None) == any(b == 0 for _, b in pairs)
    assert (least == -1) == any(a == 0 for a, _ in pairs)


def on_the_border(arm: Outbid, rival: Outbid, limit: float, steps: int = 4_000) -> list[tuple[float, float]]:
    """Pairs (p, q), p above the best and q below, that use up the limit: q found by halving for each p."""
    top = interval(arm, limit - rival(rival.best))[1]
    pairs = []
    for step in range(steps + 1):
        p = arm.best + (top - arm.best) * step / steps
        inside, outside = rival.best, 0.0
        for _ in range(60):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if arm(p) + rival(middle) <= limit else (inside, middle)
        pairs.append((p, inside))
    return pairs


@pytest.mark.parametrize("budget", [None, 1.0, 20.0])
@pytest.mark.parametrize("tallies", [2, 200])
@pytest.mark.parametrize("means", [(0.5, 0.4), (0.08, 0.15), (0.97, 0.9)])
def test_an_end_is_never_too_narrow_and_at_most_a_millionth_too_wide(
    means: tuple[float, float], tallies: int, budget: float | None
) -> None:
    arm, rival = (outbid(reported(mean, tallies, (7,), budget, 7 + i), budget) for i, mean in enumerate(means))
    found = lift(arm, rival, LIMIT)
    steps = 4_000 if budget is None else 150
    for sign, a, b in ((1, arm, rival), (-1, rival, arm)):
        border = on_the_border(a, b, LIMIT, steps)
        end = found.difference_interval[1] if sign > 0 else -found.difference_interval[0]
        reached = max(p - q for p, q in border)
        # Between the points of the border the maximum is higher by the square of their distance.
        coarse = 8 * (border[-1][0] - border[0][0]) / steps**2 * 10
        assert reached - 1e-12 <= end <= reached + WIDENED + coarse
        least, most = found.relative_interval
        ratio = most if sign > 0 else (None if least == -1 else 1 / (1 + least) - 1)
        if ratio is None:
            assert a(a.best) + b(0.0) <= LIMIT
        else:
            proved = max(p / q for p, q in border)
            assert proved * (1 - 1e-12) <= 1 + ratio <= proved * (1.0001 if budget is None else 1.01)


def test_a_small_lift_by_hand() -> None:
    # One success of one against one failure of one: m = ½ for both, so p·(1 − q) ≥ ¼·e^−limit.
    found = lift(JeffreysOutbid(1, 1), JeffreysOutbid(0, 1), LIMIT)
    assert (found.difference, found.relative) == (1.0, None)
    # The smallest p − q has p = 1 − q, so p = ½·e^(−limit/2) and p − q = 2p − 1.
    assert found.difference_interval == pytest.approx((math.exp(-LIMIT / 2) - 1, 1.0), abs=WIDENED)
    # p/q = p/(1 − e^−limit/4p) is smallest where its logarithm has slope 0: p = ½·e^−limit, q = ½.
    assert found.relative_interval[0] == pytest.approx(math.exp(-LIMIT) - 1, abs=WIDENED)
    assert found.relative_interval[1] is None


@pytest.mark.parametrize(("p", "q", "tallies", "sizes", "budget"), CASES, ids=str)
def test_a_lift_is_mirrored(p: float, q: float, tallies: int, sizes: tuple[int, ...], budget: float | None) -> None:
    first, second = (reported(mean, tallies, sizes, budget, seed) for seed, mean in enumerate((p, q)))
    there = lift(outbid(first, budget), outbid(second, budget), LIMIT)
    back = lift(outbid(second, budget), outbid(first, budget), LIMIT)
    assert there.difference == -back.difference
    assert there.difference_interval == tuple(-end for end in reversed(back.difference_interval))
    least, most = there.relative_interval
    assert back.relative_interval[0] == pytest.approx(-1 if most is None else 1 / (1 + most) - 1)
    assert back.relative_interval[1] == (None if least == -1 else pytest.approx(1 / (1 + least) - 1))


@pytest.mark.parametrize(("p", "q", "tallies", "sizes", "budget"), CASES[:2] + CASES[5:7], ids=str)
def test_a_lift_is_narrower_than_the_box_of_two_intervals(
    p: float, q: float, tallies: int, sizes: tuple[int, ...], budget: float | None
) -> None:
    arm, rival = (outbid(reported(mean, tallies, sizes, budget, seed), budget) for seed, mean in enumerate((p, q)))
    low, high = lift(arm, rival, LIMIT).difference_interval
    # At the same level: K/δ for ten arms. With few successes or failures, near 0 and 1, a box can be narrower.
    (a, b), (c, d) = (interval(each, math.log(10 / 0.05)) for each in (arm, rival))
    assert high - low < 0.92 * ((b - c) - (a - d))


def test_a_smaller_delta_widens_a_lift() -> None:
    for budget in (None, 1.0):
        arm, rival = (outbid(reported(mean, 20, (7,), budget, 3), budget) for mean in (0.5, 0.4))
        lifts = [lift(arm, rival, math.log(45 / delta)) for delta in (0.5, 0.1, 0.05, 0.01, 1e-6)]
        for narrow, wide in pairwise(lifts):
            assert wide.difference_interval[0] < narrow.difference_interval[0] <= narrow.difference
            assert narrow.difference <= narrow.difference_interval[1] < wide.difference_interval[1]
            assert wide.relative_interval[0] < narrow.relative_interval[0]
            assert narrow.relative_interval[1] is not None
            assert wide.relative_interval[1] is None or narrow.relative_interval[1] < wide.relative_interval[1]


@pytest.mark.parametrize("events", [10**3, 10**6, 10**9])
@pytest.mark.parametrize("successes", [(0, 0), (0, 5), (5, 0), (1, 1)])
@pytest.mark.parametrize("ends", ["near 0", "near 1"])
def test_means_at_the_ends_and_many_events(successes: tuple[int, int], events: int, ends: str) -> None:
    counts = successes if ends == "near 0" else tuple(events - each for each in successes)
    arm, rival = (JeffreysOutbid(each, events) for each in counts)
    found = lift(arm, rival, LIMIT)
    low, high = found.difference_interval
    assert -1 <= low < found.difference < high <= 1
    assert high - low < 100 / events + 1e-8
    least, most = found.relative_interval
    assert least >= -1
    assert (most is None) == (counts[1] == 0)
    assert (least == -1) == (counts[0] == 0)
    assert (found.relative is None) == (counts[1] == 0)
    if found.relative is not None and most is not None:
        assert least < found.relative < most or found.relative == least == -1


def test_lines_of_support_are_nowhere_above_the_outbid() -> None:
    for budget in (None, 0.3, 1.0, 20.0):
        for mean in (0.0, 0.04, 0.5, 1.0):
            found = outbid(reported(mean, 12, (3, 15), budget, 11), budget)
            values = [(i / 200, found(i / 200)) for i in range(201)]
            for slope in (-1e4, -300.0, -20.0, -1.0, 0.0, 1.0, 20.0, 300.0, 1e4):
                at, value = found.support(slope)
                assert all(value + slope * (x - at) <= exact + 1e-9 for x, exact in values)
                assert found(at) - value <= 1e-3 * max(abs(slope), 1.0)


# ---- the server


def server_with(arms: int, results: dict[int, list[int]], **options: object) -> TallyServer:
    """A server to which player 0 has sent tallies of the smallest size, so many successes of each arm in turn."""
    fields: dict[str, object] = {"players": 2, "epsilon": 0, "delta": 0.05, "protocol": "tally", "floor": 3}
    task = Task(arms=arms, **{**fields, **options})  # type: ignore[arg-type]
    server, cycle = TallyServer(task), Cycle(task)
    left = {arm: list(each) for arm, each in results.items()}
    sequence = 0
    while any(left.values()):
        arm = cycle.arm(0, sequence)
        if left.get(arm):
            server.receive(0, Tally(arm, left[arm].pop(0), task.tally_sizes[0], sequence), 0)
        sequence += 1
    return server


@pytest.mark.parametrize("options", [{}, {"privacy_budget": 1.0}], ids=str)
def test_nothing_is_known_before_the_first_report(options: dict[str, object]) -> None:
    server = server_with(3, {}, **options)
    assert [server.mean(arm) for arm in range(3)] == [None] * 3
    assert server.lift(0, 1) == Lift(0.0, (-1.0, 1.0), None, (-1.0, None))
    one = server_with(3, {0: [3, 2, 3, 3, 3]}, **options)
    found = one.lift(0, 1)
    assert (found.relative, found.relative_interval[1]) == (None, None)
    # The rival's mean may be all from 0 to 1: the arm's own interval, at the limit of a pair, is all that is known.
    low, high = interval(outbid(list(one._counts[0].items()), one.task.privacy_budget), math.log(3 / 0.05))
    assert found.difference_interval == pytest.approx((low - 1, high), abs=WIDENED)
    assert found.relative_interval[0] == pytest.approx(low - 1, abs=WIDENED)


def test_a_lift_is_for_all_pairs_together() -> None:
    server = server_with(4, {0: [3, 3, 2], 1: [1, 0, 2], 2: [2, 2, 2]}, delta=0.1)
    # 4·3/2 pairs
    expected = lift(JeffreysOutbid(8, 9), JeffreysOutbid(3, 9), math.log(6 / 0.1))
    assert server.lift(0, 1) == expected
    assert (server.mean(0), server.mean(1)) == (8 / 9, 3 / 9)
    assert expected.difference == pytest.approx(5 / 9)
    assert expected.relative == pytest.approx(5 / 3)


def test_a_lift_follows_what_is_reported() -> None:
    server = server_with(2, {0: [3], 1: [0]})
    before = server.lift(0, 1)
    sequence = next(place for place in range(10, 20) if Cycle(server.task).arm(0, place) == 1)
    server.receive(0, Tally(1, 3, 3, sequence), 0)
    after = server.lift(0, 1)
    assert server.mean(1) == 0.5
    assert after.difference == 0.5 < before.difference
    restored = TallyServer.restore(server.task, server.snapshot())
    assert restored.lift(0, 1) == after


def test_with_noise_a_mean_is_the_likeliest_one() -> None:
    server = server_with(2, {0: [0] * 60 + [1] * 20 + [2] * 6 + [3], 1: [1, 2]}, privacy_budget=1.0)
    often = [60, 20, 6, 1]

    def log_likelihood(mean: float) -> float:
        return sum(count * math.log(p) for count, p in zip(often, laws.sent(3, mean, 1.0), strict=True))

    found = server.mean(0)
    assert found is not None
    assert (
        0 < found < server.successes(0) / server.trials(0)
    )  # noise that is cut off at 0 makes the raw share too large
    assert all(log_likelihood(found) >= log_likelihood(found + step) - 1e-12 for step in (-1e-5, 1e-5))
    assert log_likelihood(found) > max(log_likelihood(found - 0.01), log_likelihood(found + 0.01))
    assert server.mean(1) == pytest.approx(0.5)
    for end, z in ((0.0, 0), (1.0, 3)):
        assert server_with(2, {0: [z] * 30}, privacy_budget=1.0).mean(0) == end


def test_an_arm_has_no_lift_over_itself() -> None:
    with pytest.raises(UnknownArm, match="got arm 1 twice"):
        server_with(2, {}).lift(1, 1)


def test_every_pair_of_arms_has_a_lift() -> None:
    server = server_with(4, {0: [0] * 5, 1: [3] * 5, 2: [1, 2], 3: []})
    for arm, rival in combinations(range(4), 2):
        found = server.lift(arm, rival)
        assert found.difference_interval[0] <= found.difference <= found.difference_interval[1]
