"""Changes of a folder that happen as a whole: after an interruption, a kill or a power cut it is as before or as after.

New files are written beside the old ones; renaming their folder is the moment at which the change has happened. What
is left to do then, anybody does who opens the folder next. One command at a time holds a folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from outvote.fleet.errors import FleetError
from outvote.network.tokens import write_private

LOCK: Final = "fleet.lock"
STAGED, DECIDED = ".staged", ".decided"
"""What is being written, which counts for nothing yet; and what has happened, and may not be in its place yet."""
PATIENCE: Final = 20.0
"""Seconds to wait for another command."""
_LIST: Final = "files.json"
_POLL: Final = 0.02


def make_folder(path: Path) -> None:
    """For its owner only, whatever the umask; also those above it that are missing."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    path.chmod(0o700)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Into a folder that nobody uses yet."""
    for name, content in files.items():
        make_folder((folder / name).parent)
        write_private(folder / name, content)
    sync_folder(folder)


def change_files(folder: Path, files: Mapping[str, bytes | None]) -> None:
    """Write these files, all or none; None removes one. The folder is held."""
    staged = folder / STAGED
    shutil.rmtree(staged, ignore_errors=True)
    make_folder(staged)
    for number, (_, content) in enumerate(files.items()):
        if content is not None:
            write_private(staged / str(number), content)
    write_private(staged / _LIST, json.dumps({name: content is not None for name, content in files.items()}).encode())
    sync_folder(staged)
    staged.rename(folder / DECIDED)
    sync_folder(folder)
    finish(folder)


def finish(folder: Path) -> None:
    """Put in place what was decided; forget what was not. The folder is held."""
    shutil.rmtree(folder / STAGED, ignore_errors=True)
    decided = folder / DECIDED
    if not decided.exists():
        return
    if (decided / _LIST).exists():
        for number, (name, stays) in enumerate(json.loads((decided / _LIST).read_bytes()).items()):
            if not stays:
                (folder / name).unlink(missing_ok=True)
            elif (decided / str(number)).exists():
                make_folder((folder / name).parent)
                (decided / str(number)).replace(folder / name)
        for each in {(folder / name).parent for name in json.loads((decided / _LIST).read_bytes())}:
            if each.is_dir():
                sync_folder(each)
        (decided / _LIST).unlink()
    shutil.rmtree(decided)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Be the only command that uses the folder; what another left half done is finished first."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.fchmod(lock, 0o600)
    except OSError as error:
        raise FleetError(f"the fleet folder {str(folder)!r} cannot be changed: {error.strerror}") from None
    try:
        until = time.monotonic() + PATIENCE
        while not _locked(lock):
            if time.monotonic() > until:
                raise FleetError(f"another command uses the fleet folder {str(folder)!r}: wait for it, and try again")
            time.sleep(_POLL)
        finish(folder)
        yield
    finally:
        os.close(lock)


def sync_folder(folder: Path) -> None:
    """What was renamed in it stays so after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
