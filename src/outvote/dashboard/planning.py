"""The planner in a process of its own: a simulation takes seconds, and the server must not wait for it.

The process is started when it is first asked, answers one question after the other, line by line, and dies with the
server. Answers are kept: the same question is asked again by every page that shows a task.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from outvote.core.errors import InvalidInput, InvalidSettings, OutvoteError
from outvote.core.task import Task
from outvote.processes import die_with

KEPT: Final = 256
"""Answers that are remembered."""
LONGEST_LINE: Final = 1 << 20
PATIENCE: Final = 60.0
"""Seconds that one question may take: all others wait."""

Answer: TypeAlias = dict[str, Any]


class PlannerFailed(OutvoteError):
    """There is no answer: the planner is not installed, or its process ended."""


class Planner:
    """One process, and what it has answered."""

    def __init__(self, told: Callable[[], None] = lambda: None) -> None:
        """`told` is called when an answer has come that somebody waits for."""
        self._told = told
        self._process: asyncio.subprocess.Process | None = None
        self._one = asyncio.Lock()
        self._answers: dict[str, asyncio.Task[Answer]] = {}

    async def plan(self, given: Mapping[str, Any]) -> Answer:
        """All ways to run a task, as `outvote plan --json` prints them."""
        return await asyncio.shield(self._asked({"plan": dict(given)}))

    def estimate(self, given: Mapping[str, Any], task: Task) -> Answer | OutvoteError | None:
        """How many draws a task needs in a world; None while the planner is at it."""
        asking = self._asked({"estimate": dict(given), "task": task.to_json()})
        if not asking.done():
            return None
        error = asking.exception()
        if isinstance(error, OutvoteError):
            return error
        return asking.result()

    async def close(self) -> None:
        for asking in self._answers.values():
            asking.cancel()
        await asyncio.gather(*self._answers.values(), return_exceptions=True)
        if self._process is not None:
            await self._end(self._process)

    def _asked(self, question: dict[str, Any]) -> asyncio.Task[Answer]:
        key = json.dumps(question, sort_keys=True)
        asking = self._answers.get(key)
        if asking is None or (asking.done() and isinstance(asking.exception(), PlannerFailed)):
            while len(self._answers) >= KEPT:
                self._answers.pop(next(iter(self._answers))).cancel()
            asking = self._answers[key] = asyncio.create_task(self._ask(key))
            asking.add_done_callback(self._done)
        return asking

    def _done(self, asking: asyncio.Task[Answer]) -> None:
        if not asking.cancelled():
            asking.exception()  # looked at: whoever asks again is told
            self._told()

    async def _ask(self, line: str) -> Answer:
        async with self._one:
            try:
                process = await self._start()
            except OSError as error:
                raise PlannerFailed(f"the planner cannot be started: {error}") from None
            assert process.stdin is not None
            assert process.stdout is not None
            said = b""
            try:
                process.stdin.write(line.encode() + b"\n")
                await process.stdin.drain()
                async with asyncio.timeout(PATIENCE):
                    said = await process.stdout.readline()
            except TimeoutError:
                raise InvalidSettings(
                    f"this takes the planner longer than {PATIENCE:g} s: ask for fewer variants or sites, or a larger "
                    "difference"
                ) from None
            except (OSError, ValueError):
                pass
            finally:
                if not said.endswith(b"\n"):  # what still came would be taken for the answer to the next question
                    await self._end(process)
        try:
            answer: Answer = json.loads(said)
        except ValueError:
            raise PlannerFailed("the planner ended without an answer: the server's log says why") from None
        if "refused" in answer:
            raise InvalidSettings(**answer["refused"])
        if "failed" in answer:
            raise PlannerFailed(answer["failed"])
        return answer

    async def _start(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            starting = asyncio.create_task(self._spawn())
            try:
                self._process = await asyncio.shield(starting)
            except asyncio.CancelledError:  # half started, it would be nobody's
                await self._end(await starting)
                raise
        return self._process

    @staticmethod
    async def _spawn() -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            __name__,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the server, which ends it in order
            preexec_fn=die_with(os.getpid()),
            limit=LONGEST_LINE,
        )

    @staticmethod
    async def _end(process: asyncio.subprocess.Process) -> None:
        """Until it has ended it would be taken for one that can be asked."""
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


# ---- in the process


def answer(question: dict[str, Any]) -> Answer:
    """One question. `refused` is the error of one that cannot be asked; `failed` says what is not there."""
    try:
        from outvote.planner import families, plan
        from outvote.planner.question import ask
    except ImportError as error:
        return {"failed": f"the planner is not installed ({error}): pip install 'outvote[sim]'"}
    try:
        if "plan" in question:
            return plan.make(ask(**question["plan"])).to_json()
        asked, task = ask(**question["estimate"]), Task.from_json(question["task"])
        found = families.of(task).estimate(asked, task)
    except InvalidInput as error:
        return {"refused": {"problem": error.problem, "field": error.field, "code": error.code}}
    except (ArithmeticError, ValueError):
        traceback.print_exc()  # to the server's log
        return {"refused": {"problem": "these numbers are too small or too large to plan with"}}
    if not found.ends:
        return {"never": found.how}
    return {"draws": found.draws, "low": found.low, "high": found.high, "how": found.how}


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
