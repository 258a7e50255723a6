"""What others can cause as often as they like is told at once, then at most once a minute, with a count."""

from __future__ import annotations

from outvote.observability.once_per_minute import MAX_KINDS, PAUSE, OncePerMinute


def test_each_kind_is_told_at_once_and_then_once_a_minute_with_a_count() -> None:
    often = OncePerMinute[str]()
    assert [often.note(kind, 1000.0) for kind in ("a", "a", "b", "a")] == [1, 0, 1, 0]
    assert often.note("a", 1059.0) == 0
    assert often.due(1059.0) == []
    assert often.note("a", 1060.0, count=0) == 3
    assert often.note("a", 1060.0, count=0) == 0
    assert often.note("a", 1120.0, count=0) == 0  # nothing has happened since
    assert often.note("b", 4660.0, count=5) == 5


def test_what_is_left_to_tell_is_told_when_its_minute_is_over() -> None:
    often = OncePerMinute[str]()
    for kind in ("a", "b", "a", "a"):
        often.note(kind, 0.0)
    assert often.due(PAUSE) == [("a", 2)]
    assert often.due(3 * PAUSE) == []


def test_kinds_that_are_made_up_take_a_bounded_place_until_they_are_quiet() -> None:
    often = OncePerMinute[int]()
    for kind in range(MAX_KINDS):
        assert often.has_room_for(kind)
        often.note(kind, 0.0)
    assert not often.has_room_for(MAX_KINDS)
    assert often.has_room_for(0)
    often.due(PAUSE)
    assert often.has_room_for(MAX_KINDS)
