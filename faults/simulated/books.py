"""What one simulated edge must know of its decisions, kept beside it by hand: the rules of rewards, written once more.

Of a crash it looks at what the disk has saved: that is all that the edge can know. All else it has seen itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from faults.reading import Finding
from faults.simulated.disk import Content, Disk
from faults.told import Group, Told
from outvote.core.decisions import Ticket
from outvote.core.task import Task

Player = tuple[str, str]
"""The incarnation of a store, and a task's id."""
ROUNDING: Final = 0.002
"""Seconds: the clock of an edge counts whole milliseconds."""


@dataclass(slots=True)
class Account(Group):
    """A group as its edge must have it."""

    run: str = ""
    due: int = 0
    """By the clock of the edge: it must not close earlier. 0 if it may have closed."""

    def opens_until(self, due: int, now: int, time: float) -> None:
        self.due = due
        self.not_before = time + max(0, due - now) / 1000 - ROUNDING


class Books:
    """Of one edge. `now` is by its own clock, in milliseconds, `time` by that of the world, in seconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.findings: list[Finding] = []
        self._accounts: dict[Player, dict[int, Account]] = {}
        """By player and number of the group."""
        self._tasks: dict[str, Task] = {}
        self._crashed: set[str] = set()
        """Runs that may have made decisions which nobody saved: no other decision may have their names."""

    def told(self) -> dict[str, Told]:
        """What its tallies may say, by name of the task."""
        found: dict[str, Told] = {}
        for (_, task_id), accounts in self._accounts.items():
            groups = found.setdefault(self._tasks[task_id].name, Told()).groups
            for number, account in accounts.items():
                groups.setdefault(number, []).append(account)
        return found

    def decided(self, player: Player, task: Task, ticket: Ticket, now: int, time: float) -> None:
        """A decision was made."""
        accounts = self._accounts.get(player)
        if accounts is None:
            accounts = self._accounts[player] = {}
            self._tasks[player[1]] = task
        account = accounts.get(ticket.group)
        if account is None:
            account = accounts[ticket.group] = Account(ticket.arm, run=ticket.run)
        if (ticket.run, ticket.arm, ticket.place) != (account.run, account.arm, account.most):
            self._find("counted twice", ticket, f"was given, and {account.most} of {account.run} is next")
        if ticket.run in self._crashed:
            self._find("counted twice", ticket, "may have been given before a crash")
        if ticket.at != now:
            self._find("wrong", ticket, f"was given at {now}")
        account.least = account.most = ticket.place + 1
        account.opens_until(now + _window(task) + 1, now, time)

    def rewarded(self, player: Player, task: Task, ticket: Ticket, reward: float, now: int, *, taken: bool) -> None:
        """A reward was taken or refused by a player that still has its arm."""
        if now > ticket.at + _window(task):
            if not taken:
                self._find("wrong", ticket, "was late, and refused")
            return
        account = self._accounts.get(player, {}).get(ticket.group)
        if account is None or (account.run, account.arm) != (ticket.run, ticket.arm) or ticket.place >= account.most:
            if taken:
                self._find("counted twice", ticket, "is of no decision that it can know, and was taken")
        elif taken:
            if reward:
                account.sure.add(ticket.place)
                account.possible.add((ticket.place, 0))
                account.kept = min(account.kept, account.most - len(account.sure))
        elif now < account.due:
            self._find("lost", ticket, "was refused within its window")

    def started(self, disk: Disk, now: int, time: float, *, clean: bool) -> None:
        """The edge was started again, on what its disk has; `clean` if it was ended in order."""
        for (incarnation, task_id), accounts in self._accounts.items():
            if incarnation != disk.incarnation or task_id not in disk.written.tasks:
                continue  # nobody knows it any more
            task, content = self._tasks[task_id], disk.written
            tallies = content.messages.get(task_id, {}) if task.protocol == "tally" else {}
            saved = _saved(content, task_id)
            if not clean:
                self._crashed.update(account.run for account in accounts.values())
            for number, account in list(accounts.items()):
                if number in tallies:
                    account.due = 0
                    continue
                if clean:
                    account.kept = min(account.kept + len(account.sure), account.most)
                elif (account.run, number) in saved:
                    self._cut(account, saved[account.run, number])
                else:
                    del accounts[number]
                account.sure, account.possible = set(), set()
                due = min(account.due, now + _window(task) + 1)
                if time < account.not_before:
                    account.opens_until(due, now, time)
                else:
                    account.due = 0

    def _cut(self, account: Account, counts: list[tuple[int, int, int, float]]) -> None:
        """A crash has left what was saved."""
        for arm, _, decided, total in counts:
            if arm != account.arm or decided > account.most or total > account.kept + len(account.sure):
                self.findings.append(Finding("counted twice", f"{self.name} has saved {counts} of {account}"))
            account.least, account.most, account.kept = decided, decided, int(total)

    def _find(self, kind: str, ticket: Ticket, what: str) -> None:
        self.findings.append(Finding(kind, f"{ticket} of {self.name} {what}"))


def _window(task: Task) -> int:
    return round(1000 * task.reward_window)


def _saved(content: Content, task_id: str) -> dict[tuple[str, int], list[tuple[int, int, int, float]]]:
    """The counts of groups that a snapshot has, by run and number."""
    snapshot = content.snapshots.get(task_id)
    groups = [] if snapshot is None else json.loads(snapshot)["player"]["decisions"]["groups"]
    return {(run, number): counts for run, number, _, counts in groups}
