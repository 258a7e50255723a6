"""A sum over all rows of an edge's store, kept with them: a row that changed on the disk by itself gives another sum.

SQLite notices when its pages do not fit together, not when a number in a row is another. A store that counts wrong is
worse than none. Pure. The sum is against bad disks, not against people: who can write the file can write the sum.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

_BYTES: Final = 8
_ALL: Final = (1 << (8 * _BYTES)) - 1

Value = str | int | bytes
Row = tuple[Value, ...]


def row_digest(table: str, row: Row) -> int:
    """Of one row of a table, all its columns."""
    hashed = hashlib.blake2b(table.encode(), digest_size=_BYTES)
    for value in row:
        data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
        hashed.update(b"%s%d:" % (type(value).__name__.encode(), len(data)))
        hashed.update(data)
    return int.from_bytes(hashed.digest(), "big")


class Digest:
    """The sum. Rows may come in any order; which are replaced is known, so that they can be taken out."""

    def __init__(self, rows: Iterable[tuple[str, Row]] = ()) -> None:
        self._sum = 0
        self._single: dict[tuple[str, Value], int] = {}
        """Of rows that can be replaced: by table and first column."""
        for table, row in rows:
            if table == "messages":
                self.add(table, row)
            else:
                self.put(table, row)

    def put(self, table: str, row: Row) -> None:
        """A row that takes the place of the one with the same first column, if there is one."""
        self.take_out(table, row[0])
        digest = self._single[table, row[0]] = row_digest(table, row)
        self._sum += digest

    def take_out(self, table: str, key: Value) -> None:
        self._sum -= self._single.pop((table, key), 0)

    def add(self, table: str, row: Row) -> None:
        self._sum += row_digest(table, row)

    def remove(self, table: str, row: Row) -> None:
        self._sum -= row_digest(table, row)

    def __str__(self) -> str:
        return f"{self._sum & _ALL:0{2 * _BYTES}x}"
