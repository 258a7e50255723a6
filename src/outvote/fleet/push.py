"""Tell the engines what the fleet's accounts say now: whoever is revoked is cut off in that moment.

Only this module of the fleet talks to NATS.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, UserString
from contextlib import suppress
from typing import Any, Final

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from outvote.fleet.errors import FleetError
from outvote.fleet.folder import Fleet
from outvote.fleet.permissions import CLAIMS_UPDATE, SYSTEM
from outvote.fleet.state import FleetFile
from outvote.network.access import Access
from outvote.network.connection import Connection, LinkError

PATIENCE: Final = 5.0
"""Seconds in which an engine must be reached, and all must have answered."""
NOT_TOLD: Final = "the folder is changed, the engine is not yet told: run `outvote fleet push`"


def push(fleet: Fleet, *, patience: float = PATIENCE) -> list[str]:
    """Return the engines of the fleet once all have confirmed; otherwise say which have."""
    with fleet.change() as draft:
        state, said, credential = draft.state, draft.all_claims(), draft.system_credential()
    claims = [said[state.account], said[state.log]]  # of those accounts whose users can be revoked
    access = Access(UserString(credential), fleet.folder / "ca.pem")
    confirmed, refused = asyncio.run(_tell(state, claims, access, patience))
    if refused:
        raise FleetError(f"the engine {refused[0][0]} refuses what it is told: {refused[0][1]}; {NOT_TOLD}")
    if len(confirmed) < len(state.engines):
        raise FleetError(
            f"{len(confirmed)} of {len(state.engines)} engines have confirmed ({', '.join(confirmed) or 'none'}): the "
            "others learn it from them when they are back; to be sure, run `outvote fleet push` again then"
        )
    with fleet.change() as draft:
        draft.set(told=max(state.claimed, draft.state.told))
    return confirmed


async def _tell(
    state: FleetFile, claims: list[str], access: Access, patience: float
) -> tuple[list[str], list[tuple[str, str]]]:
    """The names of engines that took all claims, and of those that did not take some, with the reason."""
    client = Connection()
    try:
        await client.open(",".join(state.nats), name=SYSTEM, patience=patience, access=access, again=lambda: None)
    except LinkError as error:
        raise FleetError(f"{error}; {NOT_TOLD}") from None
    taken: Counter[str] = Counter()
    refused: list[tuple[str, str]] = []
    complete = asyncio.Event()

    async def take(message: Msg) -> None:
        name, problem = _read(message.data)
        if problem is None:
            taken[name] += 1
        else:
            refused.append((name, problem))
        if taken.total() + len(refused) >= len(state.engines) * len(claims):
            complete.set()

    try:
        inbox = client.new_inbox()
        await client.subscribe(inbox, cb=take)
        for each in claims:
            await client.publish(CLAIMS_UPDATE, each.encode(), reply=inbox)
        await client.flush()
        with suppress(TimeoutError):
            await asyncio.wait_for(complete.wait(), patience)
    except (NatsError, OSError) as error:
        raise FleetError(f"the engine has ended the connection: {error}; {NOT_TOLD}") from None
    finally:
        with suppress(NatsError, OSError):
            await client.end()
    return sorted(name for name, count in taken.items() if count == len(claims)), refused


def _read(content: bytes) -> tuple[str, str | None]:
    """Which engine answers, and its objection."""
    try:
        answer: dict[str, Any] = json.loads(content)
        name = str(answer["server"]["name"])
        if "data" in answer and answer["data"].get("code") == 200:
            return name, None
        return name, str(answer.get("error") or answer.get("data"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return "at one address", "it speaks another language"
