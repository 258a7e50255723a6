"""A Task that exists is sound: what cannot be is refused with the value received and what is allowed."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from outvote.core.errors import InvalidTask
from outvote.core.task import ARGUMENTS, RULES, Task

SOUND: dict[str, Any] = {"protocol": "dme", "arms": 3, "players": 4, "epsilon": 0.5, "delta": 0.05}
TALLY: dict[str, Any] = {"protocol": "tally"}


def task(**changes: Any) -> Task:
    return Task(**{**SOUND, **changes})


def refusal(**changes: Any) -> str:
    """What is said, which begins with the field that the error carries."""
    with pytest.raises(InvalidTask) as caught:
        task(**changes)
    assert caught.value.field in ARGUMENTS
    assert str(caught.value) == f"{caught.value.field} {caught.value.problem}"
    assert str(caught.value.named("it")) == f"it {caught.value.problem}"
    return str(caught.value)


REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    # K ≥ 2
    ({"arms": 1}, ["arms", "at least 2", "got 1"]),
    ({"arms": 2.0}, ["arms", "got 2.0"]),
    ({"arms": "ab"}, ["arms", "got 'ab'"]),
    ({"arms": ["only"]}, ["arms", "at least 2", "got 1"]),
    ({"arms": ["a", "b", "a"]}, ["arms", "different", "got 'a' twice"]),
    ({"arms": ["a", "b\n"]}, ["arms", "1 to 64 printable", "got 'b\\n'"]),
    ({"arms": ["a", 1]}, ["arms", "1 to 64 printable", "got 1"]),
    # 0 < ε < 1
    ({"epsilon": 0}, ["epsilon", "above 0", "below 1", "got 0"]),
    ({"epsilon": 1}, ["epsilon", "above 0", "below 1", "got 1"]),
    ({"epsilon": 1e-160}, ["epsilon must be larger, got 1e-160", "infinitely many pulls"]),
    # 0 < δ < 1
    ({"delta": 1}, ["delta", "above 0", "below 1", "got 1"]),
    # N ≥ 1
    ({"players": 0}, ["players", "at least 1", "got 0"]),
    ({"players": "ab"}, ["players", "got 'ab'"]),
    ({"players": []}, ["players", "at least 1", "got 0"]),
    ({"players": ["a", "a"]}, ["players", "different", "got 'a' twice"]),
    ({"players": ["a.b"]}, ["players", "1 to 64 letters", "got 'a.b'"]),
    ({"players": [1, 2]}, ["players", "1 to 64 letters", "got 1"]),
    # 0 < N_γ ≤ N
    ({"active_players": 0}, ["active_players", "above 0", "at most 4", "got 0"]),
    ({"active_players": 4.001}, ["active_players", "above 0", "at most 4", "got 4.001"]),
    ({"active_players": 2, "protocol": "edme"}, ["active_players is for 'dme'", "got 2 for 'edme'"]),
    # M ≥ 1
    ({"protocol": "edme", "instances": 0}, ["instances", "at least 1", "got 0"]),
    ({"protocol": "edme", "instances": []}, ["instances", "increasing", "got []"]),
    ({"protocol": "edme", "instances": [2, 1]}, ["instances", "increasing", "got [2, 1]"]),
    ({"protocol": "edme", "instances": [1, 5]}, ["instances", "above 0", "at most 4", "got 5"]),
    ({"protocol": "edme", "instances": [1, "2"]}, ["instances", "got '2'"]),
    ({"instances": 2}, ["instances is for 'edme'", "got 2 for 'dme'"]),
    # closed choices
    ({"protocol": "DME"}, ["protocol", "'dme'", "'edme'", "got 'DME'"]),
    ({"quorum": "majority"}, ["quorum", "'paper'", "'certified'", "got 'majority'"]),
    ({"code": "morse"}, ["code", "'binary'", "'truncated'", "'huffman'", "got 'morse'"]),
    # the weights of a Huffman code
    ({"code": "huffman"}, ["code_weights must be 3 numbers", "huffman", "got []"]),
    ({"code": "huffman", "code_weights": [1, 2]}, ["code_weights must be 3 numbers", "huffman", "got [1.0, 2.0]"]),
    ({"code": "huffman", "code_weights": "123"}, ["code_weights", "got '123'"]),
    ({"code_weights": [1, 2, 3]}, ["code_weights must be no numbers with code 'binary'", "got [1.0, 2.0, 3.0]"]),
    # Tally: 0 ≤ ε < 1, a floor from 2 to 127, a budget up to 20, and nothing of the others
    (TALLY | {"epsilon": 1}, ["epsilon", "of at least 0 and below 1", "got 1"]),
    (TALLY | {"active_players": 2}, ["active_players is for ", "got 2 for 'tally'"]),
    (TALLY | {"instances": 2}, ["instances is for ", "got 2 for 'tally'"]),
    (TALLY | {"quorum": "certified"}, ["quorum is for 'dme', 'edme'", "got 'certified' for 'tally'"]),
    (TALLY | {"floor": 1}, ["floor", "whole number from 2 to 127", "got 1"]),
    (TALLY | {"floor": 7.0}, ["floor", "whole number from 2 to 127", "got 7.0"]),
    (TALLY | {"floor": 128}, ["floor", "whole number from 2 to 127", "got 128"]),
    (TALLY | {"privacy_budget": 0}, ["privacy_budget", "above 0 and at most 20", "got 0"]),
    (TALLY | {"privacy_budget": 20.001}, ["privacy_budget", "above 0 and at most 20", "got 20.001"]),
    (TALLY | {"code_weights": [1, 2, 3]}, ["code_weights must be no numbers with code 'implied'"]),
    ({"floor": 7}, ["floor", "'tally'", "got 7", "'dme'"]),
    ({"code": "implied"}, ["code must be one of 'binary', 'truncated', 'huffman'", "got 'implied'"]),
    ({"epsilon": None}, ["epsilon must be given"]),
    ({"parameters": {"pulls": 3}}, ["parameters must be of none, got 'pulls'"]),
    # the rest
    ({"reward_window": None}, ["reward_window", "from 0.001 to 604800, in seconds, or 0", "got None"]),
    ({"reward_window": 0.0009}, ["reward_window", "from 0.001 to 604800, in seconds, or 0", "got 0.0009"]),
    ({"reward_window": 604_800.1}, ["reward_window", "from 0.001 to 604800, in seconds, or 0", "got 604800.1"]),
    ({"reward_window": False}, ["reward_window", "got False"]),
    ({"fallback": "3"}, ["fallback", "one of '0', '1', '2'", "got '3'"]),
    ({"fallback": 1}, ["fallback", "got 1"]),
    ({"name": "a\n"}, ["name", "1 to 64 letters", "got 'a\\n'"]),
    ({"name": "a" * 65}, ["name", "1 to 64 letters", "a" * 65]),
]


@pytest.mark.parametrize(("changes", "parts"), REFUSED, ids=[str(changes)[1:40] for changes, _ in REFUSED])
def test_what_cannot_be_is_refused_with_the_value_and_what_is_allowed(
    changes: dict[str, Any], parts: list[str]
) -> None:
    message = refusal(**changes)
    assert "\n" not in message
    for part in parts:
        assert part in message


NUMBERS: list[tuple[str, dict[str, Any]]] = [
    *((field, {}) for field in ("arms", "players", "epsilon", "delta", "active_players", "reward_window")),
    *((field, TALLY) for field in ("epsilon", "floor", "privacy_budget")),
    ("instances", {"protocol": "edme"}),
]


@pytest.mark.parametrize("value", [True, math.nan, math.inf, -1, -0.5, 10**400, "2"], ids=lambda value: str(value)[:6])
@pytest.mark.parametrize(("field", "others"), NUMBERS)
def test_what_is_no_such_number_is_refused_with_its_field(field: str, others: dict[str, Any], value: Any) -> None:
    message = refusal(**others, **{field: value})
    assert field in message
    assert f"got {value!r}"[:10] in message
    assert f"got {value!r}"[:10] in refusal(code="huffman", code_weights=[1, value, 2])


@pytest.mark.parametrize("window", [0, 0.0, -0.0, 0.001, 1, 60.5, 604_800])
def test_a_window_is_nothing_or_from_a_millisecond_to_seven_days(window: float) -> None:
    found = task(reward_window=window).reward_window
    assert (found, type(found)) == (window, float)
    assert str(found) != "-0.0"


def test_without_a_window_a_task_is_one_of_window_0() -> None:
    assert task() == task(reward_window=0)


def test_the_smallest_delta_is_a_delta() -> None:
    # δ/M, and one player's share of δ, are below the smallest floating-point number; their logarithms are not.
    log_delta = math.log(5e-324)  # -744.44
    # ln η = 2/N_γ · (ln δ − ln M), with N_γ = 4 in the last of M = 8 instances; 4/ε_1² = 256, 3K·2 = 18
    extended = task(protocol="edme", delta=5e-324).schedules()[-1]
    assert extended.pulls(1) == math.ceil(256 * (math.log(18) - 0.5 * (log_delta - math.log(8))))
    # p = δ/N to first order, so ln η = ½ ln(27·3·δ/(2·64))
    certified = task(quorum="certified", players=64, delta=5e-324).schedules()[0]
    assert certified.pulls(1) == math.ceil(256 * (math.log(18) - 0.5 * (math.log(81 / 128) + log_delta)))


def test_a_task_has_one_default_for_everything() -> None:
    plain = Task(arms=3, players=4)
    assert plain == Task(arms=3, players=4, protocol="tally", epsilon=0, delta=0.05, floor=3, tolerate=0, name="task")


def test_the_smallest_task_is_accepted() -> None:
    smallest = task(arms=2, players=1)
    assert smallest.arms == ("0", "1")
    assert smallest.players == 1
    assert smallest.player_names == ()
    assert smallest.instances == (1.0,)


def test_arms_and_players_may_be_named() -> None:
    named = task(arms=["red", "dark green"], players=["site-1", "site_2", "a" * 64], name="x" * 64)
    assert named.arms == ("red", "dark green")
    assert named.player_names == ("site-1", "site_2", "a" * 64)
    assert named.players == 3
    assert named.active_players == 3.0


@pytest.mark.parametrize("active", [0.001, 0.5, 2.5, 3.999, 4])
def test_active_players_may_be_a_fraction(active: float) -> None:
    assert task(active_players=active).instances == (float(active),)


def test_the_instances_of_edme_are_spread_evenly_and_their_number_is_eight_by_default() -> None:
    # Algorithm 4, line 1: N_γi = N·i/M
    assert task(protocol="edme", players=256).instances == (32.0, 64.0, 96.0, 128.0, 160.0, 192.0, 224.0, 256.0)
    assert task(protocol="edme", players=6, instances=4).instances == (1.5, 3.0, 4.5, 6.0)
    assert task(protocol="edme", players=6, instances=1).instances == (6.0,)


def test_the_instances_of_edme_may_be_any_increasing_list() -> None:
    listed = task(protocol="edme", players=64, instances=[1, 2.5, 64])
    assert listed.instances == (1.0, 2.5, 64.0)
    assert listed.active_players == 64.0


def test_tally_looks_for_the_very_best_arm_where_epsilon_is_0() -> None:
    for epsilon in (0, 0.0, -0.0):
        assert task(protocol="tally", epsilon=epsilon).epsilon == 0.0
    assert task(protocol="tally", epsilon=0.2).epsilon == 0.2


def test_tally_has_no_instances_and_no_epochs_and_all_players_may_be_active() -> None:
    plain = task(protocol="tally", players=64)
    assert (plain.instances, plain.schedules(), plain.active_players) == ((), (), 64.0)
    assert task().tally_sizes == task(protocol="edme").tally_sizes == ()


def test_tally_implies_the_arm_unless_another_code_is_asked_for() -> None:
    assert task(protocol="tally").code == "implied"
    assert [task(protocol="tally", code=code).code for code in ("implied", "binary", "truncated")] == [
        *("implied", "binary", "truncated")
    ]
    assert task(protocol="tally", code="huffman", code_weights=[1, 2, 3]).code_weights == (1.0, 2.0, 3.0)
    assert task().code == task(protocol="edme").code == "binary"


def test_the_floor_of_a_private_task_is_higher() -> None:
    assert task(protocol="tally").floor == 3
    assert task(protocol="tally", privacy_budget=1).floor == 23
    assert task(protocol="tally", privacy_budget=1, floor=2).floor == 2
    assert task().floor is None
    assert (task(protocol="tally", privacy_budget=1).privacy_budget, task(protocol="tally").privacy_budget) == (
        1.0,
        None,
    )


@pytest.mark.parametrize(
    ("floor", "sizes"),
    [
        # twice and one more, up to 127
        (3, (3, 7, 15, 31, 63, 127)),
        (2, (2, 5, 11, 23, 47, 95)),
        (7, (7, 15, 31, 63, 127)),
        (40, (40, 81)),
        (63, (63, 127)),
        (64, (64,)),  # 2·64 + 1 = 129
        (127, (127,)),
    ],
)
def test_tallies_grow_from_the_floor_by_one_bit_each(floor: int, sizes: tuple[int, ...]) -> None:
    assert task(protocol="tally", floor=floor).tally_sizes == sizes
    widths = [size.bit_length() for size in sizes]  # of a count from 0 to `size`
    assert widths == list(range(widths[0], widths[0] + len(sizes)))


TASKS = {
    "dme": task(),
    "named": task(arms=["red", "green"], players=["a", "b"], name="shop"),
    "fractional": task(active_players=2.5, quorum="certified"),
    "edme": task(protocol="edme", players=5, instances=3),
    "one instance": task(protocol="edme", players=5, instances=1),
    "huffman": task(code="huffman", code_weights=[0.5, 0.25, 0.25]),
    "windowed": task(reward_window=60, code="truncated"),
    "with a fallback": task(arms=["red", "green"], fallback="green"),
    "with liars": task(tolerate=1),
    "tally": task(protocol="tally", epsilon=0),
    "tally with a floor": task(protocol="tally", epsilon=0, floor=7),
    "tally with a budget": task(protocol="tally", epsilon=0, floor=7, privacy_budget=1.0),
    "tally with a code": task(protocol="tally", epsilon=0, code="binary"),
    "private tally": task(protocol="tally", epsilon=0.1, privacy_budget=0.5, floor=31, code="binary", players=["a"]),
}


@pytest.mark.parametrize("name", TASKS)
def test_a_task_survives_json(name: str) -> None:
    found = Task.from_json(json.loads(json.dumps(TASKS[name].to_json())))
    assert found == TASKS[name]
    assert found.fingerprint() == TASKS[name].fingerprint()


def test_different_tasks_have_different_fingerprints() -> None:
    assert len({each.fingerprint() for each in TASKS.values()}) == len(TASKS)


@pytest.mark.parametrize("field", sorted(task().to_json()))
def test_json_with_a_field_missing_or_one_more_is_refused(field: str) -> None:
    data = task().to_json()
    with pytest.raises(InvalidTask, match="colour"):
        Task.from_json({**data, "colour": "red"})
    del data[field]
    with pytest.raises(InvalidTask, match=field):
        Task.from_json(data)


@pytest.mark.parametrize("rules", [RULES - 1, RULES + 1, str(RULES), None, True, [RULES]])
def test_json_of_other_rules_is_refused_for_its_rules_whatever_its_fields(rules: object) -> None:
    with pytest.raises(InvalidTask, match=rf"^rules must be {RULES}, got .*: .* another version of Outvote; use "):
        Task.from_json({"rules": rules, "name": "shop", "colour": "red"})


@pytest.mark.parametrize("data", [None, [], "task", 7, {}, {"name": "task", 1: 2}])
def test_what_is_no_task_in_json_is_refused(data: Any) -> None:
    with pytest.raises(InvalidTask) as caught:
        Task.from_json(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("arms", [0, 1]),
        ("players", "4"),
        ("players", True),
        ("arms", 3),  # no short form and no default where all is said
        ("active_players", None),
        ("code", None),
        ("instances", []),
        ("instances", [1.0, 2.0]),  # two instances are for edme
        ("instances", 4.0),
        ("protocol", ["dme"]),
        ("code_weights", None),
    ],
)
def test_json_with_a_wrong_value_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidTask) as caught:
        Task.from_json({**task().to_json(), field: value})
    assert "\n" not in str(caught.value)


def test_equal_descriptions_are_equal_tasks() -> None:
    assert task() == task(arms=["0", "1", "2"], active_players=4)
    assert hash(task()) == hash(task(active_players=4.0))
    assert task() != task(epsilon=0.4)
