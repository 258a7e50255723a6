"""Numbers and durations as people write them."""

from __future__ import annotations

import pytest

from outvote.cli.main import make_parser
from outvote.core.errors import InvalidInput
from outvote.quantities import number, seconds


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("50000", 50_000), ("50,000", 50_000), ("50 000", 50_000), ("50'000", 50_000), ("50\u202f000", 50_000),
        ("1,234,567.5", 1_234_567.5), ("1e6", 1_000_000), (".05", 0.05), ("5%", 0.05), ("0.7 %", 0.007), ("-1", -1),
        ("100%", 1), ("12345678901234567891", 12345678901234567891),
    ],
)  # fmt: skip
def test_a_number_is_read_however_it_is_written(text: str, value: float) -> None:
    found = number(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["", "%", "x", "0,5", "0,500", "5,00", "1'000,000", "5%%", "nan", "inf", "1e999", "٣"])
def test_what_is_no_number_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        number(text)
    assert str(refusal.value) == f"must be a number like 50000, 50,000, 0.05 or 5%, got {text!r}"
    assert refusal.value.code == "type"


@pytest.mark.parametrize(
    ("text", "value"),
    [("90", 90.0), ("60s", 60.0), ("30m", 1800.0), ("1.5 hours", 5400.0), ("2H", 7200.0), ("1d", 86400.0)],
)
def test_a_duration_is_in_seconds_unless_it_names_another_unit(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "m", "30 x", "1h30m", "a\nm", "nans", "1e308d"])
def test_what_is_no_duration_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        seconds(text)
    assert str(refusal.value) == f"must be a duration like 90, 60s, 30m, 2h or 1d, got {text!r}"


def test_commands_read_both_and_commas_separate_where_a_list_is_expected() -> None:
    read = make_parser().parse_args
    audit = read(["audit", "--events", "50,000", "--reward-window", "30m"])
    assert (audit.events, audit.reward_window) == (50_000, 1800.0)
    assert read(["task", "expect", "banner", "--traffic", "50,000", "--baseline", "5%"]).baseline == 0.05
    assert read(["simulate", "--means", ".1,20%"]).means == [0.1, 0.2]
