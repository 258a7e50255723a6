"""What the fuzz tests draw: tasks of every kind, and what is sound with a fault in it.

Pure chance seldom comes near a message: most of what is drawn here began as one.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from outvote.core.messages import Elimination, Tally, UpMessage, Vote
from outvote.core.tally.cycle import Cycle
from outvote.core.task import Task

SITES = ("ams", "fra", "nyc")
LARGEST = 64 * 1024
"""Bytes of a record: the engine stores no larger one."""
LONGEST_MESSAGE = 2_000
"""Characters of an error: what came may be long, and is not repeated whole."""
_DEEP = "@deep@"


@st.composite
def tasks(draw: st.DrawFn, name: str = "shop") -> Task:
    """Any protocol, any code, with or without what is optional."""
    protocol = draw(st.sampled_from(["dme", "edme", "tally"]))
    arms = draw(st.integers(2, 9) | st.sampled_from([16, 17, 40]))
    codes = ["binary", "truncated", "huffman"]
    code = draw(st.sampled_from([*codes, "implied"] if protocol == "tally" else codes))
    fields: dict[str, Any] = {
        "protocol": protocol,
        "arms": arms,
        "players": draw(st.sampled_from([list(SITES), 3])),
        "epsilon": draw(st.sampled_from([0.0, 0.3] if protocol == "tally" else [0.9, 0.99])),
        "delta": draw(st.sampled_from([0.05, 0.9])),
        "code": code,
        "reward_window": draw(st.sampled_from([1.0, 60.0])),
        "fallback": draw(st.sampled_from([None, "1"])),
        "name": name,
    }
    if code == "huffman":
        weights = st.sampled_from([1.0, 2.0, 3.0, 1e-300, 1e300])
        fields["code_weights"] = draw(st.lists(weights, min_size=arms, max_size=arms))
    if protocol == "edme":
        fields["instances"] = draw(st.integers(1, 5))
    if protocol == "tally":
        fields["floor"] = draw(st.sampled_from([None, 2, 3, 127]))
        fields["privacy_budget"] = draw(st.sampled_from([None, None, 1.0]))
    return Task(**fields)


@st.composite
def messages(draw: st.DrawFn, task: Task, edge: str) -> UpMessage:
    """One that a player of the task may have sent."""
    if task.protocol == "tally":
        size, sequence = draw(st.sampled_from(task.tally_sizes)), draw(st.integers(0, 60))
        return Tally(Cycle(task).arm(edge, sequence), draw(st.integers(0, size)), size, sequence)
    instance = draw(st.integers(0, len(task.instances) - 1))
    most = len(task.instances) * (len(task.arms) - 1)  # votes of one player
    return Vote(draw(st.integers(0, len(task.arms) - 1)), instance, draw(st.integers(0, min(4, most) - 1)))


@st.composite
def eliminations(draw: st.DrawFn, announced: Sequence[int]) -> Elimination:
    """One that may follow where these arms are left."""
    gone = draw(st.sets(st.sampled_from(announced), min_size=1, max_size=len(announced) - 1))
    return Elimination(tuple(sorted(gone)))


# ---- bytes


SEEDS = st.integers(0, 2**32)
"""What is mutated is mutated by chance: a choice of its own for every fault would take most of the time."""


def mutated(*sound: bytes) -> st.SearchStrategy[bytes]:
    """One of these payloads, most often with a fault; or any bytes."""
    return SEEDS.map(lambda seed: _mutate(random.Random(seed), sound))


def _mutate(rng: random.Random, sound: Sequence[bytes]) -> bytes:
    payload = rng.choice(sound)
    for fault in rng.choices(_FAULTS, k=rng.randrange(4)):
        place = rng.randint(0, len(payload))
        match fault:
            case "flip" if payload:
                at = place % len(payload)
                payload = payload[:at] + bytes([payload[at] ^ 1 << rng.randrange(8)]) + payload[at + 1 :]
            case "cut":
                payload = payload[:place]
            case "behead":
                payload = payload[place:]
            case "insert":
                payload = payload[:place] + rng.randbytes(rng.randint(1, 4)) + payload[place:]
            case "extend":
                payload += rng.choice([b"\0", b"\x80", b"\0\x80", b"\xff" * 9, payload])
            case "splice":
                payload = payload[:place] + rng.choice(sound)[rng.randrange(4) :]
            case "any":
                payload = rng.randbytes(rng.randrange(12))
            case "large":
                payload = (payload or b"\xff") * (LARGEST // max(1, len(payload)))
    return payload[:LARGEST]


_FAULTS = ("flip", "flip", "flip", "cut", "behead", "insert", "extend", "splice", "any", "flip", "cut", "large")


# ---- subjects

ODD = (
    ["", "*", ">", ".", "/", "\n", " ", "0", "-1", "00", "01", "٣", "²", "1_0", "+1", "1e3", "9" * 16, "9" * 5000]
    + ["outvote", "up", "down", "live", "task", "stop", "delete", "elim", "expect", "kill", "discount", "\ud800", "\0"]
    + ["ams", "ä", "a" * 65, "shop-1", "shop-2", "life", "ams\n", "1", "2"]
)
TOKENS = st.sampled_from(ODD)


def subjects(*sound: str) -> st.SearchStrategy[str]:
    """One of these, most often with a fault."""
    return SEEDS.map(lambda seed: _subject(random.Random(seed), sound))


def _subject(rng: random.Random, sound: Sequence[str]) -> str:
    tokens = rng.choice(sound).split(".")
    for _ in range(rng.randrange(3)):
        place = rng.randrange(len(tokens))
        match rng.choice(["replace", "replace", "drop", "add", "text"]):
            case "replace":
                tokens[place] = rng.choice(ODD)
            case "drop" if len(tokens) > 1:
                del tokens[place]
            case "add":
                tokens.insert(place, rng.choice(ODD))
            case "text":
                tokens[place] = "".join(chr(rng.randrange(1, 0x3000)) for _ in range(rng.randrange(5)))
    return ".".join(tokens)


# ---- JSON

WEIRD: Sequence[Any] = (
    [None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1.5, 5e-324, 1e-300, 1e-16, 1 - 1e-16, 1e308, float("nan")]
    + [float("inf"), -float("inf"), 2**53, 2**53 + 1, 2**63, 2**64, 10**17, 10**400, -(10**400), 10**4299]
    + ["", "x", "x" * 100, "\ud800", "\0", "é", "1", "true", "dme", "edme", "tally", "huffman", "implied", "certified"]
    + [[], [1], [0, 0], ["a", "a"], ["a", "b"], ["a", 1], [[]], [None], [0.5, 1.5], ["\ud800", "b"], {}, {"a": 1}]
    + [[1e-320, 1e300], list(range(50)), _DEEP]
)


def json_like(sound: Any) -> st.SearchStrategy[bytes]:
    """A JSON text with faults in its values, and sometimes in its bytes."""
    return SEEDS.map(lambda seed: _json(random.Random(seed), sound))


def _json(rng: random.Random, sound: Any) -> bytes:
    value = sound
    for _ in range(rng.randrange(4)):
        value = _twisted(rng, value)
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    if _DEEP in text:
        text = text.replace(f'"{_DEEP}"', _nested(rng.randint(-150, 60), rng.choice(["[]", '{"a":}'])))
    payload = text.encode("utf-8", "surrogatepass")
    return _mutate(rng, [payload]) if rng.random() < 0.2 else payload


def _twisted(rng: random.Random, value: Any) -> Any:
    """The value with one thing in it exchanged, left out or added."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(sorted(value))
        match rng.choice(["deeper", "deeper", "deeper", "drop", "add"]):
            case "deeper":
                return {**value, key: _twisted(rng, value[key])}
            case "drop":
                return {each: kept for each, kept in value.items() if each != key}
            case _:
                return {**value, rng.choice(["more", "", "\ud800", "arms"]): rng.choice(WEIRD)}
    if isinstance(value, list) and value and rng.random() < 0.5:
        place = rng.randrange(len(value))
        return [*value[:place], _twisted(rng, value[place]), *value[place + rng.randrange(2) :]]
    return rng.choice(WEIRD)


def _nested(spare: int, pair: str) -> str:
    """Nested almost as deep as this interpreter can read, or deeper: what can be read need not be possible to show."""
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    levels = max(1, sys.getrecursionlimit() - depth - spare)
    opening, closing = (pair[0], pair[1]) if len(pair) == 2 else (pair[:-1], pair[-1])
    return opening * levels + ("" if len(pair) == 2 else "1") + closing * levels
