"""Servers of one version beside those of the next, which has other rules: they never disagree about what both know."""

from __future__ import annotations

import json

import pytest

from faults.reading import fold
from network.audit import Record
from outvote.core.task import RULES, Task
from outvote.network.edge import is_in_part
from outvote.network.fold import Fold
from outvote.network.records import Foreign, read_foreign, task_record

OLD = Task(name="shop", arms=2, players=2, epsilon=0, delta=0.1, protocol="tally")
NEWER = json.dumps(OLD.to_json() | {"rules": 2}).encode()


def both(*records: tuple[str, bytes]) -> tuple[Fold, Fold]:
    """What an old and a new server make of a log."""
    log = [Record(number, f"outvote.down.{where}", payload) for number, (where, payload) in enumerate(records, 1)]
    return fold(log), fold(log, newer=True)


def test_a_task_of_the_next_rules_is_not_judged_and_its_name_is_taken_at_both() -> None:
    old, new = both(("shop-1.task", NEWER), ("shop-2.task", task_record(OLD)))
    assert (set(old.tasks), set(new.tasks)) == (set(), {"shop-1"})
    assert old.deleted == new.deleted == {"shop-2"}
    assert old.is_taken("shop")
    assert new.is_taken("shop")


def test_its_name_is_free_at_both_when_it_was_deleted() -> None:
    old, new = both(("shop-1.task", NEWER), ("shop-1.delete", b"{}"), ("shop-2.task", task_record(OLD)))
    assert set(old.tasks) == set(new.tasks) == {"shop-2"}
    assert old.deleted == new.deleted == {"shop-1"}


def test_one_that_came_second_holds_no_name_at_either() -> None:
    old, new = both(
        ("shop-1.task", task_record(OLD)),
        ("shop-2.task", NEWER),
        ("shop-1.delete", b"{}"),
        ("shop-3.task", task_record(OLD)),
    )
    assert set(old.tasks) == set(new.tasks) == {"shop-3"}


@pytest.mark.parametrize("payload", [b"{}", b"x", b"[]", task_record(OLD), NEWER.replace(b"shop", b"a shop"), b"\xff"])
def test_what_is_no_task_of_other_rules_has_no_name(payload: bytes) -> None:
    assert read_foreign(payload) is None


def test_what_can_be_read_of_a_task_of_other_rules() -> None:
    assert read_foreign(NEWER) == Foreign("shop", 2)


def test_an_old_server_says_that_it_cannot_tell_all() -> None:
    old, new = both(("shop-1.task", NEWER), ("market-1.task", NEWER.replace(b"shop", b"market")))
    assert old.catch_up("paris", "life", {})["beyond"] == [2]
    assert "beyond" not in new.catch_up("paris", "life", {})
    old, _ = both(("shop-1.task", NEWER), ("shop-1.delete", b"{}"))
    assert "beyond" not in old.catch_up("paris", "life", {})


@pytest.mark.parametrize("beyond", [[2], [3], [], None, "1", [None], {"1": 1}])
def test_an_edge_that_knows_no_more_than_the_server_has_been_told_all(beyond: object) -> None:
    assert not is_in_part({"beyond": beyond})
    assert not is_in_part({})
    assert is_in_part({"beyond": [2, RULES]})
