"""The verdict: all that was gathered, judged by every rule there is.

One rule: an audit passes when there is no finding, and a rule that could not be applied is said to be so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from outvote.demo.setting import Setting
from outvote.privacy import schemas
from outvote.privacy.audit import frames, payloads, times
from outvote.privacy.audit.findings import Finding, shortened
from outvote.privacy.audit.fleet_run import Observation, Progress, observe
from outvote.privacy.audit.markers import FORMS

READY: Final = re.compile(
    r"(applications|dashboard|edges|engine|operators|state): +\S|\d+ tasks in the log; Ctrl-C stops$"
)
"""The lines that say that a command is ready."""


@dataclass
class Verdict:
    """What was looked at, how much of it, and what was found."""

    setting: Setting
    winner: str | None
    events: int
    requests: int
    refused: int
    markers: int
    searched: dict[str, dict[str, int]]
    frames: dict[str, int]
    wire_bytes: int
    accounts: payloads.Accounts
    times: times.Times
    fields: dict[str, int]
    seconds: float
    findings: list[Finding] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.findings

    @property
    def free_bits(self) -> int:
        """Random bits of the library in what was sent, of which nobody can tell that they are."""
        asked = self.frames.get("questions of catch-up", 0) + self.frames.get("messages", 0)
        return frames.FREE_BITS * asked

    def to_json(self) -> dict[str, Any]:
        task = self.setting.task
        return {
            "protocol": task.protocol,
            "edges": task.players,
            "privacy_budget": task.privacy_budget,
            "floor": task.floor,
            "seed": self.setting.seed,
            "winner": self.winner,
            "events": self.events,
            "searched": {
                "requests": self.requests,
                "requests_refused_on_purpose": self.refused,
                "markers": self.markers,
                "forms": list(FORMS),
                **self.searched,
            },
            "frames": {**self.frames, "free_bits": self.free_bits},
            "payloads": self.accounts.to_json(),
            "times": self.times.to_json(),
            "fields": self.fields,
            "findings": [each.to_json() for each in self.findings],
            "seconds": round(self.seconds, 1),
        }


async def audit(
    setting: Setting, *, least_events: int = 0, look: Callable[[Progress], None] = lambda progress: None
) -> Verdict:
    """Run a fleet, and judge it."""
    return judged(await observe(setting, least_events=least_events, look=look))


def judged(seen: Observation) -> Verdict:
    task, shown = seen.setting.task, seen.shown
    incarnations = {edge: str(dict(tables.get("meta", [])).get("incarnation")) for edge, tables in seen.stores.items()}
    known = frames.Known(seen.task_id, incarnations, len(task.arms) - 1)
    heard = frames.explained(seen.conversations, known)
    ledger = {"messages": shown["messages"]["up"], "bits": shown["bits"]["up"]}
    accounts = payloads.accounted(task, heard.sent, seen.events, ledger, seen.first_heard)
    timed = times.judged(times.matched(task, accounts.decoded, seen.events, seen.first_heard), accounts.messages)
    fields, odd = _fields(seen)
    silent = [
        Finding("account", edge, "no traffic of this edge was seen: it has another way to the engine")
        for edge in task.player_names
        if edge not in heard.edges
    ]
    return Verdict(
        setting=seen.setting,
        winner=shown["winner"],
        events=sum(map(len, seen.events.values())),
        requests=seen.requests,
        refused=seen.refused,
        markers=seen.markers.made,
        searched=seen.searched.amounts,
        frames=dict(sorted(heard.counts.items())),
        wire_bytes=seen.searched.amounts.get("traffic", {}).get("bytes", 0),
        accounts=accounts,
        times=timed,
        fields=fields,
        seconds=seen.seconds,
        findings=shortened(
            [*seen.searched.findings, *heard.findings, *accounts.findings, *timed.findings, *odd, *silent]
        ),
    )


def _fields(seen: Observation) -> tuple[dict[str, int], list[Finding]]:
    """Every field that was stored or logged, against the closed schemas."""
    counts = {"columns": 0, "values_in_stores": 0, "log_lines": 0}
    found: list[Finding] = []

    def note(where: str, odd: list[str]) -> None:
        found.extend(Finding("field", where, each) for each in odd)

    for table, columns in seen.columns.items():
        counts["columns"] += len(columns)
        known = [f"{table}.{column}" for column in columns]
        note("the stores of edges", [f"{each} is no column" for each in known if schemas.STORE.field(each) is None])
    state = schemas.TALLY_STATE if seen.setting.task.protocol == "tally" else schemas.VOTES_STATE
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
