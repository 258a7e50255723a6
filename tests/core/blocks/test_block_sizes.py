"""How large blocks are, by hand."""

from __future__ import annotations

import pytest

from outvote.core.blocks.sizes import above, below, planned


def test_the_schedule_grows_one_rung_whenever_the_number_doubles() -> None:
    # b = 1, 2 → 1; 3, 4 → 3; 5 to 8 → 7; 9 to 16 → 15; 17 to 32 → 31; 33 to 64 → 63; from 65 on → 127
    expected = [1] * 2 + [3] * 2 + [7] * 4 + [15] * 8 + [31] * 16 + [63] * 32 + [127] * 100
    assert [planned(number, floor=1) for number in range(len(expected))] == expected


@pytest.mark.parametrize(
    ("floor", "first"),
    [(3, [3] * 4 + [7] * 4 + [15] * 8), (5, [5] * 4 + [7] * 4 + [15] * 8), (31, [31] * 32 + [63]), (127, [127] * 99)],
)
def test_no_block_is_below_the_floor(floor: int, first: list[int]) -> None:
    assert [planned(number, floor) for number in range(len(first))] == first


def test_the_cap_holds_unless_the_floor_is_higher() -> None:
    assert [planned(number, 3, 15) for number in (0, 7, 8, 20, 10**6)] == [3, 7, 15, 15, 15]
    assert planned(10**6, 31, 15) == 31
    assert planned(10**12, 1) == 127


def test_rungs_below_and_above() -> None:
    assert [below(size) for size in (1, 3, 5, 7, 127)] == [1, 1, 3, 3, 63]
    assert [above(size) for size in (1, 3, 5, 7, 127)] == [3, 7, 7, 15, 127]
