"""The parts of the audit, each by itself: what they must find they find, and what is as it should be they let pass."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

from outvote.core.decisions import Ticket
from outvote.core.messages import Tally
from outvote.core.task import Task
from outvote.edge.site import TICK
from outvote.log.records import Coder, UpSubject
from outvote.privacy.audit import fleet_run, frames, payloads, times
from outvote.privacy.audit.families import family
from outvote.privacy.audit.markers import FORMS, Markers
from outvote.privacy.audit.people import Event
from outvote.privacy.audit.recorder import Conversation

HIDDEN: dict[str, Callable[[bytes], bytes]] = {
    "as it is": lambda marker: marker,
    "in capitals": bytes.upper,
    "backwards": lambda marker: marker[::-1],
    "in hex": lambda marker: marker.hex().encode(),
    "in base64": lambda marker: base64.b64encode(marker),
    "in base64, from the second byte": lambda marker: base64.b64encode(b"x" + marker),
    "in base64, from the third byte": lambda marker: base64.b64encode(b"xy" + marker),
    "percent-encoded": lambda marker: "".join(f"%{byte:02X}" for byte in marker).encode(),
    "with escapes of JSON": lambda marker: "".join(f"\\u{byte:04x}" for byte in marker).encode(),
    "in UTF-16": lambda marker: marker.decode().encode("utf-16-le"),
    "compressed by zlib": lambda marker: zlib.compress(b"some text and " + marker),
    "compressed by gzip": lambda marker: gzip.compress(b"some text and " + marker),
    "hashed": lambda marker: hashlib.sha256(marker).hexdigest().encode(),
}


@pytest.mark.parametrize("form", HIDDEN)
def test_a_marker_is_found_in_every_form(form: str) -> None:
    markers = Markers()
    marker = markers.person("anna")
    assert markers.find(b"before " + HIDDEN[form](marker.encode()) + b" after")
    assert not Markers().find(b"before " + HIDDEN[form](marker.encode()) + b" after")
    assert quote(marker) == marker
    assert len(FORMS) == 10


TASK = Task(arms=3, players=["paris"], epsilon=0.0, delta=0.1, protocol="tally", reward_window=20.0)
"""Groups are held back for up to 2 seconds after their window."""


def honest(n: int, rng: np.random.Generator, *, edges: int = 4, groups: int = 1) -> list[times.Timed]:
    """Messages as an edge sends them that keeps the rules; each is completed by so many groups."""
    found = []
    for edge in range(edges):
        keep, send = (np.cumsum(TICK * (0.5 + rng.random(400))) for _ in range(2))
        for _ in range(n // edges):
            ends = 2 + 6 * rng.random() + 0.01 * np.arange(groups)
            closed = max(ends + 20 + 2 * rng.random(groups))
            sent = send[np.searchsorted(send, keep[np.searchsorted(keep, closed)])]
            found.append(times.Timed(f"site-{edge}", tuple(map(float, ends)), float(sent)))
    return found


@pytest.mark.parametrize("groups", [1, 4])
def test_times_of_an_honest_edge_pass_and_so_do_later_ones(groups: int) -> None:
    rng = np.random.default_rng(5)  # false alarms: at most 2 in 10,000 for each of the two, which the seed excludes
    timed = honest(60, rng, groups=groups)
    found = times.judged(TASK, timed)
    assert found.findings == []
    assert found.p_values.keys() == {"too soon", "too regular"}
    late = [replace(each, sent=each.sent + rng.exponential(0.1)) for each in timed]
    assert times.judged(TASK, late).findings == []


@pytest.mark.parametrize(
    ("delay", "name"),
    [
        (lambda rng: 19.9, "within the window"),
        (lambda rng: 20.3 + 0.1 * rng.random(), "too soon"),
        (lambda rng: 21.8 + 0.2 * rng.random(), "too regular"),
    ],
    ids=["before the window has passed", "one window later", "always as late"],
)
def test_times_that_tell_of_events_are_found(delay: Callable[[np.random.Generator], float], name: str) -> None:
    rng = np.random.default_rng(6)
    bad = [replace(each, sent=each.ends[0] + delay(rng)) for each in honest(60, rng)]
    assert any(each.what.startswith(f"{name}:") for each in times.judged(TASK, bad).findings)


def test_four_votes_sent_a_window_after_their_decisions_are_enough_to_be_found() -> None:
    rng = np.random.default_rng(7)
    bad = [replace(each, sent=each.ends[-1] + 20.01) for each in honest(4, rng, groups=4)]
    assert any("too soon:" in each.what for each in times.judged(TASK, bad).findings)


# ---- what an edge may say

LIFE = "0123456789abcdef"
KNOWN = frames.Known("task-1", {"paris": LIFE}, 2)
GREETING = {
    "verbose": False, "pedantic": False, "lang": "python3", "version": "2.11.0", "protocol": 1, "headers": True,
    "no_responders": True, "name": "paris", "echo": True,
}  # fmt: skip
INBOX = "_INBOX.paris.AAAAAAAAAAAA0000000001"
ASKED: dict[str, object] = {"incarnation": LIFE, "tasks": {"task-1": 1}}


def reply(number: int) -> str:
    return f"{INBOX}.AAAAAAAAAAAA{number:010d}0f1e"


def said(
    *,
    greeting: dict[str, object] = GREETING,
    listens: str = "outvote.live.>",
    subject: str = f"outvote.up.paris.task-1.{LIFE}.0",
    header: bytes = frames.HEADER,
    payload: bytes = b"\x50",
    asked: dict[str, object] = ASKED,
    replies: tuple[int, int, int] = (3, 5, 7),
    more: bytes = b"PING\r\n",
) -> frames.Heard:
    question = json.dumps(asked).encode()
    text = b"CONNECT %s\r\nPING\r\nSUB %s 1\r\nSUB %s.* 2\r\n" % (
        json.dumps(greeting).encode(),
        listens.encode(),
        INBOX.encode(),
    )
    text += b"PUB outvote.sync.paris %s %d\r\n%s\r\n" % (reply(replies[0]).encode(), len(question), question)
    for number in replies[1:]:
        size, total = len(header), len(header) + len(payload)
        line = b"HPUB %s %s %d %d\r\n" % (subject.encode(), reply(number).encode(), size, total)
        text += line + header + payload + b"\r\n"
    half = len(text) // 2
    return frames.explained([Conversation(up=[(1.0, text[:half]), (2.0, text[half:] + more)])], KNOWN)


def test_what_an_edge_says_is_explained_to_the_last_word() -> None:
    heard = said()
    assert heard.findings == []
    assert heard.counts == {
        "greetings": 1,
        "signs of life of the connection": 2,
        "subscriptions": 2,
        "questions of catch-up": 1,
        "messages": 2,
    }
    assert [each.subject for each in heard.sent] == [UpSubject("paris", "task-1", LIFE, 0)] * 2
    assert [each.payload for each in heard.sent] == [b"\x50"] * 2


@pytest.mark.parametrize(
    ("changed", "finding"),
    [
        ({"greeting": {**GREETING, "user": "anna"}}, "user is no field"),
        ({"greeting": {**GREETING, "lang": "anna"}}, "lang is 'anna'"),
        ({"greeting": {**GREETING, "name": "anna"}}, "the name of an edge of this fleet"),
        ({"listens": "anna.>"}, "listens to outvote.live.>"),
        ({"subject": f"outvote.up.paris.task-1.{LIFE}.anna"}, "no subject of this network"),
        ({"subject": "outvote.up.paris.task-1.feedfeedfeedfeed.0"}, "the incarnation is not that of the store"),
        ({"subject": f"outvote.up.lima.task-1.{LIFE}.0"}, "an edge speaks for itself"),
        ({"subject": "anna.was.here"}, "no subject of this network"),
        ({"header": b"NATS/1.0\r\nUser: anna\r\n\r\n"}, "a message has one header"),
        ({"asked": {**ASKED, "user": "anna"}}, "user is no field"),
        ({"asked": {**ASKED, "tasks": {"anna": 1}}}, "a task that there is not"),
        ({"asked": {**ASKED, "reports": {"anna": {"decisions": 100}}}}, "a task that there is not"),
        ({"asked": {**ASKED, "reports": {"task-1": {"user": 100}}}}, "reports.task-1.user is no field"),
        ({"asked": {**ASKED, "tasks": {"task-1": 1762}}}, "1762 eliminations known, of 2"),
        ({"asked": {"incarnation": LIFE}}, "a question has an incarnation and tasks"),
        ({"replies": (3, 5, 9)}, "equal steps"),
        ({"more": b"PING anna\r\n"}, "has no such words"),
        ({"more": b"anna"}, "has no such words"),
        ({"more": b"PUB anna 1\r\nx\r\n"}, "has no such words"),
    ],
)
def test_a_word_too_many_is_found(changed: dict[str, object], finding: str) -> None:
    found = said(**changed).findings  # type: ignore[arg-type]
    assert any(finding in each.what for each in found), found


def test_a_payload_is_compared_with_its_events() -> None:
    coder = Coder(TASK)
    message = coder.read_up(UpSubject("paris", "task-1", LIFE, 0), b"\x50")
    assert isinstance(message, Tally)
    arm = message.arm
    tickets = [Ticket("AAAAAAAA", 0, arm, place, 1_700_000_000_000) for place in range(3)]
    events = {"paris": [Event(ticket, int(ticket.place == 0), (0.1, 0.2), True) for ticket in tickets]}

    def accounted(payload: bytes, bits: int = 2, those: dict[str, list[Event]] = events) -> list[str]:
        sent = [frames.Sent(1.0, UpSubject("paris", "task-1", LIFE, 0), payload)]
        found = payloads.accounted(TASK, sent, {"messages": 1, "bits": bits})
        family(TASK.protocol).compare(TASK, found, those, {})
        return [each.what for each in found.findings]

    right = coder.up(Tally(arm, 1, 3, 0))
    assert accounted(right) == []
    assert accounted(coder.up(Tally(arm, 2, 3, 0))) == ["it is not the sum of its events' rewards"]
    assert accounted(right, bits=3) == ["the server counted 3 bits, on the wire were 2"]
    assert "no message of the task" in accounted(b"anna")[0]
    unsure = {"paris": [replace(events["paris"][0], in_time=False), *events["paris"][1:]]}
    assert accounted(coder.up(Tally(arm, 0, 3, 0)), those=unsure) == accounted(right, those=unsure) == []
    few = {"paris": events["paris"][:2]}
    assert accounted(right, those=few)[0] == "a message speaks of 2 events, the floor is 3"


def test_a_folder_that_goes_away_while_files_are_looked_for_is_no_error(tmp_path: Path) -> None:
    """As those of an engine do that runs."""
    for name in ("a/deep", "b"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").touch()
    found = fleet_run._all_in(tmp_path)
    first = [next(found) for _ in range(2)]
    assert {each.name for each in first} == {"a", "b"}
    shutil.rmtree(tmp_path / "a")
    assert [each.relative_to(tmp_path) for each in found] == [Path("b/file")]
