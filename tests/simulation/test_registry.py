"""What users register, and what `simulate` makes of it: names, parameters, stored results, workers."""

from __future__ import annotations

import doctest
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from outvote import simulate, simulation
from outvote.cli.main import main
from outvote.core.errors import InvalidInput, InvalidSettings, InvalidTask
from outvote.core.protocols import REGISTRY
from outvote.core.votes.player import MedianPlayer
from outvote.core.votes.server import VoteServer
from outvote.simulation.environments import Environment
from outvote.simulation.registry import BASELINES, register_baseline, register_protocol
from outvote.simulation.settings import Settings, read_settings
from outvote.simulation.sweep import cell_name, sweep

SMALL: dict[str, Any] = {"means": (0.9, 0.2), "players": 2, "horizon": 300, "trials": 3, "grid": 2, "delta": 0.5}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    protocols, baselines = set(REGISTRY), set(BASELINES)
    yield
    for name in set(REGISTRY) - protocols:
        del REGISTRY[name]
    for name in set(BASELINES) - baselines:
        del BASELINES[name]


def voter(task: Any, number: Any, rng: object) -> MedianPlayer:
    return MedianPlayer(task, number)


class Always:
    """A baseline that plays one arm."""

    key = "always 1"

    def __init__(self, task: object, number: int, rng: object, arm: int) -> None:
        self.arm = arm

    def decide(self) -> int:
        return self.arm

    def reward(self, arm: int, reward: float) -> list[int]:
        return []


def coin(mean: float, uniform: float) -> float:
    return float(uniform < mean)


def upside_down(mean: float, uniform: float) -> float:
    return float(1 - uniform < mean)


# ---- names and parameters


def test_what_is_registered_after_a_first_simulation_is_known_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    simulate(**SMALL)
    with pytest.raises(
        InvalidSettings, match="protocol 'always' is unknown: use one of 'dme', 'edme', 'tally', 'blocks', 'me-local'"
    ):
        simulate(protocol="always", **SMALL)
    register_baseline("always", Always, parameters={"arm": 0})
    register_protocol("mine", player=voter, server=VoteServer, takes=["active_players", "quorum"])
    assert simulate(protocol="always", **SMALL).regret.mean[-1] == 0
    assert simulate(protocol="mine", **SMALL).bits.bound is None
    assert main(["simulate", "--protocol", "tali"]) == 2
    assert (
        "'tali' is unknown: use one of 'dme', 'edme', 'tally', 'blocks', 'mine', 'me-local'" in capsys.readouterr().err
    )
    picture = tmp_path / "regret.svg"
    arguments = ["--horizon", "100", "--trials", "1", "--grid", "5", "--plot", str(picture)]
    assert main(["simulate", "--protocol", "mine", *arguments]) == 0
    assert "no bound is known" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["dme", "me-local", "always", "mine"])
def test_a_taken_name_is_refused_but_for_the_very_same(name: str) -> None:
    def register_both() -> None:
        register_baseline("always", Always, parameters={"arm": 0})
        register_protocol("mine", player=voter, server=VoteServer)

    register_both()
    register_both()
    before = dict(REGISTRY), dict(BASELINES)
    with pytest.raises(InvalidSettings, match=f"name must be new, got '{name}', which something else has"):
        register_protocol(name, player=lambda *who: voter(*who), server=VoteServer)
    with pytest.raises(InvalidSettings, match="name must be new"):
        register_baseline(name, Always, parameters={"arm": 1})
    with pytest.raises(InvalidSettings, match="name must be 1 to 64 letters"):
        register_baseline("a b", Always)
    with pytest.raises(InvalidSettings, match=r"takes must be of 'active_players', 'floor', .*, got 'tolerate'"):
        register_protocol("new", player=voter, server=VoteServer, takes="tolerate")
    with pytest.raises(InvalidSettings, match=r"parameters must be numbers and texts, got \[1\] for 'sizes'"):
        register_baseline("new", Always, parameters={"sizes": [1]})  # type: ignore[dict-item]
    assert before == (REGISTRY, BASELINES)


def test_parameters_have_defaults_and_unknown_ones_are_refused() -> None:
    register_baseline("always", Always, parameters={"arm": 0})
    register_protocol("mine", player=voter, server=VoteServer, parameters={"size": 3}, takes=["active_players"])
    assert simulate(protocol="always", parameters={"arm": 1}, **SMALL).regret.mean[-1] == pytest.approx(300 * 0.7)
    assert read_settings(protocol="mine", **SMALL).parameters == {"size": 3}
    assert read_settings(protocol="mine", parameters={"size": 5}, **SMALL).task.parameters == {"size": 5}
    for protocol in ("always", "mine", "dme", "me-local"):
        with pytest.raises(InvalidInput, match=r"parameters must be of .*, got 'pulls'"):
            simulate(protocol=protocol, parameters={"pulls": 1}, **SMALL)


@pytest.mark.parametrize("option", [{"instances": 2}, {"active_players": 2}, {"floor": 3}, {"quorum": "paper"}])
def test_a_protocol_has_the_fields_that_it_takes_and_pays_for_no_others(option: dict[str, Any]) -> None:
    register_protocol("mine", player=voter, server=VoteServer, takes=["tolerate"])
    settings = read_settings(protocol="mine", **SMALL)
    assert (settings.task.instances, settings.bits_bound()) == ((), None)
    with pytest.raises(InvalidTask, match=f"{next(iter(option))} is for"):
        read_settings(protocol="mine", **SMALL, **option)
    with pytest.raises(InvalidSettings, match="liars know the protocols 'dme', 'edme', 'tally' only, got 1 for 'mine'"):
        read_settings(protocol="mine", **SMALL, liars=1)


@pytest.mark.parametrize(("arm", "given_up"), [(-1, []), (2, []), (0, [0, 1]), (0, [5])])
def test_a_baseline_that_does_what_cannot_be_is_refused(arm: int, given_up: list[int]) -> None:
    class Wrong(Always):
        def reward(self, arm: int, reward: float) -> list[int]:
            return given_up

    register_baseline("wrong", Wrong, parameters={"arm": arm})
    with pytest.raises(InvalidSettings, match=r"player (decided for an arm that is none|gave up the arms)"):
        simulate(protocol="wrong", **SMALL)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rewards": lambda mean, uniform: 2.0}, "rewards must be numbers from 0 to 1, got 2.0"),
        (
            {"means": None, "environment": Environment(lambda p, t, v, c: (t, 0))},
            "means must be numbers from 0 to 1, got 300",
        ),
        ({"means": None, "environment": Environment(lambda p, t, v, c: (0,) * (t + 1))}, "each of the 2 arms, got 3"),
        ({"means": None, "environment": Environment([(1, 0)] * 3)}, "means must be of the task's 2 players, got 3"),
        ({"environment": Environment((1, 0))}, "means is part of an environment"),
        ({"activity": lambda time, rng: 2}, "activity must name players by whole numbers from 0 to 1, got 2 at draw 1"),
        ({"means": ("a", "b")}, "means must be numbers"),
        ({"protocol": "me-local", "code": "binary"}, "code is for protocols, got 'binary' for the baseline 'me-local'"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_worlds_that_cannot_be_are_refused(workers: int, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidSettings, match=words):
        simulate(**{**SMALL, **options}, workers=workers)


# ---- stored results


@dataclass(frozen=True)
class Tilted:
    """A law with values of its own."""

    by: float
    key = "tilted 1"

    def __call__(self, mean: float, uniform: float) -> float:
        return min(1.0, self.by * coin(mean, uniform))


def settings(**options: Any) -> Settings:
    return read_settings(**{**SMALL, "engine": "core", **options})


def keyed(function: Callable[..., Any], key: str) -> Callable[..., Any]:
    function.key = key  # type: ignore[attr-defined]
    return function


def test_whatever_changes_a_result_changes_what_it_is_stored_under(tmp_path: Path) -> None:
    register_baseline("always", Always, parameters={"arm": 0})
    trace = tmp_path / "trace"
    trace.write_text("0\n1\n" * 150)
    cells = [
        settings(), settings(seed=1), settings(code="truncated"), settings(dead=1), settings(activity=(3, 1)),
        settings(activity=trace), settings(spread=0.5), settings(drift_to=(0.2, 0.9)), settings(rewards="beta:2"),
        settings(rewards="beta:3"), settings(means=[(0.9, 0.2)] * 2), settings(means=[(0.9, 0.2), (0.2, 0.9)]),
        settings(rewards=Tilted(0.5)), settings(rewards=Tilted(0.25)),
        settings(rewards=keyed(lambda mean, uniform: mean, "a")), settings(rewards=keyed(lambda *_: 0.0, "b")),
        settings(activity=keyed(lambda time, rng: 0, "c")), settings(activity=keyed(lambda time, rng: 1, "d")),
        settings(protocol="always"), settings(protocol="always", parameters={"arm": 1}), settings(engine="fast"),
        settings(site_spread=0.5), settings(visits=5), settings(visits=5, visitor_spread=0.5),
        settings(cycle=(0.1, 10)), settings(jumps=(0.1, 10)), settings(swap=10), settings(drop=0.1),
        settings(per_day=10),
    ]  # fmt: skip
    trace.write_text("1\n0\n" * 150)
    cells.append(settings(activity=trace))
    names = [cell_name(cell) for cell in cells]
    assert None not in names
    assert len(set(names)) == len(cells)
    assert cell_name(settings(rewards=Tilted(0.5))) == names[12]


def test_another_state_of_our_code_reads_nothing_that_this_one_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cell_name(settings())
    monkeypatch.setattr("outvote.simulation.settings.code_digest", lambda: "another")
    assert cell_name(settings()) != before


def test_what_nobody_can_tell_from_another_is_not_stored(tmp_path: Path) -> None:
    for rewards in (coin, upside_down):
        with pytest.warns(UserWarning, match=f"the result of 'dme' is not stored: {rewards.__name__} has no `key`"):
            [result] = sweep([settings(rewards=rewards)], store=tmp_path)
        assert result == replace(simulate(**SMALL, engine="core", rewards=rewards), seconds=result.seconds)
    assert list(tmp_path.iterdir()) == []
    register_protocol("mine", player=voter, server=VoteServer)
    with pytest.warns(UserWarning, match="'mine' is not stored: voter has no `key`"):
        assert cell_name(settings(protocol="mine")) is None


# ---- several workers


def test_functions_work_with_workers_that_are_forked() -> None:
    """Also what was registered in a test: a name that workers started before would not know."""
    register_baseline("always", Always, parameters={"arm": 0})
    register_baseline("first", lambda task, number, rng: Always(task, number, rng, 0))
    own: dict[str, Any] = {"rewards": lambda mean, uniform: mean, "activity": lambda time, rng: int(rng.integers(2))}
    for protocol in ("dme", "tally", "always", "first"):
        one, two = (simulate(protocol=protocol, **SMALL, **own, workers=workers) for workers in (1, 2))
        assert replace(one, seconds=0) == replace(two, seconds=0)


def test_a_cluster_that_cannot_know_what_is_a_users_own_says_so() -> None:
    register_protocol("mine", player=voter, server=VoteServer)
    elsewhere = Executor()
    for options, name in (({"rewards": coin}, "coin"), ({"protocol": "mine"}, "voter"), ({"activity": len}, "len")):
        with pytest.raises(InvalidSettings, match=f"dask has no workers that know {name}, which is your own"):
            sweep([settings(**options)], executor=elsewhere)


# ---- the public names


@pytest.mark.parametrize("name", simulation.__all__)
def test_the_examples_of_public_names_run(name: str) -> None:
    thing = getattr(simulation, name)
    finder = doctest.DocTestFinder(recurse=False)
    for example in finder.find(thing, name, module=sys.modules[thing.__module__]):
        assert example.examples, name
        assert doctest.DocTestRunner().run(example).failed == 0


def test_importing_the_simulation_is_light() -> None:
    code = "import sys, outvote.simulation; sys.exit(any(each in sys.modules for each in ('numpy', 'scipy', 'numba')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
