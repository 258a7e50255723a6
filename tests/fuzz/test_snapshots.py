"""What a disk gives back is what was saved, or is refused: a player goes on from nothing else."""

from __future__ import annotations

import json
import random

from hypothesis import event, given
from hypothesis import strategies as st

from amounts import examples
from outvote.core import protocols
from outvote.core.errors import MalformedSnapshot
from outvote.core.task import Task

from .mutants import json_like, messages, tasks


@examples(40)
@given(task=tasks(), seed=st.integers(0, 99), data=st.data())
def test_a_snapshot_is_the_one_that_was_saved_or_is_refused(task: Task, seed: int, data: st.DataObject) -> None:
    rng = random.Random(seed)
    player, server = protocols.player(task, "ams", rng=rng), protocols.server(task)
    now = 0
    for _ in range(data.draw(st.integers(0, 30))):
        now += rng.randrange(500)
        player.reward(player.decide(now), rng.random() < 0.5, now)
        for message in player.tick(now):
            server.receive("ams", message, now)
    server.receive("fra", data.draw(messages(task, "fra")), now)
    saved = player.snapshot() if data.draw(st.booleans()) else server.snapshot()
    text = data.draw(json_like(saved))
    try:
        given_back = json.loads(text)
    except (ValueError, RecursionError):
        return
    try:
        found = protocols.restore(task, given_back)
    except MalformedSnapshot:
        event("refused")
        assert json.dumps(given_back, sort_keys=True) != json.dumps(saved, sort_keys=True)
    else:
        event("restored")
        assert found.snapshot() == saved
