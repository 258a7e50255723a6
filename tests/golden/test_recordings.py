"""Nothing of what was recorded has changed."""

from __future__ import annotations

import json

import pytest

from golden.recordings import ALL, path_of


@pytest.mark.parametrize("name", ALL)
def test_what_was_recorded_is_the_same(name: str) -> None:
    assert json.loads(json.dumps(ALL[name]())) == json.loads(path_of(name).read_text(encoding="utf-8"))
