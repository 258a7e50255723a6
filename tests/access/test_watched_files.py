"""Files that are replaced while they are in use."""

from __future__ import annotations

from pathlib import Path

import pytest

from outvote.access.watched_files import WatchedFiles
from outvote.core.errors import InvalidTask


def test_new_content_is_loaded_once_and_bad_content_is_reported_once(tmp_path: Path) -> None:
    path = tmp_path / "number"
    path.write_text("1")
    loaded: list[int] = []

    def load() -> None:
        try:
            loaded.append(int(path.read_text()))
        except (OSError, ValueError) as error:
            raise InvalidTask(f"not a number: {error}") from None

    files = WatchedFiles([path])
    assert not files.reload(load)
    path.write_text("22")
    assert [files.reload(load), files.reload(load)] == [True, False]
    for damage in (lambda: path.write_text("half a "), path.unlink):
        damage()
        assert not files.reload(load)  # it may still be being written
        with pytest.raises(InvalidTask, match="not a number"):
            files.reload(load)
        assert not files.reload(load)
    path.write_text("333")
    assert files.reload(load)
    assert loaded == [22, 333]
