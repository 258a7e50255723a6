"""What pages say of a task: where it stands, and what an eavesdropper has seen, held against what really happened."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from dashboard.stories import CLOSE, GOOD, SOON, Story, held
from outvote.core.messages import Tally
from outvote.core.tally.server import TallyServer
from outvote.dashboard import words
from outvote.log.records import Coder, UpSubject, parse
from outvote.presenters import site_words
from outvote.presenters.formats import percent, points
from outvote.presenters.lookup import presenter


def bits_bound(story: Story) -> tuple[int, str]:
    return presenter(story.task.protocol).bits_bound(story.found)


NUMBERS_OF_VALUE = re.compile(r"lead|ahead of|better than|%|points|lift|succe")
"""Words that tell how good a variant is."""


def voting(**task: Any) -> Story:
    """A task of votes that one site has voted in."""
    story = Story(**{**SOON, **task})
    return story.play(GOOD, lambda story: story.messages > 0, "ams")


def told(story: Story) -> list[str]:
    return words.eavesdropped(story.found, story.shown.site_count)


# ---- where it stands


@pytest.mark.parametrize("protocol", ["tally", "dme", "edme"])
def test_before_the_first_message_it_waits(protocol: str) -> None:
    story = Story() if protocol == "tally" else Story(**{**SOON, "protocol": protocol})
    waits = site_words.first_counts(story.task)
    assert words.headline(story.shown) == f"No site has sent anything yet; 3 of 3 variants remain. {waits}"


def test_of_tallies_the_leader_is_named_with_its_mean_and_its_margin() -> None:
    story = Story().play(CLOSE, lambda story: story.messages >= 12)
    shown = story.shown
    leader = next(arm for arm in shown.variants if arm.variant == shown.leader)
    nearest = min(shown.lifts, key=lambda each: each.difference)
    low, high = map(points, nearest.difference_interval)
    assert isinstance(leader.mean, float)
    assert words.headline(shown) == (
        f"{leader.variant} leads with {percent(leader.mean)}. It is ahead of {nearest.rival}, the next, by "
        f"{points(nearest.difference)} points ({low} to {high}). 3 of 3 variants remain."
    )


def test_the_only_variant_of_which_something_is_known_leads_nobody() -> None:
    story = Story().play(CLOSE, lambda story: story.messages > 0)
    assert re.fullmatch(r"\w+ leads with [\d.]+ %\. 3 of 3 variants remain\.", words.headline(story.shown))


@pytest.mark.parametrize("task", [{}, {"protocol": "edme", "instances": [1, 3]}])
def test_of_votes_nobody_is_said_to_lead(task: dict[str, Any]) -> None:
    shown = voting(**task).shown
    left = len(shown.remaining)
    assert words.headline(shown) == f"{left} of 3 variants remain. Votes do not tell which of them is ahead."


def test_a_task_whose_sites_differ_is_held_back() -> None:
    shown = held().shown
    assert (shown.status, shown.held, shown.winner) == ("held", True, None)
    assert "the sites' results differ by" in str(shown.hold_reason)
    assert words.headline(shown) == "Held back: the sites do not see the same. 2 of 2 variants remain."


@pytest.mark.parametrize(("fallback", "served"), [(None, "classic"), ("green", "green")])
def test_a_stopped_task_says_what_edges_serve(fallback: str | None, served: str) -> None:
    story = Story(fallback=fallback).stop()
    assert words.headline(story.shown) == f"Stopped, without a winner. Sites serve {served}; 3 of 3 variants remain."


def test_a_stopped_task_serves_the_first_that_remains() -> None:
    story = voting(active_players=1).play(GOOD, lambda story: bool(story.found.eliminations), "ams")
    assert story.found.winner is None
    shown = story.stop().shown
    assert len(shown.remaining) == 2
    served = shown.remaining[0]
    assert words.headline(shown) == f"Stopped, without a winner. Sites serve {served}; 2 of 3 variants remain."


def test_the_winner_of_tallies_has_a_guarantee_and_a_margin() -> None:
    shown = Story().finish().shown
    nearest = min(shown.lifts, key=lambda each: each.difference)
    size, high = points(nearest.difference), points(nearest.difference_interval[1])
    assert words.headline(shown) == (
        "classic wins: it is the best, with probability 0.95 at least. It seems better than "
        f"{nearest.rival}, the next, by {size} points, and by {high} at most."
    )


def test_a_winner_that_need_only_be_close_says_how_close() -> None:
    said = words.headline(Story(epsilon=0.2, delta=0.1).finish().shown)
    assert said.startswith("classic wins: it is within 0.2 of the best, with probability 0.9 at least. ")


@pytest.mark.parametrize(
    ("quorum", "promise"),
    [
        ("paper", "by the paper with probability 0.1, though its proof has a gap"),
        ("certified", "with probability 0.1 at least"),
    ],
)
def test_the_winner_of_votes_has_the_guarantee_of_its_quorum_and_no_margin(quorum: str, promise: str) -> None:
    shown = Story(**SOON, quorum=quorum).finish().shown
    assert words.headline(shown) == f"classic wins: it is within 0.99 of the best, {promise}."


def test_a_task_that_is_finished_stays_so_when_it_is_stopped() -> None:
    story = Story().finish()
    before = words.headline(story.shown)
    assert words.headline(story.stop().shown) == before


def test_several_may_remain_at_the_end() -> None:
    """Remark 1 of the paper allows it; with votes that are counted one by one it does not come about, so this view is
    made up."""
    ended = msgspec.structs.replace(voting().shown, status="finished", winner=None, remaining=("classic", "bold"))
    assert words.headline(ended) == "Finished: classic and bold remain, and nobody would drop one more."


# ---- what an eavesdropper has seen


def test_before_the_first_message_an_eavesdropper_knows_the_task_alone() -> None:
    assert told(Story()) == ["Nothing but the description of the task: no site has sent a message yet."]


def test_messages_sites_and_bits_are_those_of_the_log() -> None:
    story = Story().play(CLOSE, lambda story: story.messages >= 7, "ams", "che")
    first = told(story)[0]
    assert first.startswith(f"7 messages of 2 sites, {story.found.ledger.up_bits} bits in all, ")
    one = Story().play(CLOSE, lambda story: story.messages > 0)
    assert told(one)[0].startswith("1 message of 1 site, ")


def unanimous(story: Story) -> int:
    """Counted one by one from the records, as an eavesdropper would."""
    coder, found = Coder(story.task), 0
    for subject, payload in story.records:
        where = parse(subject)
        if isinstance(where, UpSubject):
            message = coder.read_up(where, payload)
            assert isinstance(message, Tally)
            found += message.successes in (0, message.trials)
    return found


@pytest.mark.parametrize(("means", "floor"), [(CLOSE, 2), (GOOD, 3), ((0.3, 0.5, 0.7), 31)])
def test_tallies_that_give_their_events_away_are_counted_right(means: tuple[float, ...], floor: int) -> None:
    story = Story(floor=floor).play(means, lambda story: story.messages >= 20 or story.found.winner is not None)
    size, gone = told(story)[1:3]
    assert size == f"Each says how many of {floor} or more events with one variant succeeded."
    expected = unanimous(story)
    if not expected:
        assert floor == 31  # hardly ever, with so many events in each
        assert gone == "In none of them did all or none succeed: of no event is it known what it earned."
    else:
        assert gone.startswith(f"In {expected} message{'s' * (expected > 1)} of them none or all succeeded: ")


def test_noise_hides_even_tallies_that_seem_unanimous() -> None:
    story = Story(privacy_budget=0.5, floor=3).play(GOOD, lambda story: unanimous(story) > 0)
    noisy, factor = told(story)[1:3]
    assert noisy == "Each says how many of 3 or more events with one variant succeeded, with noise."
    assert f"by a factor of {math.exp(0.5):.3g} at most" in factor
    assert "earned has changed" in factor
    assert not any("none or all succeeded" in line for line in told(story))


def test_votes_tell_no_event_and_no_mean() -> None:
    story = voting()
    each = told(story)[1]
    assert each.startswith("Each says that one site would drop one variant. No count, no reward and no mean was sent: ")


def test_votes_of_several_instances_say_which() -> None:
    assert "would drop one variant in one of 2 instances. " in told(voting(protocol="edme", instances=[1, 3]))[1]


def test_eliminations_are_seen_by_all() -> None:
    story = Story().play(CLOSE, lambda story: story.messages >= 3)
    assert told(story)[-1] == "That no variant is out yet."
    one = voting(active_players=1).play(GOOD, lambda story: bool(story.found.eliminations), "ams")
    (gone,) = set(one.task.arms) - set(one.shown.remaining)
    assert told(one)[-1] == f"That {gone} is out."
    both = told(Story().finish())[-1]
    assert both in ("That bold and green are out.", "That green and bold are out.")


VOTES: list[Callable[[], Story]] = [
    lambda: Story(**SOON),
    voting,
    lambda: voting(protocol="edme", instances=[1, 3]),
    lambda: Story(**SOON).finish(),
    lambda: voting().stop(),
]


@pytest.mark.parametrize("make", VOTES, ids=["waiting", "dme", "edme", "finished", "stopped"])
def test_no_sentence_about_votes_says_how_good_a_variant_is(make: Callable[[], Story]) -> None:
    story = make()
    for sentence in (words.headline(story.shown), *told(story), bits_bound(story)[1]):
        assert not NUMBERS_OF_VALUE.search(sentence), sentence


def test_the_words_for_value_are_found_where_there_are_some() -> None:
    """Lest the test above could not fail."""
    story = Story().finish()
    assert NUMBERS_OF_VALUE.search(words.headline(story.shown))
    assert NUMBERS_OF_VALUE.search(told(story)[1])


# ---- bits

EVERY: list[dict[str, Any]] = [
    {},
    {"floor": 2},
    {"floor": 31, "privacy_budget": 1.0},
    {"code": "binary"},
    {"arms": 9, "epsilon": 0.3},
    dict(SOON),
    {**SOON, "protocol": "edme", "instances": 3},
    {**SOON, "protocol": "edme", "instances": 3, "arms": 2},
    {**SOON, "arms": 4, "code": "huffman", "code_weights": [8, 4, 2, 1]},
]


@pytest.mark.parametrize("task", EVERY, ids=str)
def test_bits_never_exceed_what_they_are_held_against(task: dict[str, Any]) -> None:
    """After every record, to the end."""
    story = Story(**task)
    means = (0.05, 0.95, *(0.05,) * (len(story.task.arms) - 2))

    def over(story: Story) -> bool:
        assert story.found.ledger.total_bits <= bits_bound(story)[0]
        return story.found.winner is not None

    story.play(means, over)
    assert story.found.ledger.total_bits > 0


def test_a_bound_says_where_it_comes_from() -> None:
    story = Story().play(CLOSE, lambda story: story.messages >= 5)
    server = story.found.server
    assert isinstance(server, TallyServer)
    events = sum(server.trials(arm) for arm in range(3))
    bound, why = bits_bound(story)
    assert why == f"the most that the {events} events reported so far can cost"
    # Each of at most 127 events costs 7 bits or less, and each site is told of 3 arms in 2 bits at most.
    assert story.found.ledger.up_bits <= bound <= 7 * events + 3 * 2
    assert bits_bound(Story(**SOON)) == (
        2 * 3 * 2 * 2,  # 2·N·(K−1)·⌈log₂K⌉
        "the paper's bound for the whole task (Lemma 2)",
    )
    wide = Story(**{**SOON, "protocol": "edme", "instances": 2, "arms": 9})
    assert bits_bound(wide) == (
        2 * 3 * 2 * 8 * 4,  # 2·N·M·(K−1)·⌈log₂K⌉; with the bits of instances 3·2·8·(4 + 1) + 3·8·4 at most
        "the paper's bound for the whole task (Theorem 4)",
    )


def test_where_codes_can_cost_more_than_the_papers_bound_that_is_said() -> None:
    """Theorem 4 leaves out the bits that name an instance: 3 sites, 4 instances, 2 arms; up 3·4·1·(1 + 2), down 3."""
    story = Story(**{**SOON, "protocol": "edme", "instances": 4, "arms": 2})
    bound, why = bits_bound(story)
    assert bound == 39
    assert why == "the most that the whole task can cost, which is more than the paper's bound of 24 (Theorem 4)"
    # Words of 1, 2, 3 and 3 bits: 2·3·3·3
    assert bits_bound(Story(**{**SOON, "arms": 4, "code": "huffman", "code_weights": [8, 4, 2, 1]}))[0] == 54
