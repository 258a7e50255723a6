"""What another version made: it is refused with a clear line, a task is skipped and listed, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from helpers.edge_http import host, task
from helpers.operating import TALLY, operated
from outvote.access.kits import read_edge_kit
from outvote.core import snapshots
from outvote.core.errors import InvalidConfiguration, MalformedSnapshot
from outvote.core.messages import Tally
from outvote.core.snapshots import VERSION
from outvote.core.task import RULES
from outvote.edge.site import Edge
from outvote.edge.store import EdgeStore, Save
from outvote.log.catch_up import Question
from outvote.log.log import Record
from outvote.log.log_state import LogState
from outvote.log.memory import MemoryEngine
from outvote.log.records import Coder, task_record

OTHER = RULES + 1
WHY = f"rules must be {RULES}, got {OTHER}: the task was made for another version of Outvote; use that version"


def of_other_rules(**changes: Any) -> bytes:
    """A task with a field that this version does not know."""
    return json.dumps({**task("tally").to_json(), "rules": OTHER, "colour": "red", **changes}).encode()


def an_edge(store: EdgeStore) -> Edge:
    return Edge("ams", store, clock=lambda: 0.0, rng=random.Random(1))


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines of the log about tasks that cannot be read."""
    return [each.getMessage() for each in caplog.records if "task_not_readable" in each.getMessage()]


# ---- a server


def test_a_server_lists_a_task_of_other_rules_does_not_judge_it_and_goes_on_with_the_others() -> None:
    fold = LogState()
    message = Coder(task("tally")).up(Tally(0, 1, 3, 0))
    log = [
        ("outvote.down.shop-1.task", of_other_rules()),
        ("outvote.down.page-1.task", task_record(task("tally", name="page"))),
        ("outvote.up.ams.shop-1.life.0", message),
        ("outvote.down.shop-1.elim.0", b"\x80"),
        ("outvote.up.ams.page-1.life.0", message),
    ]
    for number, (subject, payload) in enumerate(log, 1):
        fold.apply(Record(subject, payload, number, 0.0))
    assert list(fold.tasks) == ["page-1"]
    assert fold.tasks["page-1"].ledger.up_messages == 1
    assert list(fold.unreadable) == ["shop-1"]
    assert fold.unreadable["shop-1"].startswith(WHY)
    assert list(fold.catch_up("ams", Question("life", {})).tasks) == ["page-1"]
    fold.apply(Record("outvote.down.shop-1.delete", b"{}", 6, 0.0))
    assert fold.unreadable == {}
    assert fold.catch_up("ams", Question("life", {"shop-1": 0})).deleted == ("shop-1",)


# ---- an edge


def test_an_edge_keeps_what_it_has_of_a_task_that_it_cannot_read_until_it_is_deleted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with EdgeStore(tmp_path / "edge.db") as store:
        host(an_edge(store), task("tally", name="page"))
        store.put_task("shop-1", of_other_rules().decode())
        store.save([Save("shop-1", "a state of another version", [(0, b"\x80")])])
        edge = an_edge(store)
        assert list(edge.tasks) == ["page"]
        assert edge.unreadable["shop-1"].startswith(WHY)
        for subject in ("elim.0", "stop", "kill.0"):
            edge.on_record(f"outvote.live.shop-1.{subject}", b"true")
        edge.on_record("outvote.live.shop-1.task", of_other_rules())
        edge.flush()
        assert not edge.missed.is_set()
        assert (store.snapshot("shop-1"), len(store.messages("shop-1"))) == ("a state of another version", 1)
        assert len(said(caplog)) == 1
        edge.on_record("outvote.live.shop-1.delete", b"{}")
        assert edge.unreadable == {}
        assert (sorted(store.tasks()), store.snapshot("shop-1"), len(store.messages("shop-1"))) == (["page-1"], None, 0)


def test_an_edge_does_not_start_from_a_snapshot_of_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EdgeStore(tmp_path / "edge.db") as store:
        edge = an_edge(store)
        host(edge, task("tally"))
        edge.decide(edge.find("shop"))
        with monkeypatch.context() as other:
            other.setattr(snapshots, "VERSION", VERSION + 1)
            edge.flush()
        before = store.snapshot("shop-1")
        needed = f"has version {VERSION + 1}, version {VERSION} is needed: use the version of Outvote"
        with pytest.raises(MalformedSnapshot, match=needed):
            an_edge(store)
        assert store.snapshot("shop-1") == before


# ---- a kit


@pytest.mark.parametrize("version", [0, 2])
def test_a_kit_of_another_version_is_refused_whatever_its_fields(tmp_path: Path, version: int) -> None:
    (tmp_path / "kit.json").write_text(json.dumps({"kit": "edge", "version": version, "colour": "red"}))
    with pytest.raises(InvalidConfiguration, match=f"has version {version}, this version of Outvote reads 1; make"):
        read_edge_kit(tmp_path)


# ---- operators


def test_operators_see_a_task_of_other_rules_and_can_delete_it(
    memory: MemoryEngine, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with operated(memory) as (server, client):
            await server.log.append("outvote.down.other-1.task", of_other_rules(name="other"))
            assert (await client.post("/v1/tasks", json=TALLY)).status_code == 201
            listed = (await client.get("/v1/tasks")).json()
            assert [each["name"] for each in listed["tasks"]] == ["shop"]
            assert [each["id"] for each in listed["unreadable"]] == ["other-1"]
            assert listed["unreadable"][0]["why"].startswith(WHY)
            assert len(said(caplog)) == 1
            refused = await client.post("/v1/tasks", json={**TALLY, "name": "other"})
            assert refused.status_code == 409
            assert "this version cannot read it: rules must be" in refused.json()["detail"]
        async with operated(memory) as (_, client):
            assert len(said(caplog)) == 2, "a server that starts says it again"
            assert (await client.delete("/v1/tasks/other-1")).status_code == 204
            assert (await client.get("/v1/tasks")).json()["unreadable"] == []
            assert (await client.post("/v1/tasks", json={**TALLY, "name": "other"})).status_code == 201

    asyncio.run(run())
