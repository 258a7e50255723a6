"""Files that are written whole: after a failure the old content is there, and nothing beside it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from outvote.files import open_whole, write_private, write_whole


def test_a_file_has_its_new_content_when_all_of_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_whole(path, "é")
    with open_whole(str(path)) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == "é".encode()
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "plot.png"
    write_whole(path, "old")

    def fail() -> None:
        with open_whole(path) as file:
            file.write(b"ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["plot.png"]
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "folder", "text")
    assert sorted(os.listdir(tmp_path)) == ["folder", "plot.png"]


def test_what_is_private_is_so_though_it_was_not(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.with_name("secret.part").write_text("left by a process that was killed")
    write_private(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
