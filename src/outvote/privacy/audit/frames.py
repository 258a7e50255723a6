"""All that a site says to the engine, taken apart and explained word by word by a closed grammar.

One rule: what the grammar does not explain is a finding. There is nothing in it for anything but votes, tallies, the
question of catch-up, and what NATS needs to carry them.
"""

from __future__ import annotations

import bisect
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from outvote.core.errors import OutvoteError
from outvote.log.records import LIVE, SYNC, UpSubject, parse
from outvote.privacy.audit.findings import Finding
from outvote.privacy.audit.recorder import UP, Conversation
from outvote.privacy.schemas import CONNECT, QUESTION, unexplained

HEADER: Final = b"NATS/1.0\r\nNats-Expected-Stream: OUTVOTE\r\n\r\n"
FREE_BITS: Final = 16
"""Of each question and message: the library ends the name of its inbox with four random hex digits. Nobody can tell by
looking that they are random."""
DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_UNIQUE: Final = rf"([{DIGITS}]{{12}})([{DIGITS}]{{10}})"
_ALWAYS: Final = {
    "verbose": False,
    "pedantic": False,
    "lang": "python3",
    "protocol": 1,
    "headers": True,
    "no_responders": True,
    "echo": True,
}
"""What an edge without credentials says of itself when it connects, besides its name and a version."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One operation of NATS' protocol, from an edge."""

    time: float
    verb: str
    words: tuple[str, ...]
    header: bytes = b""
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class Sent:
    """An upward message on the wire."""

    time: float
    subject: UpSubject
    payload: bytes


@dataclass(frozen=True, slots=True)
class Known:
    """What the audit knows of the fleet from elsewhere."""

    task_id: str
    incarnations: Mapping[str, str]
    """By edge: the random name of its store."""
    eliminations: int


@dataclass
class Heard:
    """What was explained, and what was not."""

    sent: list[Sent] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    edges: set[str] = field(default_factory=set)


def taken_apart(conversation: Conversation) -> Iterator[Frame]:
    """The frames of what an edge said; what is cut or no frame at all comes as the verb `?`."""
    data = conversation.said(UP)
    starts, at = [], 0
    for _, piece in conversation.up:
        starts.append(at)
        at += len(piece)
    times = [when for when, _ in conversation.up]
    at = 0
    while at < len(data):
        when = times[bisect.bisect_right(starts, at) - 1]
        end = data.find(b"\r\n", at)
        if end < 0:
            yield Frame(when, "?", (data[at : at + 80].decode("latin-1"),))
            return
        verb, _, rest = data[at:end].decode("latin-1").partition(" ")
        verb, at = verb.upper(), end + 2
        if verb == "CONNECT":
            yield Frame(when, verb, (rest,))
            continue
        words = tuple(rest.split())
        sizes = {"PUB": 1, "HPUB": 2}.get(verb, 0)
        if not sizes:
            yield Frame(when, verb, words)
            continue
        if len(words) < 1 + sizes or not all(each.isdigit() for each in words[-sizes:]):
            yield Frame(when, "?", (data[at - len(rest) - 7 : at].decode("latin-1"),))
            return
        head, total = (0, int(words[-1])) if verb == "PUB" else (int(words[-2]), int(words[-1]))
        body, tail = data[at : at + total], data[at + total : at + total + 2]
        at += total + 2
        if tail != b"\r\n":
            if len(data) >= at:
                yield Frame(when, "?", (f"{verb} of another length than it says",))
            return  # the connection was cut in the middle of it
        yield Frame(when, verb, words[:-sizes], body[:head], body[head:])


class Explainer:
    """The grammar, for one connection of one edge."""

    def __init__(self, known: Known, heard: Heard) -> None:
        self._known = known
        self._heard = heard
        self._edge = ""
        self._inbox = ""
        self._last: int | None = None
        self._step: int | None = None

    def explain(self, frame: Frame) -> None:
        kind, fault = self._judge(frame)
        self._heard.counts[kind] += 1
        if fault:
            said = f"{self._edge or 'an edge'} said {frame.verb} {' '.join(frame.words)[:120]}"
            self._heard.findings.append(Finding("frame", said, fault))

    def _judge(self, frame: Frame) -> tuple[str, str]:
        """What it is, and what is wrong with it."""
        match frame.verb, frame.words:
            case "CONNECT", (text,):
                return "greetings", self._connect(text)
            case (("PING" | "PONG"), ()):
                return "signs of life of the connection", ""
            case "SUB", (subject, number) if number.isdigit():
                return "subscriptions", self._subscribe(subject)
            case "UNSUB", (number, *rest) if number.isdigit() and all(each.isdigit() for each in rest):
                return "subscriptions ended", ""
            case (("PUB" | "HPUB"), (subject, reply)):
                fault = self._reply(reply)
                if subject == f"{SYNC}.{self._edge}":
                    return "questions of catch-up", fault or self._question(frame)
                return "messages", fault or self._message(frame, subject)
        return "what nobody can explain", "the grammar of the network has no such words"

    def _connect(self, text: str) -> str:
        try:
            said: Any = json.loads(text)
        except ValueError:
            return "a greeting must be JSON"
        if not isinstance(said, dict) or said.get("name") not in self._known.incarnations:
            return "a greeting has the name of an edge of this fleet"
        self._edge = said["name"]
        self._heard.edges.add(self._edge)
        odd = [f"{key} is {said[key]!r}" for key, value in _ALWAYS.items() if key in said and said[key] != value]
        if not re.fullmatch(r"\d+(\.\d+){1,3}\w*", str(said.get("version"))):
            odd.append("version is none")
        odd += [f"{each.path} is missing" for each in CONNECT.fields if not each.optional and each.path not in said]
        return "; ".join(odd + unexplained(CONNECT, said))

    def _subscribe(self, subject: str) -> str:
        if subject == f"{LIVE}.>":
            return ""
        found = re.fullmatch(rf"_INBOX\.{re.escape(self._edge)}\.({_UNIQUE})\.\*", subject)
        if found is None:
            return f"an edge listens to {LIVE}.> and to its own inbox"
        self._inbox = found[1]
        return self._running(found[2], found[3], first=True)

    def _reply(self, reply: str) -> str:
        found = re.fullmatch(rf"_INBOX\.{re.escape(self._edge)}\.({_UNIQUE})\.{_UNIQUE}[0-9a-f]{{4}}", reply)
        if found is None or found[1] != self._inbox:
            return "a reply goes to the edge's own inbox, with a running number"
        if found[4] != self._inbox[:12]:
            return "the number of a reply begins as that of its inbox"
        return self._running(found[4], found[5])

    def _running(self, start: str, number: str, *, first: bool = False) -> str:
        """The library counts in equal steps from a random start: so these words are free to say nothing."""
        value = 0
        for digit in number:
            value = value * len(DIGITS) + DIGITS.index(digit)
        if first or self._last is None:
            self._last, self._step = value, None
            return ""
        step, self._last = value - self._last, value
        expected, self._step = self._step, step if self._step is None else self._step
        if (expected is None and 0 < step <= 1000) or step == expected:
            return ""
        return f"the numbers of replies go in equal steps of {expected}, got one of {step}"

    def _question(self, frame: Frame) -> str:
        try:
            asked: Any = json.loads(frame.payload)
        except ValueError:
            return "a question is JSON"
        if frame.header or not isinstance(asked, dict) or not {"incarnation", "tasks"} <= set(asked):
            return "a question has an incarnation and tasks, and no header"
        odd = unexplained(QUESTION, asked)
        if asked["incarnation"] != self._known.incarnations[self._edge]:
            odd.append("the incarnation is not that of the store")
        if not {*asked["tasks"], *asked.get("reports", ())} <= {self._known.task_id}:
            odd.append("a task that there is not")
        most = self._known.eliminations
        odd += [f"{n} eliminations known, of {most}" for n in asked["tasks"].values() if n not in range(most + 1)]
        return "; ".join(odd)

    def _message(self, frame: Frame, subject: str) -> str:
        try:
            where = parse(subject)
        except OutvoteError as error:
            return str(error)
        if not isinstance(where, UpSubject):
            return "an edge sends upwards only"
        if (where.edge, where.task_id) != (self._edge, self._known.task_id):
            return "an edge speaks for itself, and of the task"
        if where.incarnation != self._known.incarnations[self._edge]:
            return "the incarnation is not that of the store"
        if frame.header != HEADER:
            return f"a message has one header, which names the stream; got {frame.header[:80]!r}"
        self._heard.sent.append(Sent(frame.time, where, frame.payload))
        return ""


def explained(conversations: list[Conversation], known: Known) -> Heard:
    """Everything that edges said."""
    heard = Heard()
    for conversation in conversations:
        explainer = Explainer(known, heard)
        for frame in taken_apart(conversation):
            explainer.explain(frame)
    return heard
