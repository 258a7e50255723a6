"""One secured fleet for all attacks of a process; after each, nothing must have changed that counts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attacks.secured import Secured, running
from attacks.table import Row, Table

KEEP = "OUTVOTE_ATTACKS"
"""The file that `make attacks` wants the table in."""


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    fleet = Secured(tmp_path_factory.mktemp("secured"))
    yield fleet
    fleet.close()


@pytest.fixture(scope="session")
def table() -> Iterator[Table]:
    table = Table()
    yield table
    if KEEP in os.environ:
        table.write(Path(os.environ[KEEP]))


class Attack:
    """One attack: what it is, and what came of it."""

    def __init__(self, test: str) -> None:
        self._test = test
        self.row: Row | None = None

    def refused(self, attack: str, *, by: str, happened: str, logged: str) -> None:
        """To be said at the end of the test: what is said here is what was asserted before."""
        self.row = Row(self._test, attack, by, happened, logged)


def changed(before: Any, after: Any, where: str = "") -> list[str]:
    """Where two descriptions differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted({*before, *after})
        return [each for key in keys for each in changed(before.get(key), after.get(key), f"{where}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [each for place, (old, new) in pairs for each in changed(old, new, f"{where}[{place}]")]
    return [] if before == after else [f"{where}: {before!r} is now {after!r}"]


@pytest.fixture
def attack(secured: Secured, table: Table, request: pytest.FixtureRequest) -> Iterator[Attack]:
    """What counts is the same before and after, everybody lives, and no log has a secret in it."""
    before = secured.counts()
    attack = Attack(request.node.name)
    yield attack
    if attack.row is None:
        return  # the test has failed before it could say what came of it
    assert changed(before, secured.counts()) == []
    assert running(secured.server)
    assert running(secured.honest)
    for log in (secured.server_log, secured.edge_log, secured.folder / "log" / "engine.log"):
        text = log.read_text(errors="replace")
        assert not [each for each in secured.secrets if each in text], f"a secret is in {log.name}"
    table.rows.append(attack.row)
