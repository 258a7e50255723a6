"""Sends new account claims to all engines and waits for each to acknowledge."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from outvote.access.engine_access import Access
from outvote.engine.connection import Connection, EngineUnreachable


async def update_accounts(
    urls: str, subject: str, claims: Sequence[str], *, name: str, engines: int, access: Access, patience: float
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the names of engines that accepted all claims, and each refusal as engine name and reason."""
    client = Connection()
    await client.open(urls, name=name, patience=patience, access=access, again=lambda: None)
    taken: Counter[str] = Counter()
    refused: list[tuple[str, str]] = []
    complete = asyncio.Event()

    async def take(message: Msg) -> None:
        name, problem = _read(message.data)
        if problem is None:
            taken[name] += 1
        else:
            refused.append((name, problem))
        if taken.total() + len(refused) >= engines * len(claims):
            complete.set()

    try:
        inbox = client.new_inbox()
        await client.subscribe(inbox, cb=take)
        for claim in claims:
            await client.publish(subject, claim.encode(), reply=inbox)
        await client.flush()
        with suppress(TimeoutError):
            await asyncio.wait_for(complete.wait(), patience)
    except (NatsError, OSError) as error:
        raise EngineUnreachable(f"the engine has ended the connection: {error}") from None
    finally:
        with suppress(NatsError, OSError):
            await client.end()
    return sorted(name for name, count in taken.items() if count == len(claims)), refused


def _read(content: bytes) -> tuple[str, str | None]:
    """Return the name of the answering engine, and its reason if it refused."""
    try:
        answer: dict[str, Any] = json.loads(content)
        name = str(answer["server"]["name"])
        if "data" in answer and answer["data"].get("code") == 200:
            return name, None
        return name, str(answer.get("error") or answer.get("data"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return "at one address", "it speaks another language"
