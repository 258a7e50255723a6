"""Listening from epoch to epoch agrees with listening draw by draw. False alarms: at most 10⁻⁶ a test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from outvote.core.task import Task
from outvote.privacy.adversary import Transcript, listen
from outvote.privacy.skipping import listen_to_votes
from outvote.simulation.settings import read_settings

MEANS = (0.6, 0.5, 0.4)
SEED = 5
FALSE_ALARM = 1e-6
TRIALS = 40


@pytest.mark.parametrize("protocol", ["dme", "edme"])
def test_both_ways_of_listening_agree(protocol: str) -> None:
    settings = read_settings(
        protocol=protocol,
        means=MEANS,
        players=3,
        epsilon=0.95,
        delta=0.9,
        horizon=1e6,
        trials=1,
        grid=1,
        instances=2 if protocol == "edme" else None,
    )
    literal = [listen(settings, np.random.SeedSequence([SEED, trial])) for trial in range(TRIALS)]
    skipped = [
        listen_to_votes(settings.task, MEANS, np.random.SeedSequence([SEED + 1, trial])) for trial in range(4 * TRIALS)
    ]
    for figure in (
        lambda run: sum(map(sum, run.pulls)),
        lambda run: len(run.sent[0]),
        lambda run: run.pulls[1][2],
        lambda run: run.successes[2][0],
        lambda run: run.sent[0][0].arm if run.sent[0] else -1,
    ):
        assert ks_2samp(list(map(figure, literal)), list(map(figure, skipped))).pvalue > FALSE_ALARM


def test_a_run_is_sound() -> None:
    task = Task(arms=3, players=3, epsilon=0.95, delta=0.9)
    run: Transcript = listen_to_votes(task, MEANS, np.random.SeedSequence(SEED))
    (schedule,) = task.schedules()
    assert max(min(pulls) for pulls in run.pulls) >= schedule.pulls(1)
    for pulls, successes, votes in zip(run.pulls, run.successes, run.sent, strict=True):
        assert all(count <= of for count, of in zip(successes, pulls, strict=True))
        assert [vote.sequence for vote in votes] == list(range(len(votes)))
        assert len({vote.arm for vote in votes if hasattr(vote, "instance")}) == len(votes) < 3
