"""The verdict: all that was gathered, judged by every rule there is.

One rule: an audit passes when there is no finding, and a rule that could not be applied is said to be so.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from outvote.demo.setting import NAMES, Setting, check_count, make
from outvote.presenters.lookup import presenter
from outvote.privacy import schemas
from outvote.privacy.audit import frames, payloads, times
from outvote.privacy.audit.families import family
from outvote.privacy.audit.findings import Finding, shortened
from outvote.privacy.audit.fleet_run import Observation, observe
from outvote.privacy.audit.markers import FORMS

PRIVATE_RATE: Final = 600
"""Events in a second, over the fleet, with a privacy budget, where groups are larger."""
MOST_SITES, MOST_EVENTS = 20, 100_000
READY: Final = re.compile(
    r"(applications|dashboard|edges|engine|operators|state): +\S|\d+ tasks in the log; Ctrl-C stops$"
)
"""The lines that say that a command is ready."""


@dataclass
class Verdict:
    """What was looked at, how much of it, and what was found."""

    seen: Observation
    frames: Counter[str]
    accounts: payloads.Accounts
    times: times.Times
    fields: dict[str, int]
    findings: list[Finding]

    @property
    def passed(self) -> bool:
        return not self.findings

    @property
    def free_bits(self) -> int:
        """Random bits of the library in what was sent, of which nobody can tell that they are."""
        return frames.FREE_BITS * (self.frames["questions of catch-up"] + self.frames["messages"])

    def to_json(self) -> dict[str, Any]:
        seen, task = self.seen, self.seen.setting.task
        return {
            "protocol": task.protocol,
            "sites": task.players,
            "privacy_budget": task.privacy_budget,
            "floor": task.floor,
            "reward_window": task.reward_window,
            "seed": seen.setting.seed,
            "winner": seen.shown["winner"],
            "events": seen.people.count,
            "searched": {
                "requests": seen.people.requests,
                "requests_refused_on_purpose": seen.people.refused,
                "markers": seen.markers.made,
                "forms": list(FORMS),
                **seen.searched.amounts,
            },
            "frames": {**dict(sorted(self.frames.items())), "free_bits": self.free_bits},
            "payloads": self.accounts.to_json(),
            "times": self.times.to_json(),
            "fields": self.fields,
            "findings": [asdict(each) for each in self.findings],
            "seconds": round(seen.seconds, 1),
        }


def choose(*, protocol: str, sites: int, variants: int = 3, seed: int = 0, **options: float | None) -> Setting:
    """A task that ends within seconds, or an error that says what can be asked for. It is a task as any other: all that
    differs from one in use is that its answer is easy. `options` are its privacy budget and its reward window."""
    check_count("sites", sites, 2, MOST_SITES)
    rate = None if options.get("privacy_budget") is None else PRIVATE_RATE
    return make(presenter(protocol).audit, protocol, NAMES[:variants], sites, rate=rate, seed=seed, **options)


async def audit(setting: Setting, *, least_events: int = 0, say: Callable[[str], None] = lambda step: None) -> Verdict:
    """Run a fleet, and judge it. `say` is told how far it is."""
    return judged(await observe(setting, least_events=least_events, say=say))


def judged(seen: Observation) -> Verdict:
    task, shown, events = seen.setting.task, seen.shown, seen.people.events
    incarnations = {edge: str(dict(tables.get("meta", [])).get("incarnation")) for edge, tables in seen.stores.items()}
    known = frames.Known(shown["id"], incarnations, len(task.arms) - 1)
    heard = frames.explained(seen.conversations, known)
    ledger = {"messages": shown["messages"]["up"], "bits": shown["bits"]["up"]}
    accounts = payloads.accounted(task, heard.sent, ledger)
    family(task.protocol).compare(task, accounts, events, seen.first_heard)
    timed = times.judged(task, times.matched(accounts.completed))
    fields, odd = _fields(seen)
    silent = [
        Finding("account", edge, "no traffic of this edge was seen: it has another way to the engine")
        for edge in task.player_names
        if edge not in heard.edges
    ]
    findings = [*seen.searched.findings, *heard.findings, *accounts.findings, *timed.findings, *odd, *silent]
    return Verdict(seen, heard.counts, accounts, timed, fields, shortened(findings))


def _fields(seen: Observation) -> tuple[dict[str, int], list[Finding]]:
    """Every field that was stored or logged, against the closed schemas."""
    counts = {"columns": 0, "values_in_stores": 0, "log_lines": 0}
    found: list[Finding] = []

    def note(where: str, odd: list[str]) -> None:
        found.extend(Finding("field", where, each) for each in odd)

    for table, columns in seen.columns.items():
        counts["columns"] += len(columns)
        known = [f"{table}.{column}" for column in columns]
        note("the stores of edges", [f"{each} is no column" for each in known if each not in schemas.STORE.by_path])
    state = family(seen.setting.task.protocol).state
    for edge, tables in seen.stores.items():
        for _, record in tables.get("tasks", []):
            note(f"store of {edge}", schemas.unexplained(schemas.TASK_RECORD, json.loads(record)))
        for _, body in tables.get("snapshots", []):
            saved = json.loads(body)
            player = saved.pop("player", {})
            counts["values_in_stores"] += sum(1 for _ in schemas.leaves(saved)) + sum(1 for _ in schemas.leaves(player))
            note(f"store of {edge}", schemas.unexplained(schemas.SAVED, saved) + schemas.unexplained(state, player))
        note(f"lock of {edge}", schemas.unexplained(schemas.LOCK, seen.locks[edge]))
    for who, line in seen.log_lines:
        counts["log_lines"] += 1
        if line.startswith("{"):
            odd = schemas.unexplained_line(json.loads(line))
        else:  # what a command says when it is ready: addresses and the path of its store
            odd = [] if READY.match(line) else [f"no line of a log: {line[:60]!r}"]
        found.extend(Finding("log", f"log of {who}", each) for each in odd)
    return counts, found
