"""What an edge's store may meet: copies, backups, strangers, damage, and disks that do not do what they should."""

from __future__ import annotations

import random
import resource
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from helpers.stores import a_used_store
from outvote.edge.store import (
    SCHEMA,
    EdgeStore,
    Save,
    StoreFailed,
    StoreUnusable,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "edge.db"


# ---- one file, one incarnation


def test_the_same_file_keeps_its_incarnation_also_in_another_place(path: Path, tmp_path: Path) -> None:
    incarnation = a_used_store(path)
    for place in (path, path, tmp_path / "moved.db"):
        with EdgeStore(path.rename(place) if place != path else path) as store:
            assert (store.incarnation, store.renewed) == (incarnation, False)
            store.save([Save("colour-1", "more", [(len(store.messages("colour-1")), b"more")])])
    assert len(incarnation) == 16
    assert int(incarnation, 16) >= 0


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
        store.save([Save("colour-1", "afresh", [(0, b"other than before")])])
        renewed = store.incarnation
    with EdgeStore(path) as store:
        assert (store.incarnation, store.renewed, len(store.messages("colour-1"))) == (renewed, False, 1)


def test_a_copy_gets_an_incarnation_of_its_own_and_forgets(path: Path, tmp_path: Path) -> None:
    incarnation = a_used_store(path)
    assert_renewed(Path(shutil.copy2(path, tmp_path / "copy.db")), incarnation)
    with EdgeStore(path) as store:
        assert (store.incarnation, store.renewed, len(store.messages("colour-1"))) == (incarnation, False, 2)


def test_a_copy_of_a_store_in_use_gets_an_incarnation_of_its_own(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    a_used_store(path)
    with EdgeStore(path) as store:
        store.save([Save("colour-1", "in the log", [(2, b"two")])])
        copy.mkdir()
        for file in tmp_path.glob("edge.db*"):
            shutil.copy2(file, copy)
        assert_renewed(copy / "edge.db", store.incarnation)


def test_a_backup_in_the_place_of_a_removed_store_starts_afresh(path: Path, tmp_path: Path) -> None:
    incarnation = a_used_store(path)
    backup = shutil.copy2(path, tmp_path / "backup")
    with EdgeStore(path) as store:
        store.save([Save("colour-1", "after three", [(2, b"two")])])
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


@pytest.mark.parametrize("messages", [[], [(2, b"two")]], ids=["a snapshot", "a message"])
def test_a_backup_written_over_the_store_starts_afresh_if_anything_was_saved_since(
    path: Path, messages: list[tuple[int, bytes]]
) -> None:
    incarnation = a_used_store(path)
    backup = path.read_bytes()
    with EdgeStore(path) as store:
        store.save([Save("colour-1", "after three", messages)])
    number = path.stat().st_ino
    path.write_bytes(backup)
    assert path.stat().st_ino == number
    assert_renewed(path, incarnation)


def test_a_backup_written_over_the_store_is_taken_as_it_is_if_it_was_not_opened_since(path: Path) -> None:
    incarnation = a_used_store(path)
    path.write_bytes(path.read_bytes())
    with EdgeStore(path) as store:
        assert (store.incarnation, store.renewed, store.snapshot("colour-1")) == (incarnation, False, "after two")


def test_a_backup_of_a_former_incarnation_starts_afresh(path: Path) -> None:
    former = a_used_store(path)
    early = path.read_bytes()
    with EdgeStore(path) as store:
        for n in range(2, 20):
            store.save([Save("colour-1", "later", [(n, b"later")])])
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


# ---- whether all was saved


def test_a_store_is_clean_after_whoever_used_it_last_has_said_so(path: Path) -> None:
    with EdgeStore(path) as store:
        assert store.clean  # nothing was ever in it
    with EdgeStore(path) as store:
        assert not store.clean
        store.save([Save("colour-1", "before the end", [(0, b"zero")])])
        store.mark_clean()
    for clean in (True, False):  # it holds for one opening: who opens it may crash
        with EdgeStore(path) as store:
            assert (store.clean, store.snapshot("colour-1")) == (clean, "before the end")


def test_a_clean_store_that_was_copied_is_as_good_as_new(path: Path, tmp_path: Path) -> None:
    a_used_store(path)
    with EdgeStore(path) as store:
        store.mark_clean()
    with EdgeStore(Path(shutil.copy2(path, tmp_path / "copy.db"))) as copy:
        assert (copy.renewed, copy.snapshot("colour-1")) == (True, None)


# ---- what is no store


def stranger(path: Path, *statements: str) -> bytes:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path.read_bytes()


@pytest.mark.parametrize("content", [b"x", b"SQLite format 3\0", b"\0" * 4096, "DELETE", "WAL"])
def test_what_is_no_database_or_that_of_another_application_is_refused_and_left_alone(
    path: Path, content: bytes | str
) -> None:
    if isinstance(content, str):
        content = stranger(path, f"PRAGMA journal_mode = {content}", "CREATE TABLE bookmarks (address)")
    path.write_bytes(content)
    with pytest.raises(StoreUnusable, match=r"not the store of an edge: give another path, or move it away"):
        EdgeStore(path)
    assert path.read_bytes() == content
    assert [file.name for file in path.parent.iterdir()] == ["edge.db"]


@pytest.mark.parametrize("version", [0, 3, 7])
def test_another_schema_version_is_refused_and_left_alone(path: Path, version: int) -> None:
    a_used_store(path)
    before = stranger(path, f"PRAGMA user_version = {version}", "PRAGMA wal_checkpoint")
    with pytest.raises(StoreUnusable, match=f"has schema version {version}, this version of Outvote reads 4: run the "):
        EdgeStore(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE snapshots SET body = replace(body, '1', '2')",
        "UPDATE messages SET payload = x'81' WHERE sequence = 0",
        "UPDATE messages SET sequence = 77 WHERE sequence = 0",
        "DELETE FROM messages WHERE sequence = 0",
        "UPDATE tasks SET record = record || ' '",
        "UPDATE meta SET value = 'other' WHERE key = 'incarnation'",
        "DELETE FROM meta WHERE key = 'digest'",
    ],
)
def test_a_store_in_which_a_row_is_not_as_it_was_written_is_refused(path: Path, change: str) -> None:
    """SQLite finds nothing wrong with it. An edge that went on from there would count what never was."""
    with EdgeStore(path) as store:
        store.put_task("t", "record")
        store.save([Save("t", '{"seen": 1}', [(0, b"x"), (1, b"y")])])
    stranger(path, change)
    with pytest.raises(StoreUnusable, match=r"damaged \(a row is not as it was written\): move it away"):
        EdgeStore(path)


def test_a_sum_is_right_after_what_was_refused_dropped_and_begun_anew(path: Path) -> None:
    with EdgeStore(path) as store:
        for task in ("t", "u"):
            store.put_task(task, "record")
            store.save([Save(task, "state", [(0, b"x")])])
        with pytest.raises(sqlite3.IntegrityError):
            store.save([Save("t", "later", [(1, b"y"), (0, b"other")])])
        store.drop_task("u")
        store.save([Save("t", "later", [(1, b"y")])])
        store.save([Save("t", "latest")])
    with EdgeStore(path) as store:
        assert (store.snapshot("t"), len(store.messages("t")), store.tasks()) == ("latest", 2, {"t": "record"})


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


def test_a_store_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreUnusable, match=r"a store is a file, .*/folder is none"):
        EdgeStore(tmp_path / "folder")


@pytest.mark.parametrize("folder", ["/sys", "/nowhere/at/all"])
def test_a_folder_that_cannot_be_written_is_refused_with_what_to_do(folder: str) -> None:
    with pytest.raises(StoreUnusable, match=rf"in the folder {folder}: .*; make that folder, let the edge write to it"):
        EdgeStore(Path(folder, "edge.db"))


def test_a_store_to_which_somebody_added_a_table_is_refused_and_a_refusal_frees_it(path: Path) -> None:
    a_used_store(path)
    stranger(path, "CREATE TABLE visitors (name)")
    for _ in range(2):
        with pytest.raises(StoreUnusable, match="not as an edge made it: move it away"):
            EdgeStore(path)
    stranger(path, "DROP TABLE visitors")
    EdgeStore(path).close()


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
                store.save([Save("colour-1", "x" * 20_000, [(2, b"two")])])
        assert (store.snapshot("colour-1"), len(store.messages("colour-1"))) == ("after two", 2)
        store._connection.execute("PRAGMA max_page_count = 100000")  # space was freed
        store.save([Save("colour-1", "x" * 20_000, [(2, b"two")])])
    with EdgeStore(path) as store:
        assert not store.renewed
        assert (store.snapshot("colour-1"), len(store.messages("colour-1"))) == ("x" * 20_000, 3)


@pytest.mark.parametrize("messages", [[], [(2, b"two")]], ids=["lazy", "durable"])
def test_a_failing_disk_is_told_and_loses_nothing(path: Path, messages: list[tuple[int, bytes]]) -> None:
    a_used_store(path)
    with EdgeStore(path) as store:
        with no_file_longer_than(path.stat().st_size), pytest.raises(StoreFailed, match="what was saved before is kep"):
            store.save([Save("colour-1", "x" * 200_000, messages)])
        assert (store.snapshot("colour-1"), len(store.messages("colour-1"))) == ("after two", 2)
        store.save([Save("colour-1", "after three", [(2, b"two")])])
    with EdgeStore(path) as store:
        assert not store.renewed
        assert (store.snapshot("colour-1"), len(store.messages("colour-1"))) == ("after three", 3)


def test_a_store_that_cannot_be_made_on_a_failing_disk_is_told_and_can_be_made_later(path: Path) -> None:
    with no_file_longer_than(5000), pytest.raises(StoreUnusable, match=r"cannot be opened: .*disk"):
        EdgeStore(path)
    with EdgeStore(path) as store:
        assert not store.renewed
        store.save([Save("t", "s", [(0, b"x")])])


def test_a_program_that_writes_to_the_store_is_told_of(path: Path) -> None:
    with EdgeStore(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as meddler:
        meddler.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailed, match=r"locked; .*another program writes to it"):
            store.save([Save("t", "s")])
        meddler.execute("ROLLBACK")
        store.save([Save("t", "s")])
