"""The edge's store: real files, real processes, real kills. A kill shows what outlives the process; that a durable save
waits for the disk is checked by SQLite's setting alone, since no test here can cut the power."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from helpers.stores import a_used_store
from outvote.edge.store import (
    META_KEYS,
    SCHEMA,
    WAL_PAGES,
    EdgeStore,
    Save,
    StoreLocked,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "edge.db"


def in_another_process(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def tables(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT name, sql FROM sqlite_master"))


# ---- what is saved is there


def test_a_store_gives_back_what_was_saved(path: Path) -> None:
    a_used_store(path)
    with EdgeStore(path) as store:
        assert store.tasks() == {"colour-1": '{"arms": 3}'}
        assert store.snapshot("colour-1") == "after two"
        assert store.messages("colour-1") == [(0, b"zero"), (1, b"one")]
        store.put_task("colour-1", "another record")
        store.save([Save("colour-1", "after six", [(n, bytes([n])) for n in (7, 3, 11, 2)])])
        assert store.tasks() == {"colour-1": "another record"}
        assert store.snapshot("colour-1") == "after six"
        assert [sequence for sequence, _ in store.messages("colour-1")] == [0, 1, 2, 3, 7, 11]


def test_a_dropped_task_is_forgotten_with_all_it_had_and_no_other_is(path: Path) -> None:
    with EdgeStore(path) as store:
        for task in ("gone", "kept"):
            store.put_task(task, "record")
            store.save([Save(task, "snapshot", [(0, b"message")])])
        store.drop_task("gone")
        store.drop_task("never there")
        assert store.tasks() == {"kept": "record"}
        assert (store.snapshot("gone"), store.messages("gone")) == (None, [])
        assert (store.snapshot("kept"), store.messages("kept")) == ("snapshot", [(0, b"message")])


def test_many_tasks_are_saved_together_or_not_at_all_and_a_message_never_changes(path: Path) -> None:
    with EdgeStore(path) as store:
        store.save([])
        store.save([Save("a", "a1"), Save("b", "b1", [(0, b"b")])])
        with pytest.raises(sqlite3.IntegrityError):
            store.save([Save("a", "a2", [(0, b"a")]), Save("b", "b2", [(1, b"new"), (0, b"other")])])
        assert (store.snapshot("a"), store.messages("a")) == ("a1", [])
        assert (store.snapshot("b"), store.messages("b")) == ("b1", [(0, b"b")])


def test_closing_twice_is_fine_and_a_closed_store_is_not_used(path: Path) -> None:
    store = EdgeStore(path)
    store.close()
    store.close()
    for use in (store.tasks, lambda: store.save([Save("t", "s")])):
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            use()


# ---- one process

HOLD = """
import sys
from pathlib import Path
from outvote.edge.store import EdgeStore
store = EdgeStore(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_and_told_who_holds_the_store(path: Path) -> None:
    with in_another_process(HOLD, path) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreLocked, match=rf"edge\.db is in use by process {holder.pid}: stop that edge, or give"):
            EdgeStore(path)
        holder.kill()
        holder.wait()
        EdgeStore(path).close()


def test_one_process_cannot_open_a_store_twice_even_by_a_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with EdgeStore(path) as store:
        for way in (path, link):
            with pytest.raises(StoreLocked, match=f"process {os.getpid()}"):
                EdgeStore(way)
        store.save([Save("t", "undisturbed")])
    EdgeStore(link).close()


def test_a_reader_may_look_into_a_store_in_use(path: Path) -> None:
    with EdgeStore(path) as store, closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
        store.save([Save("t", "s", [(0, b"x")])])
        assert reader.execute("SELECT * FROM messages").fetchall() == [("t", 0, b"x")]
        store.save([Save("t", "s", [(1, b"y")])])


def test_a_store_is_for_its_owner_alone(path: Path) -> None:
    with EdgeStore(path) as store:
        store.save([Save("t", "s")])
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(("edge.db", "edge.db-wal", "edge.db-shm", "edge.db.lock"), 0o600)


# ---- kills

SAVE_UNTIL_KILLED = """
import json, sys
from pathlib import Path
from outvote.edge.store import EdgeStore, Save
with EdgeStore(Path(sys.argv[1])) as store:
    sent = len(store.messages("t"))
    while True:
        for lazy in range(sent % 3):
            store.save([Save("t", json.dumps({"messages": sent, "padding": "." * (sent * 37 % 9000)}))])
        new = [(sent + more, b"%d" % (sent + more)) for more in range(1 + sent % 2)]
        sent += len(new)
        store.save([Save("t", json.dumps({"messages": sent, "padding": "." * (sent * 37 % 9000)}), new)])
        print(sent, flush=True)
"""


def test_after_a_kill_at_any_moment_every_message_that_was_saved_is_there_with_its_snapshot(path: Path) -> None:
    moments = random.Random(20)
    with EdgeStore(path) as store:
        incarnation = store.incarnation
    printed = 0
    for _ in range(20):
        with in_another_process(SAVE_UNTIL_KILLED, path) as edge:
            assert edge.stdout is not None
            lines = [edge.stdout.readline() for _ in range(moments.randint(1, 30))]
            with suppress(subprocess.TimeoutExpired):  # it never ends by itself: this lets a random moment pass
                edge.wait(timeout=moments.uniform(0, 0.01))
            edge.send_signal(signal.SIGKILL)
            lines += edge.stdout.read().splitlines(keepends=True)
            assert edge.wait() == -signal.SIGKILL
        printed = max([printed, *(int(line) for line in lines if line.endswith("\n"))])
        with EdgeStore(path) as store:  # which checks that the file is whole
            assert (store.incarnation, store.renewed) == (incarnation, False)
            stored = store.messages("t")
            assert stored == [(n, b"%d" % n) for n in range(len(stored))]
            assert printed <= len(stored) <= printed + 2  # at most the save after the last one printed
            assert json.loads(store.snapshot("t") or "")["messages"] == len(stored)
    assert printed > 40


# ---- what is kept, and what is not


def test_the_schema_is_closed(path: Path) -> None:
    a_used_store(path)
    assert tables(path) == SCHEMA
    with closing(sqlite3.connect(path)) as connection:
        found = {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in SCHEMA}
        keys = {key for (key,) in connection.execute("SELECT key FROM meta")}
    assert found == {
        "meta": ["key", "value"],
        "tasks": ["task_id", "record"],
        "snapshots": ["task_id", "body"],
        "messages": ["task_id", "sequence", "payload"],
    }
    assert keys == set(META_KEYS)


def test_what_was_dropped_is_in_no_file_any_more(path: Path) -> None:
    with EdgeStore(path) as store:
        store.put_task("gone", "SECRET record")
        store.save([Save("gone", "SECRET snapshot" * 1000, [(n, b"SECRET message") for n in range(500)])])
        store.drop_task("gone")
    assert not any(b"SECRET" in file.read_bytes() for file in path.parent.iterdir())


def test_of_former_snapshots_only_the_last_few_can_be_found_on_the_disk(path: Path) -> None:
    with EdgeStore(path) as store:
        for n in range(1000):
            store.save([Save("t", f"<snapshot {n}>")])
        content = b"".join(file.read_bytes() for file in path.parent.iterdir())
        found = [n for n in range(1000) if b"<snapshot %d>" % n in content]
    assert 999 in found
    assert len(found) <= WAL_PAGES + 1  # one page each in the log, and one in the file
    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert [n for n in range(1000) if b"<snapshot %d>" % n in content] == [999]


# ---- durability


def test_messages_wait_for_the_disk_and_snapshots_alone_do_not(path: Path) -> None:
    normal, full = 1, 2
    with EdgeStore(path) as store:
        for save, level in (
            (Save("t", "s"), normal),
            (Save("t", "s", [(0, b"x")]), full),
            (Save("u", "s"), normal),
        ):
            store.save([Save("other", "s"), save])
            assert store._connection.execute("PRAGMA synchronous").fetchone() == (level,)
        store.put_task("t", "record")
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (full,)
        store.save([Save("t", "s")])
        store.drop_task("t")
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (full,)
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
