"""A fleet's folder: what is in it, and how it changes. The secrets of a whole fleet: it stays on one machine.

| in the folder | what it is | who may have it |
|---|---|---|
| `fleet.json` | names, addresses, public keys, hashes, times | you |
| `keys` | whoever has them is the fleet; in `issued` what the members hold | you, and nobody else |
| `ca.pem` | who signs the fleet's certificates | everybody |
| `engine`, or `engine-1` to `engine-3` | kits of engines | the machines of the engines |
| `server` | kit of the servers, with that of their engine where there is one | the machines of the servers |
| `operator` | kit of people and programs that manage tasks | they |
| `edges/<name>` | kit of one edge | that site |

A change is one rename, that of `fleet.json`. New secrets are on the disk before it, kits are derived from both after
it. A command that finds the mark of an unfinished change writes all kits anew. Nothing here prints or logs a secret.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from outvote.access.tokens import json_file
from outvote.core.errors import InvalidConfiguration, OutvoteError
from outvote.files import make_private_folder, sync_folder, write_private
from outvote.fleet import kit_files
from outvote.fleet.draft import ISSUED, Draft
from outvote.fleet.state import FILE, FleetFile, read_state
from outvote.processes import lock

LOCK: Final = "fleet.lock"
UNFINISHED: Final = "fleet.unfinished"
"""The mark: it is there while a change is made."""
PATIENCE: Final = 20.0
"""Seconds to wait for another command."""


class FleetError(OutvoteError):
    """It was asked for rightly, and could not be done."""


class Fleet:
    """A folder that is there."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.clock = clock
        if not (folder / FILE).is_file():
            raise InvalidConfiguration(
                f"{str(folder)!r} holds no fleet: make one with `outvote fleet init`, or name yours with --folder",
                field="folder",
            )

    @contextmanager
    def change(self) -> Iterator[Draft]:
        """Be the only command that uses the folder. What the draft becomes is written at the end; after an error
        nothing is. What another command has left unfinished is completed first."""
        with held(self.folder):
            state = read_state((self.folder / FILE).read_bytes())
            draft = Draft(self.folder, state, now=self.clock())
            if (self.folder / UNFINISHED).exists():
                complete(draft, state.edges)
            yield draft
            if draft.state != state:
                write_draft(draft, state)

    def look(self) -> FleetFile:
        with self.change() as draft:
            return draft.state


# ---- files


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Be the only command that uses the folder."""
    try:
        with (folder / LOCK).open("ab") as file:
            os.fchmod(file.fileno(), 0o600)
            if not lock(file.fileno(), seconds=PATIENCE):
                raise FleetError(f"another command uses the fleet folder {str(folder)!r}: wait for it, and try again")
            yield
    except OSError as error:
        raise FleetError(
            f"the fleet folder {str(folder)!r} cannot be changed: {error.strerror}; what was begun the next command "
            "completes"
        ) from None


def write_files(folder: Path, files: Mapping[str, bytes | None]) -> None:
    """Write those that differ, each whole and for its owner only; None removes one."""
    for name, content in files.items():
        path = folder / name
        if content == (path.read_bytes() if path.exists() else None):
            continue
        if content is None:
            path.unlink()
        else:
            make_private_folder(path.parent)
            write_private(path, content)


def write_draft(draft: Draft, old: FleetFile | None) -> None:
    """Make it the fleet. The folder is held."""
    (draft.folder / UNFINISHED).touch(0o600)
    write_files(draft.folder, draft.files)
    for parent in {draft.folder, *((draft.folder / name).parent for name in draft.files)}:
        sync_folder(parent)
    write_private(draft.folder / FILE, json_file(draft.state))
    sync_folder(draft.folder)
    # Folders of kits are not synced: a power cut that undoes a rename in them undoes the later removal of the mark.
    edges = draft.state.edges
    complete(draft, (name for name in edges if old is None or edges[name] != old.edges.get(name)))


def complete(draft: Draft, edges: Iterable[str]) -> None:
    """Derive the kits, of edges only these; remove secrets that the state does not name; remove the mark."""
    write_files(draft.folder, kit_files.central_kits(draft))
    for name in edges:
        write_files(draft.folder, kit_files.edge_kit(draft, name))
    issued = draft.folder / ISSUED
    for name in {each.name for each in issued.iterdir()} - draft.state.issued_files:
        (issued / name).unlink()
    (draft.folder / UNFINISHED).unlink()
