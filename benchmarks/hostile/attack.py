"""Attackers in a process of their own, as a program: reads what to do as lines of JSON, and tells when it is done."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any

import uvloop

from benchmarks.hostile.attackers import Attack, attacking, attacks
from benchmarks.network.processes import allow_connections, answer_lines, say_json


async def play(asked: dict[str, Any]) -> dict[str, Any]:
    """One attack for so many seconds; how many connections there were, and how many were left at its end."""
    found = {attack.name: attack for attack in attacks(asked["path"], asked["posts_to"])}
    attack = found.get(asked["attack"]) or Attack(asked["attack"], b"", clients=asked["clients"])
    context = ssl.create_default_context(cafile=asked["ca"]) if asked["ca"] else None
    async with attacking(asked["port"], attack, context=context, clients=asked["clients"]) as attackers:
        say_json({"connected": len(attackers)})
        await asyncio.sleep(asked["seconds"])
        left = sum(not attacker.is_closed for attacker in attackers)
    return {"left": left}


async def work() -> None:
    allow_connections(10_000)
    await answer_lines(play)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(work())
