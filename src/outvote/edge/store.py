"""The durable state of an edge in one locked SQLite file: its tasks, and per task a snapshot and the messages sent.

A message and the snapshot after it are one transaction, durable when `save` returns: send a message only after that.
So a crash loses no message and repeats none. It loses only other state since the last save.

Messages have sequence numbers, and the log keeps the first message of each number. A store restored from an old copy
would reuse numbers for other content. So each file has its own incarnation: a copied or restored file is detected and
starts afresh under a new incarnation. Detection uses the file's identity on its disk, and a note in the lock file with
the incarnation and the number of durable writes. A restored image of a whole disk is not detected.

A checksum over all rows is stored with them. A file whose rows do not match it is refused.

Use a store only from the thread that made it; sqlite3 refuses any other.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from outvote.core.errors import InvalidConfiguration, OutvoteError
from outvote.processes import lock

SCHEMA: Final[Mapping[str, str]] = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "tasks": "CREATE TABLE tasks (task_id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID",
    "snapshots": "CREATE TABLE snapshots (task_id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID",
    "messages": (
        "CREATE TABLE messages (task_id TEXT, sequence INTEGER, payload BLOB NOT NULL, "
        "PRIMARY KEY (task_id, sequence)) WITHOUT ROWID"
    ),
}
"""All tables of a store: no events, no times of events, no names of people. A file with other tables is refused."""
META_KEYS: Final = ("incarnation", "file", "saves", "clean", "digest")
"""The keys of `meta`: the incarnation, the identity of the file, the number of durable writes, whether the last process
saved everything before it ended, and the checksum over all other rows."""
SCHEMA_VERSION: Final = 4
"""The version of this format, snapshots included. Other versions are refused."""
APPLICATION_ID: Final = int.from_bytes(b"OutV", "big")
WAL_PAGES: Final = 64
"""Pages of the write-ahead log before a checkpoint. The log holds the latest snapshots, and two snapshots reveal what
happened between them: so it is kept short."""

_HEADER = struct.Struct(">16s44xI4xI")  # of an SQLite file: magic at 0, user version at 60, application id at 68
_GET_GENERATION = (2 << 30) | (struct.calcsize("l") << 16) | (ord("v") << 8) | 1  # FS_IOC_GETVERSION of Linux
_START_AFRESH = "move it away, with its -wal and -shm files, and the edge starts afresh"
_ADVICE: Final[Mapping[int, str]] = {
    sqlite3.SQLITE_FULL: "free some space on its disk and try again",
    sqlite3.SQLITE_IOERR: "check its disk, then restart the edge",
    sqlite3.SQLITE_BUSY: "another program writes to it: stop that one and try again",
    sqlite3.SQLITE_CORRUPT: f"its file is damaged: {_START_AFRESH}",
    sqlite3.SQLITE_NOTADB: f"its file was overwritten: {_START_AFRESH}",
    sqlite3.SQLITE_READONLY: "let the edge write to the file and to its folder",
    sqlite3.SQLITE_CANTOPEN: "let the edge write to the file and to its folder",
}


class StoreLocked(OutvoteError):
    """Another process uses the store, or this one does already."""


class StoreUnusable(InvalidConfiguration):
    """The store at this path cannot be opened or created; nothing was changed there."""


class StoreFailed(OutvoteError):
    """A read or write failed; everything saved before is kept."""


class Save(NamedTuple):
    """One task's part of a transaction: its messages, in any order, and the snapshot after them."""

    task_id: str
    snapshot: str
    messages: Sequence[tuple[int, bytes]] = ()


class Store(Protocol):
    """The interface of a store: see `EdgeStore`."""

    incarnation: str
    clean: bool

    def tasks(self) -> dict[str, str]: ...
    def put_task(self, task_id: str, record: str) -> None: ...
    def drop_task(self, task_id: str) -> None: ...
    def save(self, saves: Iterable[Save]) -> None: ...
    def snapshot(self, task_id: str) -> str | None: ...
    def messages(self, task_id: str) -> list[tuple[int, bytes]]: ...
    def mark_clean(self) -> None: ...


class EdgeStore:
    """An edge's state on disk."""

    def __init__(self, path: Path) -> None:
        """Open the store, or create it; the folder must exist."""
        self.path = path.resolve()  # one lock per store, also through symbolic links
        self.incarnation = ""
        """Random, created with the file: distinguishes this store's messages from those of any other."""
        self.renewed = False
        """The file was copied or restored: it has a new incarnation, and its snapshots and messages were deleted."""
        self.clean = True
        """Whether the last process saved everything before it ended. Otherwise the snapshots lack its last changes."""
        _check_header(self.path)  # before locking: leave no lock file beside a file that is no store
        with contextlib.ExitStack() as on_error:
            self._lock = _Lock(self.path)
            on_error.callback(self._lock.release)
            identity = _make_file(self.path)
            try:
                self._connection = sqlite3.connect(self.path, timeout=1.0, isolation_level=None)
                on_error.callback(self._connection.close)
                self._open(identity)
            except (sqlite3.DatabaseError, StoreFailed) as error:
                cause = error.__cause__ or error
                raise StoreUnusable(f"the store {self.path} cannot be opened: {cause}; {_advice(cause)}") from error
            on_error.pop_all()

    def close(self) -> None:
        """Close the store and release its lock; may be called again."""
        self._connection.close()
        self._lock.release()

    def __enter__(self) -> EdgeStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- tasks

    def tasks(self) -> dict[str, str]:
        """Return the records of all tasks, by id."""
        return dict(self._rows("SELECT task_id, record FROM tasks ORDER BY task_id"))

    def put_task(self, task_id: str, record: str) -> None:
        """Add a task, or replace its record; durable on return."""
        with self._transaction(durable=True):
            self._put("tasks", "task_id", task_id, record)

    def drop_task(self, task_id: str) -> None:
        """Delete a task with its snapshot and messages, if it exists."""
        with self._transaction(durable=True):
            for table in ("tasks", "snapshots", "messages"):
                self._delete(table, "task_id", task_id)

    # ---- snapshots and messages

    def save(self, saves: Iterable[Save]) -> None:
        """Save new messages and the snapshots after them in one transaction; messages are durable on return.

        Without messages, a snapshot survives a crash of the process at once, and a power cut a little later. A second
        message with the same sequence is an error: messages never change.
        """
        saves = tuple(saves)
        if not saves:
            return
        with self._transaction(durable=any(save.messages for save in saves)):
            for task_id, snapshot, messages in saves:
                for sequence, payload in messages:
                    self._insert("messages", (task_id, sequence, payload))
                self._put("snapshots", "task_id", task_id, snapshot)

    def snapshot(self, task_id: str) -> str | None:
        """Return the last saved snapshot, if any."""
        rows = self._rows("SELECT body FROM snapshots WHERE task_id = ?", task_id)
        return str(rows[0][0]) if rows else None

    def messages(self, task_id: str) -> list[tuple[int, bytes]]:
        """Return the messages of a task, in order of sequence."""
        return self._rows("SELECT sequence, payload FROM messages WHERE task_id = ? ORDER BY sequence", task_id)

    def mark_clean(self) -> None:
        """Record that everything is saved: call it last, before `close`. Durable on return."""
        with self._transaction(durable=True):
            self._put_meta(clean="1")

    # ---- opening

    def _open(self, identity: str) -> None:
        execute = self._connection.execute
        execute("PRAGMA secure_delete = ON")  # overwrite deleted rows
        if not self._tables():
            self._create()
        if execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise StoreUnusable(f"the disk of {self.path} does not support write-ahead logs: choose a local disk")
        execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        if self._tables() != SCHEMA:
            raise StoreUnusable(f"{self.path} is not as an edge made it: {_START_AFRESH}")
        [(result,), *_] = execute("PRAGMA integrity_check").fetchall()
        if result != "ok":
            raise StoreUnusable(f"the store {self.path} is damaged ({result}): {_START_AFRESH}")

        note = self._lock.read()
        meta = dict(self._rows("SELECT key, value FROM meta"))
        self._sum = self._sum_of_rows()
        if meta and meta.get("digest") != self._digest:
            raise StoreUnusable(f"the store {self.path} is damaged (a row is not as it was written): {_START_AFRESH}")
        self._saves = int(meta.get("saves", "0"))
        self.incarnation = meta.get("incarnation", "")
        set_back = note is not None and (note.incarnation != self.incarnation or note.saves > self._saves)
        self.renewed = bool(meta) and (meta.get("file") != identity or set_back)
        if not meta or self.renewed:
            self.incarnation = secrets.token_hex(8)
            with self._transaction(durable=True):
                execute("DELETE FROM snapshots")
                execute("DELETE FROM messages")
                self._sum = self._sum_of_rows()
                self._put_meta(incarnation=self.incarnation, file=identity, clean="0")
        else:
            self.clean = meta.get("clean") == "1"
            with self._transaction(durable=True):  # also detects a read-only file now
                self._put_meta(clean="0")

    def _create(self) -> None:
        """Runs before WAL mode, so that the header that identifies a store is never in the write-ahead log alone."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        execute(f"PRAGMA application_id = {APPLICATION_ID}")
        execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        for statement in SCHEMA.values():
            execute(statement)
        execute("COMMIT")

    def _sum_of_rows(self) -> int:
        rows = [(table, row) for table in SCHEMA for row in self._rows(f"SELECT * FROM {table}")]
        return sum(_row_digest(table, row) for table, row in rows if (table, row[0]) != ("meta", "digest"))

    @property
    def _digest(self) -> str:
        return f"{self._sum % 2**64:016x}"

    def _tables(self) -> dict[str, str]:
        return dict(self._connection.execute("SELECT name, sql FROM sqlite_master"))

    # ---- reading and writing

    def _rows(self, query: str, *values: str | int) -> list[Any]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            if _is_failure(error):
                raise self._failed("read", error) from error
            raise

    @contextlib.contextmanager
    def _transaction(self, *, durable: bool) -> Iterator[None]:
        """Commit everything executed within, or nothing; `durable` waits for the disk."""
        execute = self._connection.execute
        saves, sum_before = self._saves + durable, self._sum
        try:
            execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            execute("BEGIN IMMEDIATE")
            yield
            if durable:
                self._put_meta(saves=str(saves))
            execute("INSERT OR REPLACE INTO meta VALUES ('digest', ?)", (self._digest,))
            execute("COMMIT")
        except BaseException as error:
            self._sum = sum_before
            with contextlib.suppress(sqlite3.DatabaseError):  # raise the original error
                if self._connection.in_transaction:  # some failures have rolled back already
                    self._connection.execute("ROLLBACK")
            if _is_failure(error):
                raise self._failed("written", error) from error
            raise
        if durable:
            self._saves = saves
            self._write_note()

    def _put(self, table: str, key_column: str, key: str, value: str) -> None:
        """Insert a row, or replace the one with the same key."""
        self._delete(table, key_column, key)
        self._insert(table, (key, value))

    def _insert(self, table: str, row: tuple[Any, ...]) -> None:
        self._connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        self._sum += _row_digest(table, row)

    def _delete(self, table: str, key_column: str, key: str) -> None:
        for row in self._rows(f"SELECT * FROM {table} WHERE {key_column} = ?", key):
            self._sum -= _row_digest(table, row)
        self._connection.execute(f"DELETE FROM {table} WHERE {key_column} = ?", (key,))

    def _put_meta(self, **values: str) -> None:
        for key, value in values.items():
            self._put("meta", "key", key, value)

    def _write_note(self) -> None:
        """Runs after the commit, so that a valid store is never behind its note; the note may be behind."""
        self._lock.write(_Note(os.getpid(), self.incarnation, self._saves))

    def _failed(self, what: str, error: BaseException) -> StoreFailed:
        return StoreFailed(
            f"the store {self.path} could not be {what}: {error}; what was saved before is kept; {_advice(error)}"
        )


class _Note(NamedTuple):
    """Which process holds the store, and the store's last durable write."""

    pid: int
    incarnation: str
    saves: int


class _Lock:
    """The lock file beside the store, which one process can hold, and the note in it. It is never removed."""

    def __init__(self, store: Path) -> None:
        try:
            self._file = os.open(f"{store}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreUnusable(
                f"no store can be opened in the folder {store.parent}: {error.strerror}; "
                "make that folder, let the edge write to it, or choose another"
            ) from error
        try:
            held = lock(self._file)
        except OSError as error:
            self.release()
            raise StoreUnusable(f"the store {store} cannot be locked: {error.strerror}; choose a local disk") from error
        if not held:
            note = self.read()
            self.release()
            holder = "another process" if note is None else f"process {note.pid}"
            raise StoreLocked(
                f"the store {store} is in use by {holder}: stop that edge, or give this one a store of its own"
            )

    def read(self) -> _Note | None:
        try:
            return _Note(**json.loads(os.pread(self._file, 4096, 0)))
        except (ValueError, TypeError):  # empty, or cut by a power failure
            return None

    def write(self, note: _Note) -> None:
        """Write the note at once and with a fixed length. A failed write is allowed: the note then stays behind."""
        with contextlib.suppress(OSError):
            os.pwrite(self._file, json.dumps(note._asdict()).ljust(127).encode() + b"\n", 0)

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _row_digest(table: str, row: tuple[Any, ...]) -> int:
    """A row's part of the checksum. SQLite detects inconsistent pages, but not a changed value in a row. This protects
    against bad disks, not against people: whoever can write the file can write the checksum.
    """
    return int.from_bytes(hashlib.blake2b(repr((table, row)).encode(), digest_size=8).digest(), "big")


def _check_header(path: Path) -> None:
    """Refuse a file that is no store of this version. Only reads: SQLite might write to a foreign database."""
    try:
        if not path.exists():
            return
        if not path.is_file():
            raise StoreUnusable(f"a store is a file, {path} is none: give the path of a file, which need not exist")
        with path.open("rb") as file:
            head = file.read(_HEADER.size)
    except OSError as error:
        raise StoreUnusable(
            f"the store {path} cannot be read: {error.strerror}; let the edge read and write it"
        ) from error
    if not head:
        return
    magic, version, application = _HEADER.unpack(head.ljust(_HEADER.size, b"\0"))
    if magic != b"SQLite format 3\0" or application != APPLICATION_ID:
        raise StoreUnusable(f"{path} is a file, but not the store of an edge: give another path, or move it away")
    if version != SCHEMA_VERSION:
        raise StoreUnusable(
            f"the store {path} has schema version {version}, this version of Outvote reads {SCHEMA_VERSION}: "
            f"run the version of Outvote that made it, or {_START_AFRESH}"
        )


def _make_file(path: Path) -> str:
    """Create the file, private to its owner, if it is missing. Return an identity that no other file has or had."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreUnusable(
            f"the store {path} cannot be written: {error.strerror}; let the edge read and write it"
        ) from error
    try:
        status = os.fstat(file)
        generation = 0  # inode numbers are reused; the generation then differs
        with contextlib.suppress(OSError):  # not every file system supports it
            [generation] = struct.unpack("I4x", fcntl.ioctl(file, _GET_GENERATION, bytes(8)))
    finally:
        os.close(file)
    return f"{status.st_dev}:{status.st_ino}:{generation}"


def _is_failure(error: BaseException) -> bool:
    """Whether the disk or the file failed, rather than the caller (closed store, wrong thread, invalid value)."""
    return isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError


def _advice(error: BaseException) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the upper bits are the extended code
    return _ADVICE.get(code, f"check its disk, or {_START_AFRESH}")
