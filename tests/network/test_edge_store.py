"""The edge's store: real files, real processes, real kills. A kill shows what outlives the process; that a durable save
waits for the disk is checked by SQLite's setting alone, since no test here can cut the power."""

from __future__ import annotations

import fcntl
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from statistics import median

import pytest

from outvote.core.errors import OutvoteError
from outvote.network.edge_store import (
    META_KEYS,
    SCHEMA,
    WAL_PAGES,
    EdgeStore,
    MessageConflict,
    Save,
    StoreFailed,
    StoreLocked,
    StoreUnusable,
    _make_file,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "edge.db"


def a_used_store(path: Path) -> str:
    """Makes a store with a task, a snapshot and two messages, and closes it; returns its incarnation."""
    with EdgeStore(path) as store:
        store.put_task("colour-1", '{"arms": 3}')
        store.save("colour-1", "after two", [(0, b"zero"), (1, b"one")])
        return store.incarnation


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
        assert store.count("colour-1") == 2


def test_a_new_store_is_empty(path: Path) -> None:
    with EdgeStore(path) as store:
        assert store.tasks() == {}
        assert store.snapshot("colour-1") is None
        assert store.messages("colour-1") == []
        assert store.count("colour-1") == 0
        assert not store.renewed


def test_messages_come_in_order_of_sequence_from_any_place(path: Path) -> None:
    with EdgeStore(path) as store:
        store.save("t", "s", [(n, bytes([n])) for n in (7, 2, 11, 0)])
        assert [sequence for sequence, _ in store.messages("t")] == [0, 2, 7, 11]
        assert store.messages("t", after=2) == [(7, b"\x07"), (11, b"\x0b")]
        assert store.messages("t", after=11) == []


def test_a_later_snapshot_or_record_takes_the_place_of_the_earlier(path: Path) -> None:
    with EdgeStore(path) as store:
        store.put_task("t", "first")
        store.put_task("t", "second")
        store.save("t", "first", [(0, b"")])
        store.save("t", "second")
        assert store.tasks() == {"t": "second"}
        assert store.snapshot("t") == "second"
        assert store.messages("t") == [(0, b"")]


def test_a_dropped_task_is_forgotten_with_all_it_had_and_no_other_is(path: Path) -> None:
    with EdgeStore(path) as store:
        for task in ("gone", "kept"):
            store.put_task(task, "record")
            store.save(task, "snapshot", [(0, b"message")])
        store.drop_task("gone")
        store.drop_task("never there")
        assert store.tasks() == {"kept": "record"}
        assert (store.snapshot("gone"), store.messages("gone")) == (None, [])
        assert (store.snapshot("kept"), store.messages("kept")) == ("snapshot", [(0, b"message")])


def test_many_tasks_are_saved_together_or_not_at_all(path: Path) -> None:
    with EdgeStore(path) as store:
        store.save_many([])
        store.save_many([Save("a", "a1"), Save("b", "b1", [(0, b"b")])])
        assert (store.snapshot("a"), store.snapshot("b"), store.count("b")) == ("a1", "b1", 1)
        with pytest.raises(MessageConflict):
            store.save_many([Save("a", "a2", [(0, b"a")]), Save("b", "b2", [(0, b"other")])])
        assert (store.snapshot("a"), store.count("a"), store.snapshot("b")) == ("a1", 0, "b1")


def test_a_message_may_come_again_but_never_with_other_content(path: Path) -> None:
    with EdgeStore(path) as store:
        store.save("t", "one", [(0, b"\x0a")])
        store.save("t", "again", [(0, b"\x0a")])
        with pytest.raises(MessageConflict, match=r"message 0 of task 't' is stored as 0a, got 0b"):
            store.save("t", "wrong", [(1, b"new"), (0, b"\x0b")])
        assert store.snapshot("t") == "again"
        assert store.messages("t") == [(0, b"\x0a")]


def test_a_value_of_no_use_leaves_the_store_as_it_was_and_usable(path: Path) -> None:
    with EdgeStore(path) as store:
        store.save("t", "good", [(0, b"zero")])
        with pytest.raises(sqlite3.ProgrammingError):
            store.save("t", "bad", [(1, object())])  # type: ignore[list-item]
        store.save("t", "better", [(1, b"one")])
        assert (store.snapshot("t"), store.count("t")) == ("better", 2)


def test_closing_twice_is_fine_and_a_closed_store_is_not_used(path: Path) -> None:
    store = EdgeStore(path)
    store.close()
    store.close()
    for use in (store.tasks, lambda: store.save("t", "s")):
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            use()


def test_another_thread_is_refused_and_disturbs_nothing(path: Path) -> None:
    refused: list[Exception] = []

    def trespass() -> None:
        try:
            store.save("t", "theirs")
        except sqlite3.ProgrammingError as error:
            refused.append(error)

    with EdgeStore(path) as store:
        thread = threading.Thread(target=trespass)
        thread.start()
        thread.join()
        store.save("t", "ours")
        assert store.snapshot("t") == "ours"
    assert "thread" in str(refused)


# ---- one process

HOLD = """
import sys
from pathlib import Path
from outvote.network.edge_store import EdgeStore
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
        store.save("t", "undisturbed")
    EdgeStore(link).close()


def test_a_reader_may_look_into_a_store_in_use(path: Path) -> None:
    with EdgeStore(path) as store, closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
        store.save("t", "s", [(0, b"x")])
        assert reader.execute("SELECT * FROM messages").fetchall() == [("t", 0, b"x")]
        store.save("t", "s", [(1, b"y")])


def test_a_store_is_for_its_owner_alone(path: Path) -> None:
    with EdgeStore(path) as store:
        store.save("t", "s")
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(("edge.db", "edge.db-wal", "edge.db-shm", "edge.db.lock"), 0o600)


# ---- kills

SAVE_UNTIL_KILLED = """
import json, sys
from pathlib import Path
from outvote.network.edge_store import EdgeStore
with EdgeStore(Path(sys.argv[1])) as store:
    sent = store.count("t")
    while True:
        for lazy in range(sent % 3):
            store.save("t", json.dumps({"messages": sent, "padding": "." * (sent * 37 % 9000)}))
        new = [(sent + more, b"%d" % (sent + more)) for more in range(1 + sent % 2)]
        sent += len(new)
        store.save("t", json.dumps({"messages": sent, "padding": "." * (sent * 37 % 9000)}), new)
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


# ---- one file, one incarnation


def test_the_same_file_keeps_its_incarnation(path: Path) -> None:
    incarnation = a_used_store(path)
    for _ in range(3):
        with EdgeStore(path) as store:
            assert (store.incarnation, store.renewed) == (incarnation, False)
            store.save("colour-1", "more", [(store.count("colour-1"), b"more")])
    assert len(incarnation) == 16
    assert int(incarnation, 16) >= 0


def test_a_file_that_was_moved_keeps_its_incarnation(path: Path, tmp_path: Path) -> None:
    incarnation = a_used_store(path)
    with EdgeStore(path.rename(tmp_path / "moved.db")) as store:
        assert (store.incarnation, store.renewed, store.count("colour-1")) == (incarnation, False, 2)


def test_a_wiped_store_is_a_new_one(path: Path) -> None:
    incarnation = a_used_store(path)
    path.unlink()
    with EdgeStore(path) as store:
        assert store.incarnation != incarnation
        assert not store.renewed
        assert store.tasks() == {}


def assert_renewed(path: Path, *former: str) -> None:
    with EdgeStore(path) as store:
        assert store.renewed
        assert store.incarnation not in former
        assert store.tasks() == {"colour-1": '{"arms": 3}'}
        assert (store.snapshot("colour-1"), store.messages("colour-1")) == (None, [])
        store.save("colour-1", "afresh", [(0, b"other than before")])
        renewed = store.incarnation
    with EdgeStore(path) as store:
        assert (store.incarnation, store.renewed, store.count("colour-1")) == (renewed, False, 1)


def test_a_copy_gets_an_incarnation_of_its_own_and_forgets(path: Path, tmp_path: Path) -> None:
    incarnation = a_used_store(path)
    assert_renewed(Path(shutil.copy2(path, tmp_path / "copy.db")), incarnation)
    with EdgeStore(path) as store:
        assert (store.incarnation, store.renewed, store.count("colour-1")) == (incarnation, False, 2)


def test_a_copy_of_a_store_in_use_gets_an_incarnation_of_its_own(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    a_used_store(path)
    with EdgeStore(path) as store:
        store.save("colour-1", "in the log", [(2, b"two")])
        copy.mkdir()
        for file in tmp_path.glob("edge.db*"):
            shutil.copy2(file, copy)
        assert_renewed(copy / "edge.db", store.incarnation)


def test_a_backup_in_the_place_of_a_removed_store_starts_afresh(path: Path, tmp_path: Path) -> None:
    incarnation = a_used_store(path)
    backup = shutil.copy2(path, tmp_path / "backup")
    with EdgeStore(path) as store:
        store.save("colour-1", "after three", [(2, b"two")])
    path.unlink()
    shutil.copy2(backup, path)  # often under the number on the disk that has just become free
    assert_renewed(path, incarnation)


def test_a_folder_restored_with_its_lock_file_starts_afresh(tmp_path: Path) -> None:
    (tmp_path / "edge").mkdir()
    incarnation = a_used_store(tmp_path / "edge" / "edge.db")
    shutil.copytree(tmp_path / "edge", tmp_path / "backup")
    (tmp_path / "edge").rename(tmp_path / "broken")
    shutil.copytree(tmp_path / "backup", tmp_path / "edge")
    assert_renewed(tmp_path / "edge" / "edge.db", incarnation)


def test_a_file_is_told_from_a_removed_one_of_the_same_number_where_the_disk_can_tell(path: Path) -> None:
    removed = _make_file(path)
    path.unlink()
    made = _make_file(path)
    assert made == _make_file(path)
    can_tell = True
    with path.open("rb") as file:
        try:
            fcntl.ioctl(file, 0x80087601, bytes(8))  # FS_IOC_GETVERSION
        except OSError:
            can_tell = False
    assert made != removed or not can_tell


def test_a_backup_written_over_the_store_starts_afresh_if_a_message_was_saved_since(path: Path) -> None:
    incarnation = a_used_store(path)
    backup = path.read_bytes()
    with EdgeStore(path) as store:
        store.save("colour-1", "after three", [(2, b"two")])
    number = path.stat().st_ino
    path.write_bytes(backup)
    assert path.stat().st_ino == number
    assert_renewed(path, incarnation)


def test_a_backup_written_over_the_store_is_taken_as_it_is_if_no_message_was_saved_since(path: Path) -> None:
    incarnation = a_used_store(path)
    backup = path.read_bytes()
    with EdgeStore(path) as store:
        store.save("colour-1", "a little later")
    path.write_bytes(backup)
    with EdgeStore(path) as store:  # the same as a crash before the last save
        assert (store.incarnation, store.renewed, store.snapshot("colour-1")) == (incarnation, False, "after two")


def test_a_backup_of_a_former_incarnation_starts_afresh(path: Path) -> None:
    former = a_used_store(path)
    early = path.read_bytes()
    with EdgeStore(path) as store:
        for n in range(2, 20):
            store.save("colour-1", "later", [(n, b"later")])
    late = path.read_bytes()
    path.write_bytes(early)
    with EdgeStore(path) as store:
        assert store.renewed
        latter = store.incarnation
    path.write_bytes(late)  # with more saves than the lock file knows of, but not of this incarnation
    assert_renewed(path, former, latter)


@pytest.mark.parametrize("note", [b"", b"\0" * 128, b"[1, 2]", b'{"pid": 1}', b"\xff\xfe"])
def test_a_lock_file_without_a_readable_note_does_no_harm(path: Path, note: bytes) -> None:
    incarnation = a_used_store(path)
    path.with_name("edge.db.lock").write_bytes(note)
    with EdgeStore(path) as store:
        assert (store.incarnation, store.renewed) == (incarnation, False)


# ---- what is no store


def stranger(path: Path, *statements: str) -> bytes:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path.read_bytes()


@pytest.mark.parametrize("content", [b"x", b"holiday pictures " * 1000, b"SQLite format 3\0", b"\0" * 4096])
def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreUnusable, match=r"not the store of an edge: give another path, or move it away"):
        EdgeStore(path)
    assert path.read_bytes() == content
    assert [file.name for file in path.parent.iterdir()] == ["edge.db"]


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_the_database_of_another_application_is_refused_and_left_alone(path: Path, mode: str) -> None:
    before = stranger(path, f"PRAGMA journal_mode = {mode}", "CREATE TABLE bookmarks (address)")
    with pytest.raises(StoreUnusable, match="not the store of an edge"):
        EdgeStore(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["edge.db"]


def test_another_schema_version_is_refused_and_left_alone(path: Path) -> None:
    a_used_store(path)
    before = stranger(path, "PRAGMA user_version = 7", "PRAGMA wal_checkpoint")
    with pytest.raises(StoreUnusable, match=r"schema version 7, allowed is 1: run the version of Outvote that made it"):
        EdgeStore(path)
    assert path.read_bytes() == before


def test_a_store_to_which_somebody_added_a_table_is_refused(path: Path) -> None:
    a_used_store(path)
    stranger(path, "CREATE TABLE visitors (name)")
    with pytest.raises(StoreUnusable, match=r"not as an edge made it: move it away"):
        EdgeStore(path)


@pytest.mark.parametrize("table", SCHEMA)
def test_a_store_with_a_damaged_table_is_refused(path: Path, table: str) -> None:
    a_used_store(path)
    with closing(sqlite3.connect(path)) as connection:
        [[page]] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [table])
        [[size]] = connection.execute("PRAGMA page_size")
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = random.Random(1).randbytes(size)
    path.write_bytes(content)
    with pytest.raises(StoreUnusable, match=r"move it away, with its -wal and -shm files, and the edge starts afresh"):
        EdgeStore(path)
    path.unlink()
    EdgeStore(path).close()


def test_a_store_whose_rows_are_out_of_order_is_refused(path: Path) -> None:
    with EdgeStore(path) as store:
        store.put_task("alpha", "record")
        store.put_task("beta", "record")
    path.write_bytes(path.read_bytes().replace(b"alpha", b"gamma"))
    with pytest.raises(StoreUnusable, match=r"edge\.db is damaged \(.*\): move it away"):
        EdgeStore(path)


def test_a_store_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreUnusable, match=r"a store is a file, .*/folder is none"):
        EdgeStore(tmp_path / "folder")


@pytest.mark.parametrize("folder", ["/sys", "/nowhere/at/all"])
def test_a_folder_that_cannot_be_written_is_refused_with_what_to_do(folder: str) -> None:
    with pytest.raises(StoreUnusable, match=rf"in the folder {folder}: .*; make that folder, let the edge write to it"):
        EdgeStore(Path(folder, "edge.db"))


def test_a_refusal_frees_the_store(path: Path) -> None:
    a_used_store(path)
    stranger(path, "CREATE TABLE visitors (name)")
    for _ in range(2):
        with pytest.raises(StoreUnusable):
            EdgeStore(path)
    stranger(path, "DROP TABLE visitors")
    EdgeStore(path).close()


@pytest.mark.parametrize("error", [StoreLocked, StoreUnusable, StoreFailed, MessageConflict])
def test_every_error_is_one_of_outvote(error: type[Exception]) -> None:
    assert issubclass(error, OutvoteError)


# ---- a disk that does not do what it should


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """The kernel refuses to write beyond: as a disk does that fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_with_what_to_do_and_loses_nothing(path: Path) -> None:
    a_used_store(path)
    with EdgeStore(path) as store:
        [(pages,)] = store._connection.execute("PRAGMA page_count").fetchall()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        for _ in range(3):
            with pytest.raises(StoreFailed, match=r"disk is full; what was saved before is kept; free some space"):
                store.save("colour-1", "x" * 20_000, [(2, b"two")])
        assert (store.snapshot("colour-1"), store.count("colour-1")) == ("after two", 2)
        store._connection.execute("PRAGMA max_page_count = 100000")  # space was freed
        store.save("colour-1", "x" * 20_000, [(2, b"two")])
    with EdgeStore(path) as store:
        assert not store.renewed
        assert (store.snapshot("colour-1"), store.count("colour-1")) == ("x" * 20_000, 3)


@pytest.mark.parametrize("messages", [[], [(2, b"two")]], ids=["lazy", "durable"])
def test_a_failing_disk_is_told_and_loses_nothing(path: Path, messages: list[tuple[int, bytes]]) -> None:
    a_used_store(path)
    with EdgeStore(path) as store:
        with no_file_longer_than(path.stat().st_size), pytest.raises(StoreFailed, match="what was saved before is kep"):
            store.save("colour-1", "x" * 200_000, messages)
        assert (store.snapshot("colour-1"), store.count("colour-1")) == ("after two", 2)
        store.save("colour-1", "after three", [(2, b"two")])
    with EdgeStore(path) as store:
        assert not store.renewed
        assert (store.snapshot("colour-1"), store.count("colour-1")) == ("after three", 3)


def test_a_store_that_cannot_be_made_on_a_failing_disk_is_told_and_can_be_made_later(path: Path) -> None:
    with no_file_longer_than(5000), pytest.raises(StoreUnusable, match=r"cannot be opened: .*disk"):
        EdgeStore(path)
    with EdgeStore(path) as store:
        assert not store.renewed
        store.save("t", "s", [(0, b"x")])


def test_a_program_that_writes_to_the_store_is_told_of(path: Path) -> None:
    with EdgeStore(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as meddler:
        meddler.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailed, match=r"locked; .*another program writes to it"):
            store.save("t", "s")
        meddler.execute("ROLLBACK")
        store.save("t", "s")


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
        store.save("gone", "SECRET snapshot" * 1000, [(n, b"SECRET message") for n in range(500)])
        store.drop_task("gone")
    assert not any(b"SECRET" in file.read_bytes() for file in path.parent.iterdir())


def test_of_former_snapshots_only_the_last_few_can_be_found_on_the_disk(path: Path) -> None:
    with EdgeStore(path) as store:
        for n in range(1000):
            store.save("t", f"<snapshot {n}>")
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
            store.save_many([Save("other", "s"), save])
            assert store._connection.execute("PRAGMA synchronous").fetchone() == (level,)
        store.put_task("t", "record")
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (full,)
        store.save("t", "s")
        store.drop_task("t")
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (full,)
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_what_a_save_costs_is_measured(path: Path, record_property: Callable[[str, object], None]) -> None:
    """Run with `-rP` to see it; a disk's speed is no matter of right or wrong."""
    snapshot = "." * 2000
    with EdgeStore(path) as store:
        for kind, messages in (("durable", 1), ("lazy", 0)):
            taken = []
            for n in range(300):
                start = time.perf_counter()
                store.save("t", snapshot, [(n, b"abc")] * messages)
                taken.append((time.perf_counter() - start) * 1e6)
            record_property(f"{kind} save, median microseconds", round(median(taken)))
            print(f"{kind} save: median {median(taken):.0f} µs, mean {sum(taken) / len(taken):.0f} µs")
        assert store.count("t") == 300
