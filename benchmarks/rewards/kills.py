"""Sites are killed 100 times at random moments under load: what is reported, and is a reward ever taken for another
decision? JSON to standard output; the seed is fixed, the moments are not.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from typing import Any

from benchmarks.rewards.world import Visit, World, restart, with_world
from outvote.core.messages import Tally
from outvote.demo.users import Browser
from outvote.engine.nats_log import NatsLog
from outvote.log.log import Record
from outvote.log.records import Coder, UpSubject, parse, read_task

SITES = 4
KILLS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
WINDOW = 2.0
BROWSERS = 4
PAUSE = 0.15
"""Mean seconds between two decisions of a browser."""


async def under_load(world: World) -> dict[str, Any]:
    going = True
    sent: list[asyncio.Task[None]] = []

    async def answer(visit: Visit, url: str) -> None:
        """The reward comes after up to half a window, now and then twice; an application repeats what was not taken."""
        await asyncio.sleep(world.rng.random() * WINDOW / 2)
        until = asyncio.get_running_loop().time() + 1.5 * WINDOW
        for again in range(1 + (world.rng.random() < 0.2)):
            while asyncio.get_running_loop().time() < until:
                browser = Browser(url)
                try:
                    await world.reward(browser, visit)
                    break
                except OSError:
                    await asyncio.sleep(0.1 + again)
                finally:
                    browser.close()

    async def browse(site: str) -> None:
        url = world.fleet.edges[site].url("edge")
        browser = Browser(url)
        while going:
            try:
                visit = await world.decide(browser, site)
                if visit.success:
                    sent.append(asyncio.create_task(answer(visit, url)))
            except OSError:  # it was killed
                await asyncio.sleep(0.05)
            await asyncio.sleep(2 * PAUSE * world.rng.random())
        browser.close()

    async def kill(site: str, kills: int) -> None:
        rng = random.SystemRandom()
        for _ in range(kills):
            await asyncio.sleep(1 + 4 * rng.random())
            world.fleet.edges[site].kill()
            await asyncio.sleep(0.5 * rng.random())
            await restart(world, site)
        await asyncio.sleep(2 * WINDOW)

    users = [asyncio.create_task(browse(site)) for site in world.fleet.edges for _ in range(BROWSERS)]
    await asyncio.gather(*(kill(site, KILLS // SITES) for site in world.fleet.edges))
    going = False
    await asyncio.gather(*users)
    await asyncio.gather(*sent)
    reported = await world.reported()
    return {
        "kills": KILLS // SITES * SITES,
        "decisions": sum(map(len, world.visits.values())),
        "answers to rewards": world.answers,
        "means": {
            name: {
                "true": world.means[name],
                "reported": round(successes / trials, 4),
                "of": trials,
                "interval": [round(end, 4) for end in interval],
                "within": interval[0] <= world.means[name] <= interval[1],
            }
            for name, (successes, trials, interval) in reported.items()
        },
        **await compared(world),
    }


async def compared(world: World) -> dict[str, int]:
    """Each message against the decisions of its group. A run that lost a group to a crash may have its number again."""
    sent: dict[tuple[str, int], dict[str, list[Visit]]] = {}
    for site, visits in world.visits.items():
        for visit in visits:
            if visit.ticket != "uncounted":
                run, group, *_ = visit.ticket.split(".")
                sent.setdefault((site, int(group)), {}).setdefault(run, []).append(visit)
    found = {"messages": 0, "taken for another decision": 0, "acknowledged": 0, "acknowledged and not counted": 0}
    for site, number, tally in await messages(world):
        *_, last = sent.get((site, number), {"": []}).values()
        found["messages"] += 1
        found["taken for another decision"] += tally.successes > sum(visit.success for visit in last)
        taken = sum(visit.taken for visit in last)
        found["acknowledged"] += taken
        found["acknowledged and not counted"] += max(taken - tally.successes, 0)
    return found


async def messages(world: World) -> list[tuple[str, int, Tally]]:
    """All messages of the log, read by a connection of our own."""
    records: list[Record] = []
    async with await NatsLog.connect(world.fleet.server.url("nats"), name="measure", patience=30) as log:
        end, done = await log.log_end(), asyncio.Event()

        def take(record: Record) -> None:
            records.append(record)
            if record.sequence >= end:
                done.set()

        await log.follow(take)
        await asyncio.wait_for(done.wait(), 30)
    found, coder = [], None
    for record in records:
        where = parse(record.subject)
        if isinstance(where, UpSubject):
            assert coder is not None
            message = coder.read_up(where, record.payload)
            assert isinstance(message, Tally)
            found.append((where.edge, where.sequence, message))
        elif record.subject.endswith(".task"):
            coder = Coder(read_task(record.payload))
    return found


async def main() -> None:
    means = {"red": 0.2, "green": 0.22, "blue": 0.24}
    print(json.dumps(await with_world(SITES, means, WINDOW, 5, under_load)))


if __name__ == "__main__":
    asyncio.run(main())
