"""An edge: one player for each task at one site. It decides and learns without the network, and never waits for it.

A message is stored, together with the player's state after it, before it is sent. All other state is saved about once
a second. Messages are sent on a timer tick, never with the request that completed them: otherwise the time of a message
would reveal the time of an event.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Any

from outvote.concurrency import cancel
from outvote.core import protocols
from outvote.core.decisions import Capacity, Ticket, check_reward
from outvote.core.errors import MalformedMessage, OutvoteError, UnknownTask, one_of
from outvote.core.task import Task
from outvote.edge.hosted_task import HostedTask, restored, saved
from outvote.edge.store import Save, Store, StoreFailed
from outvote.log.catch_up import ASK_EVERY, SKIP_ELIMINATIONS, Answer, Question, TaskUpdate
from outvote.log.log import Log
from outvote.log.records import DownSubject, UpSubject, check_name, parse, read_switch, read_task, task_record
from outvote.log.site_report import SiteReport, without_rewards
from outvote.observability.logs import event
from outvote.presenters import site_words

TICK = 0.2
"""Mean seconds between two ticks: each pause is drawn from 0.5 to 1.5 times this."""
ASK_AGAIN = 2.0
"""Seconds until the second question after connecting: the server may not have read the newest records yet."""
ANSWER_PATIENCE = 2.0
"""Seconds without an answer after which the server counts as overloaded."""
SAVE_SHARE = 0.02
"""Saving may take this share of the time: after a slow save, the next one waits."""
LONGEST_WAIT = 5.0
"""Seconds that a save may wait for that: a crash loses what was not saved."""
LAG = 15.0
"""Maximum seconds that a server lags behind. After that its view of a task name is trusted, even if a log was lost."""

_log = logging.getLogger(__name__)


class Edge:
    """All tasks at this site, by name."""

    def __init__(
        self,
        name: str,
        store: Store,
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        """`clock` counts seconds and never goes back, `wall_clock` returns seconds since 1970 and may jump. `rng` makes
        every choice repeatable; without it, players use the system's generator."""
        self.name = check_name("an edge's name", name)
        self.store = store
        self.tasks: dict[str, HostedTask] = {}
        self.log: Log | None = None
        self.missed = asyncio.Event()
        """Set when a record was missed: catch up."""
        self.last_catch_up: float | None = None
        """When a server last answered."""
        self.saves = 0
        self.save_seconds = 0.0
        self._answered = True
        """Whether the last question was answered."""
        self._unanswered = 0
        """Consecutive questions that timed out: the server is overloaded."""
        self._ask_again = ASK_EVERY
        """Seconds until the next question, as set by a server."""
        self._clock = clock
        self._wall_clock = wall_clock
        self._started = wall_clock() - clock()
        """Decisions are timed by `clock`, which does not jump, counted from the wall time at the start."""
        self._save_after = 0.0
        """By `clock`: when the next save may begin."""
        self._capacity = Capacity()
        """The memory for decisions that wait for rewards, of all tasks."""
        self._rng = rng
        self._random = (rng or random).random
        """For pauses."""
        self.unreadable: dict[str, str] = {}
        """Tasks whose record this version cannot read: the error by task id. Their stored state is kept."""
        self._not_ours: set[str] = set()
        """Ids of tasks for other edges, so that they are not asked for again."""
        self._conflicts: dict[tuple[str, str], float] = {}
        """When a hosted task and a new one were first seen with the same name, by their two ids."""
        self._hosted: dict[str, HostedTask] = {}
        """The tasks by id."""
        self._running: list[asyncio.Task[None]] = []
        for task_id, record in store.tasks().items():
            task = self._read(task_id, record.encode())
            if task is not None:
                self._host(task_id, task)

    # ---- for applications

    def find(self, name: str) -> HostedTask:
        """Return the task with this name. Raises `UnknownTask`, or `InvalidTask` for a name that no task can have."""
        task = self.tasks.get(name)
        if task is None:
            check_name("a task's name", name)
            raise UnknownTask(f"unknown task: got {name!r}, this edge hosts {one_of(sorted(self.tasks)) or 'none'}")
        return task

    def now(self) -> int:
        """Return the time of this edge, in milliseconds since 1970."""
        return int((self._clock() + self._started) * 1000)

    def decide(self, task: HostedTask) -> Ticket:
        """Choose an arm for one event. Its reward must name the ticket that is returned."""
        if task.stopped or task.killed:
            return Ticket.uncounted(task.served)
        ticket = task.player.decide(self.now())
        task.dirty = True
        return ticket

    def reward(self, task: HostedTask, ticket: Ticket | None, reward: float) -> None:
        """Learn the reward of one event. It is ignored without a ticket, which is what an uncounted decision has, and
        if the task was stopped. Raises `InvalidReward` or `UnknownDecision`."""
        if ticket is None or task.stopped:
            check_reward(reward)
            return
        task.dirty = True
        task.player.reward(ticket, reward, self.now())

    @property
    def connected(self) -> bool:
        return self.log is not None and self.log.connected

    # ---- from the network

    def on_record(self, subject: str, payload: bytes) -> None:
        """Apply a live record. After a gap in the sequence, catch up."""
        where = parse(subject)
        if not isinstance(where, DownSubject):
            return
        hosted = self._hosted.get(where.task_id)
        if where.kind == "task":
            if hosted is None:
                self._join(where.task_id, payload)
        elif hosted is None:
            if where.task_id in self.unreadable:
                if where.kind == "delete":
                    self._forget(where.task_id)
            elif where.task_id not in self._not_ours:
                self.missed.set()
        elif where.kind == "stop":
            self._stop(hosted)
        elif where.kind == "delete":
            self._leave(hosted)
        elif where.kind == "kill":
            self._switch(hosted, read_switch(payload), (where.number or 0) + 1)
        elif where.kind != "elim":
            return  # records that concern servers only
        elif where.number == hosted.eliminations:
            self._eliminate(hosted, payload)
        elif where.number is not None and where.number > hosted.eliminations:
            self.missed.set()

    def apply_catch_up(self, answer: Answer) -> None:
        """Apply everything that this edge missed."""
        self._ask_again = answer.ask_again or ASK_EVERY
        for task_id in answer.deleted:  # a task that is merely missing may be unknown to a lagging server
            self._not_ours.discard(task_id)
            self._forget(task_id)
            hosted = self._hosted.get(task_id)
            if hosted is not None:
                self._leave(hosted)
        self._not_ours.update(answer.others)
        for task_id, update in answer.tasks.items():
            try:
                self._learn(task_id, update)
            except StoreFailed:
                raise
            except OutvoteError as error:  # still apply the other tasks
                event(_log, logging.ERROR, "answer_not_understood", id=task_id, error=str(error))

    # ---- timer ticks

    def tick(self) -> None:
        """Count what is due, log what people should know, and save unless the last save took long."""
        now = self.now()
        for task in self.tasks.values():
            if not task.stopped:
                task.dirty = task.dirty or task.player.decisions.is_due(now)
                messages = task.player.tick(now)
                if messages:
                    task.new += messages
                    task.dirty = True
            if task.dirty:
                self._note_report(task, now)
        if self._clock() >= self._save_after:
            self.flush()

    def flush(self) -> None:
        """Save all changes. New messages and the state after them are durable on return."""
        changed = [task for task in self.tasks.values() if task.dirty]
        if not changed:
            return
        began = self._clock()
        saves = [
            Save(task.task_id, saved(task), [(message.sequence, task.coder.up(message)) for message in task.new])
            for task in changed
        ]
        self.store.save(saves)
        took = self._clock() - began
        self.saves += 1
        self.save_seconds += took
        self._save_after = self._clock() + min(took / SAVE_SHARE, LONGEST_WAIT)
        for task, save in zip(changed, saves, strict=True):
            task.note_kept(list(save.messages))
            task.new = []
            task.dirty = False

    async def send(self) -> None:
        """Send all messages that the log lacks, in order of sequence. Returns when the log has stored them."""
        assert self.log is not None
        stored = 0
        for task in list(self.tasks.values()):
            if task.stopped or not task.unsent:
                continue
            for sequence, payload in sorted(task.unsent.items()):
                if sequence in task.unsent and not task.stopped:  # both may change during an await
                    where = UpSubject(self.name, task.task_id, self.store.incarnation, sequence)
                    await self.log.append(str(where), payload)
                    task.unsent.pop(sequence, None)
                    stored += 1
        if stored:
            event(_log, logging.DEBUG, "messages_stored", count=stored)

    async def catch_up(self) -> bool:
        """Ask a server for missed records. Return False if none answered."""
        assert self.log is not None
        before: Question | None = None
        while True:
            self.missed.clear()
            known = {task.task_id: task.eliminations for task in self.tasks.values()}
            skipped = dict.fromkeys(sorted({*self._not_ours, *self.unreadable}), SKIP_ELIMINATIONS)
            question = Question(self.store.incarnation, known | skipped, self._reports())
            try:
                answer = await self.log.ask(self.name, question)
            except MalformedMessage as error:
                event(_log, logging.ERROR, "answer_not_understood", error=str(error))
                self._note_answer(True)
                return True  # asking at once would give the same answer: wait for the usual time
            self._note_answer(answer is not None)
            if answer is None:
                return False
            if known != {task.task_id: task.eliminations for task in self.tasks.values()}:
                continue  # live records arrived meanwhile and would be applied twice: ask again
            self.apply_catch_up(answer)
            if not answer.more or question == before:  # stop if the server has more but adds nothing new
                self.last_catch_up = self._wall_clock()
                return True
            before = question

    async def start(self, log: Log) -> None:
        """Start saving, and connect in the background."""
        self._running = [asyncio.create_task(self._keep_going()), asyncio.create_task(self._stay_connected(log))]

    async def watch(self) -> None:
        """Wait until a background task fails, for example on a full disk, and raise its error."""
        done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self) -> None:
        await cancel(self._running)
        self.flush()
        self.store.mark_clean()
        if self.log is not None:
            await self.log.close()

    async def connect(self, log: Log) -> None:
        """Connect and subscribe. Returns when both are done."""
        await log.open()
        self.log = log
        await log.listen(self._hear)

    # ---- internals

    async def _keep_going(self) -> None:
        while True:
            await asyncio.sleep(TICK * (0.5 + self._random()))
            self.tick()

    async def _stay_connected(self, log: Log) -> None:
        await self.connect(log)
        loop = asyncio.get_running_loop()
        due, connected_anew, soon = 0.0, True, False
        while True:
            if log.reconnected.is_set():
                connected_anew, self._unanswered = True, 0
            if not (soon or self._unanswered) and (self.missed.is_set() or log.reconnected.is_set()):
                soon, due = True, min(due, loop.time() + self._spread * self._random())
            if loop.time() >= due:
                log.reconnected.clear()
                asked = loop.time()
                answered = await self.catch_up()
                self._unanswered = (
                    self._unanswered + 1 if not answered and loop.time() - asked >= ANSWER_PATIENCE else 0
                )
                due, soon = loop.time() + self._pause(answered, connected_anew), False
                connected_anew = connected_anew and not answered
            await self.send()
            log.figures()  # bytes are counted while the connection lasts
            await asyncio.sleep(TICK * (0.5 + self._random()))

    @property
    def _spread(self) -> float:
        """Seconds over which a large fleet spreads its questions when all edges missed a record or reconnected."""
        return self._ask_again - ASK_EVERY if self._ask_again > ASK_EVERY else 0.0

    def _pause(self, answered: bool, connected_anew: bool) -> float:
        """Seconds until the next question. While no server listens, ask at every tick, which costs nothing. After
        timeouts, back off exponentially: immediate retries would keep the server overloaded."""
        if not answered:
            longest = min(TICK * 2.0 ** min(self._unanswered, 20), ASK_EVERY)
            return longest * (0.5 + 0.5 * self._random()) if self._unanswered else TICK
        return ASK_AGAIN if connected_anew else self._ask_again * (1.0 - 0.25 * self._random())

    def _hear(self, subject: str, payload: bytes) -> None:
        try:
            self.on_record(subject, payload)
        except OutvoteError:
            self.missed.set()

    def _learn(self, task_id: str, update: TaskUpdate) -> None:
        """Apply a server's update of one task."""
        hosted = self._hosted.get(task_id)
        if hosted is None and update.record is not None:
            hosted = self._join(task_id, update.record)
        if hosted is None:
            return
        for elimination in update.eliminations:
            self._eliminate(hosted, elimination)
        if update.stopped:
            self._stop(hosted)
        self._switch(hosted, update.killed, update.switches)
        self._reconcile_unsent(hosted, update.highest, update.count)

    def _read(self, task_id: str, record: bytes | dict[str, Any]) -> Task | None:
        """Parse a task's record. Return None and log once if this version cannot read it."""
        try:
            task = read_task(record)
        except OutvoteError as error:
            if task_id not in self.unreadable:
                event(_log, logging.ERROR, "task_not_readable", id=task_id, error=str(error))
            self.unreadable[task_id] = str(error)
            return None
        self.unreadable.pop(task_id, None)
        return task

    def _forget(self, task_id: str) -> None:
        """Drop the stored state of a deleted task that was not readable."""
        if self.unreadable.pop(task_id, None) is not None:
            self.store.drop_task(task_id)

    def _join(self, task_id: str, record: bytes | dict[str, Any]) -> HostedTask | None:
        """Host a task. Return None if it cannot be read, is for other edges, or its name is still in use here."""
        task = self._read(task_id, record)
        if task is None:
            return None
        if task.player_names and self.name not in task.player_names:
            self._not_ours.add(task_id)
            return None
        namesake = self.tasks.get(task.name)
        if namesake is not None:  # the old task was deleted, or the new one came second: a server will know
            since = self._conflicts.setdefault((namesake.task_id, task_id), self._clock())
            if self._clock() - since < LAG:
                self.missed.set()
                return None
            event(_log, logging.WARNING, "task_in_no_log", task=task.name, id=namesake.task_id, now=task_id)
            self._leave(namesake)
        self.store.put_task(task_id, task_record(task).decode())
        when = site_words.first_counts(task)
        event(_log, logging.INFO, "task_joined", task=task.name, id=task_id, protocol=task.protocol, first_message=when)
        return self._host(task_id, task)

    def _switch(self, hosted: HostedTask, killed: bool, switches: int) -> None:
        if hosted.switch(killed, switches):
            name = "task_killed" if killed else "task_revived"
            event(_log, logging.WARNING, name, task=hosted.task.name, id=hosted.task_id)

    def _stop(self, hosted: HostedTask) -> None:
        if not hosted.stopped:
            hosted.stopped = hosted.dirty = True
            hosted.new = []
            hosted.player.decisions.drop(range(len(hosted.task.arms)))
            event(_log, logging.INFO, "task_stopped", task=hosted.task.name, id=hosted.task_id)

    def _eliminate(self, hosted: HostedTask, payload: bytes) -> None:
        number, before = hosted.eliminations, hosted.announced
        hosted.eliminate(payload)
        variants = [hosted.task.arms[arm] for arm in before if arm not in hosted.announced]
        fields = {"task": hosted.task.name, "id": hosted.task_id, "variants": variants, "number": number}
        event(_log, logging.INFO, "variants_eliminated", **fields, remaining=len(hosted.announced))

    def _note_answer(self, answered: bool) -> None:
        """Log only changes: an edge without a server asks several times a second."""
        if answered != self._answered:
            event(_log, *((logging.INFO, "catch_up_works") if answered else (logging.WARNING, "catch_up_failed")))
        self._answered = answered

    def _host(self, task_id: str, task: Task) -> HostedTask:
        saved = self.store.snapshot(task_id)
        if saved is None:
            hosted = HostedTask(task_id, task, protocols.player(task, self.name, rng=self._rng))
        else:
            hosted = restored(task_id, task, saved, self._rng)
            hosted.dirty = True
        hosted.player.decisions.share(self._capacity)
        if saved is not None:
            hosted.player.resume(self.now(), crashed=not self.store.clean)
        hosted.note_kept(self.store.messages(task_id))
        self.tasks[task.name] = self._hosted[task_id] = hosted
        return hosted

    def _reconcile_unsent(self, hosted: HostedTask, highest: int, count: int) -> None:
        """Find the messages that the log lacks. It holds `count` messages of this store, up to sequence `highest`.

        If the store has as many up to `highest`, they are the same ones. If the log has fewer than it once
        acknowledged, an engine lost some: send all again, which is harmless.
        """
        if highest == hosted.highest and count >= hosted.kept:  # usual case: the log has all of them
            hosted.unsent.clear()
            return
        kept = dict(self.store.messages(hosted.task_id))
        before = {sequence for sequence in kept if sequence <= highest}
        if count >= len(before):
            lacking = kept.keys() - before
        elif count < len(before - hosted.unsent.keys()):
            lacking = set(kept)
        else:
            lacking = (hosted.unsent.keys() & before) | (kept.keys() - before)
        hosted.unsent = {sequence: kept[sequence] for sequence in lacking}

    def _leave(self, hosted: HostedTask) -> None:
        self._conflicts = {pair: since for pair, since in self._conflicts.items() if hosted.task_id not in pair}
        hosted.unsent.clear()
        self.store.drop_task(hosted.task_id)
        hosted.player.decisions.drop(range(len(hosted.task.arms)))  # give the memory back
        del self.tasks[hosted.task.name], self._hosted[hosted.task_id]
        event(_log, logging.INFO, "task_left", task=hosted.task.name, id=hosted.task_id)

    def _reports(self) -> dict[str, SiteReport]:
        """What this site has seen, by task id, where it is enough to be told."""
        now = self.now()
        reports = {}
        for task in self.tasks.values():
            report = None if task.stopped else task.report(now)
            if report is not None:
                hidden = task.task.privacy_budget is not None
                reports[task.task_id] = without_rewards(report) if hidden else report
        return reports

    def _note_report(self, task: HostedTask, now: int) -> None:
        """Log what this site has seen when it is ten times as much, and what is new to warn of."""
        report = task.report(now)
        if report is None or (report.decisions, report.notices) == task.noticed:
            return
        level, notices = task.noticed
        task.noticed = report.decisions, report.notices
        seen, name = task.player.decisions.seen, {"task": task.task.name, "id": task.task_id}
        if report.decisions != level:
            event(_log, logging.INFO, "decisions_made", **name, count=report.decisions, rewards=sum(seen.rewards))
        for notice in report.notices:
            if notice not in notices:
                level_of = logging.INFO if notice == "only_successes" else logging.WARNING
                event(_log, level_of, notice, **name, do=site_words.NOTICES[notice])
