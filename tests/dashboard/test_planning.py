"""The planner's process: what it answers, whom it refuses, and how it ends. Every test starts the real process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from dashboard.stories import TALLY
from helpers.processes import comes, gone, until
from outvote.cli.main import main
from outvote.core.errors import InvalidSettings
from outvote.core.task import Task
from outvote.dashboard import planning
from outvote.dashboard.planning import Planner, PlannerFailed
from outvote.planner.families import of
from outvote.planner.question import ask

QUICK: dict[str, Any] = {"variants": 2, "sites": 4, "difference": 0.4}
ANOTHER = {"variants": 2, "sites": 4, "difference": 0.5}
SLOW = {"variants": 50, "sites": 200, "difference": 0.002}
WRONG = {"variants": 1}
TASK = Task(**{**TALLY, "arms": 2, "players": 4})


def run(work: Coroutine[Any, Any, None]) -> None:
    """As the server does, on uvloop: its processes are its own."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


def planners(parent: int | None = None) -> list[int]:
    """The planner's processes that this one, or another, has started and that run."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            ours = folder.joinpath("stat").read_text().rpartition(")")[2].split()[1] == str(parent or os.getpid())
            if ours and planning.__name__ in folder.joinpath("cmdline").read_text().split("\0"):
                found.append(int(folder.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


async def at_work() -> int:
    """The process, once it has read a question: only then it loads what it simulates with."""
    found: list[int] = []

    def busy() -> bool:
        found[:] = [each for each in planners() if "llvmlite" in Path(f"/proc/{each}/maps").read_text()]
        return bool(found)

    await comes(busy, "the planner is at work")
    return found[0]


async def answers(planner: Planner) -> None:
    """Whether it answers a question: an estimate, which takes it far less time than a plan does."""
    await comes(lambda: planner.estimate(QUICK, TASK) is not None, "a question is answered")
    found = planner.estimate(QUICK, TASK)
    assert isinstance(found, dict)
    assert 0 < found["low"] <= found["draws"] <= found["high"]


def test_a_plan_is_what_the_command_says_and_is_asked_for_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--variants", "2", "--sites", "4", "--difference", "0.4", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    told: list[int] = []

    async def ask_it() -> None:
        planner = Planner(lambda: told.append(1))
        try:
            assert planners() == []  # it is started when it is first asked
            first = await planner.plan(QUICK)
            assert json.loads(json.dumps(first)) == said
            (process,) = planners()
            os.kill(process, signal.SIGSTOP)  # nobody could answer now
            assert await planner.plan(dict(reversed(QUICK.items()))) is first
        finally:
            await planner.close()
        assert planners() == []

    run(ask_it())
    assert told == [1]


def test_questions_at_once_are_answered_one_by_one_and_what_is_refused_says_why() -> None:
    expected = of(TASK).estimate(ask(**QUICK), TASK)

    async def ask_them() -> None:
        told: list[int] = []
        planner = Planner(lambda: told.append(1))
        try:
            assert planner.estimate(QUICK, TASK) is None
            assert planner.estimate(QUICK, TASK) is None
            assert planner.estimate(WRONG, TASK) is None
            one, refused, two = await asyncio.gather(
                planner.plan(QUICK), planner.plan(WRONG), planner.plan(ANOTHER), return_exceptions=True
            )
            assert isinstance(one, dict)
            assert isinstance(two, dict)
            assert (one["inputs"]["means"], two["inputs"]["means"]) == ([0.7, 0.3], [0.75, 0.25])
            assert isinstance(refused, InvalidSettings)
            assert str(refused) == "variants must be a whole number from 2 to 10,000, got 1"
            assert (refused.field, refused.code) == ("variants", "range")
            with pytest.raises(InvalidSettings, match="got 1"):  # again, and nobody is asked
                await planner.plan(WRONG)
            found = planner.estimate(QUICK, TASK)
            assert found == {"draws": expected.draws, "low": expected.low, "high": expected.high, "how": expected.how}
            assert isinstance(planner.estimate(WRONG, TASK), InvalidSettings)
            assert len(planners()) == 1
            assert len(told) == 5
        finally:
            await planner.close()

    run(ask_them())


def test_a_process_that_is_killed_at_work_fails_that_question_and_no_other() -> None:
    async def ask_them() -> None:
        planner = Planner()
        try:
            slow = asyncio.create_task(planner.plan(SLOW))
            process = await at_work()
            assert planner.estimate(QUICK, TASK) is None  # it waits for its turn
            os.kill(process, signal.SIGKILL)
            with pytest.raises(PlannerFailed, match="ended without an answer"):
                await slow
            await answers(planner)
            (again,) = planners()
            assert again != process
            # What has failed is asked again, what was answered is not.
            asked_again = asyncio.create_task(planner.plan(SLOW))
            await asyncio.sleep(0)
            assert not asked_again.done()
            asked_again.cancel()
        finally:
            await planner.close()
        assert planners() == []

    run(ask_them())


def test_a_question_that_is_forgotten_while_it_is_asked_spoils_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "KEPT", 1)

    async def ask_them() -> None:
        planner = Planner()
        try:
            assert planner.estimate(SLOW, TASK) is None
            process = await at_work()
            await answers(planner)
            assert gone(process)  # its answer would have been taken for that to the second question
        finally:
            await planner.close()

    run(ask_them())


def test_a_question_that_takes_too_long_is_given_up_and_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lest somebody who looks at a page keeps the planner busy for ever."""

    async def ask_them() -> None:
        planner = Planner()
        try:
            with monkeypatch.context() as patched:
                patched.setattr(planning, "PATIENCE", 0.5)
                with pytest.raises(InvalidSettings, match=r"longer than 0\.5 s: ask for fewer variants or sites"):
                    await planner.plan(SLOW)
            assert planners() == []
            with pytest.raises(InvalidSettings, match="longer than"):
                await planner.plan(SLOW)
            assert planners() == []  # nobody was asked
            await answers(planner)
        finally:
            await planner.close()

    run(ask_them())


def test_closing_ends_the_process_whatever_it_does_and_tells_nobody() -> None:
    async def starting() -> int:
        await comes(lambda: bool(planners()), "the process is there")
        return planners()[0]

    async def ask_it(reached: Callable[[], Coroutine[Any, Any, int]]) -> None:
        told: list[int] = []
        planner = Planner(lambda: told.append(1))
        assert planner.estimate(SLOW, TASK) is None
        process = await reached()
        await planner.close()
        assert gone(process)
        assert told == []

    run(ask_it(starting))
    run(ask_it(at_work))


def test_the_process_dies_with_its_server_however_that_ends() -> None:
    program = f"import asyncio; from {planning.__name__} import Planner; asyncio.run(Planner().plan({SLOW}))"
    with subprocess.Popen([sys.executable, "-c", program], start_new_session=True) as parent:
        until(lambda: bool(planners(parent.pid)), "the process is there")
        (process,) = planners(parent.pid)
        parent.kill()
    until(lambda: gone(process), "the planner has ended")


def test_a_process_that_cannot_be_started_fails_the_question_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def ask_it() -> None:
        told: list[int] = []
        planner = Planner(lambda: told.append(1))
        with monkeypatch.context() as patched:
            patched.setattr(sys, "executable", str(tmp_path / "nothing"))
            assert planner.estimate(WRONG, TASK) is None
            await comes(lambda: told == [1], "it was tried")
            with pytest.raises(PlannerFailed, match=r"the planner cannot be started: .*No such file"):
                await planner.plan(WRONG)
        with pytest.raises(InvalidSettings, match="got 1"):
            await planner.plan(WRONG)
        await planner.close()

    run(ask_it())


def test_the_process_says_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "outvote.planner", None)
    failed = planning.answer({"plan": QUICK})["failed"]
    assert failed.startswith("the planner is not installed (")
    assert failed.endswith("): pip install 'outvote[sim]'")


def test_a_fleet_that_cannot_reach_a_quorum_never_ends() -> None:
    votes = Task(arms=2, players=4, epsilon=1e-6, delta=0.05, protocol="dme")
    assert planning.answer({"estimate": {**QUICK, "epsilon": 1e-6}, "task": votes.to_json()}) == {
        "never": "it never ends: fewer sites are ever active than must vote"
    }


@pytest.mark.parametrize(
    "error", [OverflowError("math range error"), ValueError("cannot convert float NaN to integer")]
)
def test_numbers_that_no_sum_can_hold_are_refused_and_noted(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the planner did not foresee."""

    def fail(question: object) -> None:
        raise error

    monkeypatch.setattr("outvote.planner.plan.make", fail)
    told = planning.answer({"plan": QUICK})
    assert told == {"refused": {"problem": "these numbers are too small or too large to plan with"}}
    assert str(error) in capsys.readouterr().err
