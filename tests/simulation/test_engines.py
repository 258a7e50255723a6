"""Which engine runs what: a kernel is taken for the very parts that it was written for, and for nothing like them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outvote.core import protocols
from outvote.core.codes import Codebook
from outvote.core.errors import InvalidSettings
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer
from outvote.core.votes.server import VoteServer
from outvote.simulation.activity import Weighted, uniform
from outvote.simulation.compiled import run_jump, run_step
from outvote.simulation.compiled_tally import run_tally
from outvote.simulation.engines import kernel_of
from outvote.simulation.environments import BetaLaw, Environment, bernoulli
from outvote.simulation.registry import BASELINES
from outvote.simulation.run import run
from outvote.simulation.settings import Settings, read_settings

SMALL: dict[str, Any] = {"means": (0.9, 0.2), "players": 2, "horizon": 400, "trials": 2, "grid": 2, "delta": 0.5}


def settings(**options: Any) -> Settings:
    return read_settings(**{**SMALL, **options})


@pytest.mark.parametrize("protocol", ["dme", "edme", "tally", "me-local", "me-unlimited", "ucb-unlimited"])
def test_auto_is_fast_where_there_is_a_kernel(protocol: str) -> None:
    for engine, runs_on in (("auto", "fast"), ("fast", "fast"), ("core", "core")):
        found = run(settings(protocol=protocol, engine=engine), workers=1)
        assert found.engine == found.to_json()["engine"] == runs_on


def test_fast_takes_the_kernel_that_is_faster() -> None:
    assert kernel_of(settings(protocol="dme")) is run_jump
    assert kernel_of(settings(protocol="dme", players=500)) is run_step  # less than a draw for each, nothing to skip
    assert kernel_of(settings(protocol="ucb-unlimited", players=500)) is run_jump
    assert kernel_of(settings(protocol="tally", players=500)) is run_tally
    assert kernel_of(settings(engine="core")) is None


class OwnEnvironment(Environment):
    """Of a user: whatever it does, no kernel knows it."""


class OwnActivity(Weighted):
    """Of a user."""


def own_law(mean: float, uniform: float) -> float:
    """As Bernoulli's, and yet another."""
    return bernoulli(mean, uniform)


@pytest.mark.parametrize(
    ("protocol", "changes", "what"),
    [
        ("dme", {"environment": OwnEnvironment((0.9, 0.2))}, "an environment of the type OwnEnvironment"),
        ("dme", {"environment": Environment((0.9, 0.2), law=own_law)}, "rewards other than Bernoulli"),
        ("ucb-unlimited", {"environment": Environment((0.9, 0.2), law=BetaLaw(4))}, "rewards other than Bernoulli"),
        ("me-local", {"environment": Environment((0.9, 0.2), spread=1.0)}, "means that differ by site"),
        ("dme", {"environment": Environment([(0.9, 0.2)] * 2)}, "means that differ by site"),
        ("dme", {"environment": Environment(lambda *where: (0.9, 0.2))}, "means that are a function"),
        ("tally", {"environment": Environment((0.9, 0.2), drift_to=(0.2, 0.9))}, "means that drift"),
        ("edme", {"activity": OwnActivity("own", (1.0, 1.0), 2)}, "the activity 'own', which is not by weights"),
        ("tally", {"liars": 1}, "players that lie"),
        ("tally", {"environment": Environment((0.9, 0.2), site_spread=1.0)}, "means that differ by site"),
        ("dme", {"environment": Environment((0.9, 0.2), visitor_spread=1.0), "visits": 5}, "visitors"),
        ("dme", {"visits": 5}, "visitors"),
        ("dme", {"environment": Environment((0.8, 0.2), cycle=(0.1, 10))}, "means that drift"),
        ("tally", {"environment": Environment((0.8, 0.2), jumps=(0.1, 10))}, "means that drift"),
        ("ucb-unlimited", {"environment": Environment((0.8, 0.2), swap=10)}, "means that drift"),
        ("tally", {"drop": 0.01}, "sites that die"),
        ("me-local", {"per_day": 100}, "times of day"),
    ],
)
def test_what_no_kernel_knows_is_run_by_the_core_also_when_it_is_put_in_later(
    protocol: str, changes: dict[str, Any], what: str
) -> None:
    changed = replace(settings(protocol=protocol), **changes)
    assert changed.runs_on == "core"
    assert kernel_of(changed) is None
    assert run(changed, workers=1).engine == "core"
    with pytest.raises(InvalidSettings, match=f"engine 'fast' cannot run {what}: use 'core' or 'auto'"):
        replace(settings(protocol=protocol, engine="fast"), **changes)


def test_a_trace_a_window_and_another_code_are_for_the_core(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text("0\n1\n" * 200)
    assert settings(activity=trace).runs_on == "core"
    assert settings(protocol="tally", tolerate=1, players=4).runs_on == "core"
    assert settings(protocol="tally", code="truncated").runs_on == "core"
    with pytest.raises(InvalidSettings, match="'fast' cannot run tallies in the code 'truncated'"):
        settings(protocol="tally", code="truncated", engine="fast")
    window = Task(arms=2, players=2, epsilon=0.5, delta=0.5, reward_window=60.0, protocol="dme")
    assert replace(settings(), task=window).runs_on == "core"


class Stubborn(MedianPlayer):
    """A user's player: it never votes."""

    def tick(self, now: int) -> tuple[()]:
        super().tick(now)
        return ()


def entry(player: Any) -> protocols.Entry:
    return replace(protocols.REGISTRY["dme"], player=player)


@pytest.mark.parametrize(
    "changed",
    [
        entry(lambda task, player, rng: Stubborn(task, player)),
        entry(Stubborn),
        entry(lambda task, player, rng: MedianPlayer(task, player)),  # the same objects, made by who knows whom
        replace(protocols.REGISTRY["dme"], server=lambda task: VoteServer(task)),
        replace(protocols.REGISTRY["dme"], codebook=lambda task: Codebook(task)),
        replace(protocols.REGISTRY["dme"], bits_bound=lambda task, draws: 7),
        protocols.REGISTRY["tally"],
    ],
    ids=["another player", "another class", "another maker", "another server", "another code", "another bound", "ours"],
)
def test_a_protocol_that_was_registered_anew_is_run_by_its_own_objects(
    changed: protocols.Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = settings(protocol="dme", engine="auto")
    assert asked.runs_on == "fast"
    monkeypatch.setitem(protocols.REGISTRY, "dme", changed)
    assert asked.runs_on == "core"
    with pytest.raises(InvalidSettings, match="'fast' cannot run the protocol 'dme', for which it has no kernel"):
        settings(protocol="dme", engine="fast")


class Last:
    """A user's baseline."""

    def __init__(self, task: Task, number: int, rng: object) -> None:
        self.last = len(task.arms) - 1

    def decide(self) -> int:
        return self.last

    def reward(self, arm: int, reward: float) -> None:
        """Learns nothing."""


@pytest.mark.parametrize("name", ["me-local", "me-unlimited", "ucb-unlimited"])
def test_a_baseline_that_was_patched_in_is_run_by_its_own_objects(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BASELINES, name, replace(BASELINES[name], player=Last))
    result = run(settings(protocol=name), workers=1)
    assert result.engine == "core"
    assert result.regret.mean[-1] == pytest.approx(400 * 0.7)
    with pytest.raises(InvalidSettings, match=f"'fast' cannot run the protocol '{name}'"):
        settings(protocol=name, engine="fast")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"engine": "step"}, "engine must be one of 'auto', 'core', 'fast', got 'step'"),
        ({"protocol": "tally"}, "protocol must be the task's, 'dme', got 'tally'"),
        ({"environment": Environment((0.9, 0.5, 0.2))}, "one number for each of the 2 arms, got 3"),
        ({"activity": uniform(3)}, "activity must be of the task's 2 players, got 3"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidSettings, match=words):
        replace(settings(), **changes)


def test_what_was_asked_for_does_not_change_what_a_sweep_stores() -> None:
    """`auto` and `fast` are the same work here."""
    assert settings(engine="auto").describe() == settings(engine="fast").describe()
    assert settings(engine="auto").describe() != settings(engine="core").describe()
