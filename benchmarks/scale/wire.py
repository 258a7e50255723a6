"""What a message, a piece of news and a question cost on the wire and a server: measured on a real engine, one by one.

Bytes are those that Linux counted on the socket, with the headers of TCP and IP, both ways.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.timing import say
from outvote.core.task import Task
from outvote.engine.nats_log import NatsLog
from outvote.engine.process import Engine
from outvote.log.catch_up import SKIP_ELIMINATIONS, Question
from outvote.log.log_state import TaskState
from outvote.log.records import DownSubject, UpSubject
from outvote.server.sync_server import SyncServer

MESSAGES = 2_000
QUESTIONS = 40
HOSTED = 10
OTHERS = (0, 100, 1_000, 10_000)
"""Tasks that are there and are not for the edge that asks."""
PAYLOAD = b"\x58"


def measure(*, quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="outvote-bench-") as folder, Engine(Path(folder), port=0) as engine:
        return asyncio.run(play(engine.url, 5 if quick else 1))


async def play(url: str, less: int) -> dict[str, Any]:
    server_link = await NatsLog.connect(url, name="server", patience=10)
    server = SyncServer(server_link)
    await server.start()
    async with (
        await NatsLog.connect(url, name="edge-123456", patience=10) as edge,
        await NatsLog.connect(url, name="edge-654321", patience=10) as other,
    ):
        heard: list[str] = []
        await other.listen(lambda subject, _: heard.append(subject))
        count = MESSAGES // less
        before = edge.figures().wire_bytes
        for number in range(count):
            where = UpSubject("edge-123456", "spring-sale-0123abcd", "0123456789abcdef", number)
            await edge.append(str(where), PAYLOAD)
        up = (edge.figures().wire_bytes - before) / count
        say("scale: bytes of a message are measured")
        before = other.figures().wire_bytes
        for number in range(count // 4):
            await edge.append(str(DownSubject("spring-sale-0123abcd", "elim", number)), PAYLOAD)
        while len(heard) < count // 4:
            await asyncio.sleep(0.01)
        down = (other.figures().wire_bytes - before) / (count // 4)
        say("scale: bytes of news are measured")
        asked = [await ask(server, edge, others, QUESTIONS // less or 1) for others in OTHERS]
    await server.stop()
    return {"message_bytes": up, "news_bytes": down, "hosted": HOSTED, "questions": asked}


async def ask(server: SyncServer, edge: NatsLog, others: int, count: int) -> dict[str, Any]:
    """An edge that knows all there is asks again, as it does most of the time."""
    tasks = server.state.tasks
    tasks.clear()
    for number in range(HOSTED + others):
        players = ["edge-123456", "edge-7"] if number < HOSTED else ["edge-7", "edge-8"]
        name = f"task-{number:05}"
        described = Task(arms=4, players=players, epsilon=0, delta=0.05, protocol="tally", name=name)
        tasks[f"{name}-0123abcd"] = TaskState(f"{name}-0123abcd", described)
    known = {task_id: 0 if number < HOSTED else SKIP_ELIMINATIONS for number, task_id in enumerate(tasks)}
    question = Question("0123456789abcdef", known)
    await edge.ask("edge-123456", question)
    before, cpu = edge.figures().wire_bytes, time.process_time()
    for _ in range(count):
        answer = await edge.ask("edge-123456", question)
        assert answer is not None
        assert not answer.more
    found = {
        "others": others,
        "bytes": (edge.figures().wire_bytes - before) / count,
        "cpu_ms": (time.process_time() - cpu) / count * 1e3,
    }
    say(f"scale: a question with {others:,} tasks of others: {found['bytes']:,.0f} bytes, {found['cpu_ms']:.2f} ms")
    return found
