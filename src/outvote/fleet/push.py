"""Tell the engines what the fleet's accounts say now: whoever is revoked is cut off in that moment."""

from __future__ import annotations

import asyncio
from collections import UserString
from typing import Final

from outvote.access.engine_access import Access
from outvote.engine.accounts import update_accounts
from outvote.engine.connection import EngineUnreachable
from outvote.fleet.folder import Fleet, FleetError
from outvote.fleet.permissions import CLAIMS_UPDATE, SYSTEM

PATIENCE: Final = 5.0
"""Seconds in which an engine must be reached, and all must have answered."""


def push(fleet: Fleet, *, patience: float = PATIENCE) -> list[str]:
    """Return the engines of the fleet once all have confirmed; otherwise say which have."""
    not_told = f"the folder is changed, the engine is not yet told: run `outvote fleet --folder {fleet.folder} push`"
    with fleet.change() as draft:
        state, said, credential = draft.state, draft.all_claims(), draft.system_credential()
    claims = [said[state.account], said[state.log]]  # of those accounts whose users can be revoked
    access = Access(UserString(credential), fleet.folder / "ca.pem")
    try:
        confirmed, refused = asyncio.run(
            update_accounts(
                ",".join(state.nats),
                CLAIMS_UPDATE,
                claims,
                name=SYSTEM,
                engines=len(state.engines),
                access=access,
                patience=patience,
            )
        )
    except EngineUnreachable as error:
        raise FleetError(f"{error}; {not_told}") from None
    if refused:
        raise FleetError(f"the engine {refused[0][0]} refuses what it is told: {refused[0][1]}; {not_told}")
    if len(confirmed) < len(state.engines):
        raise FleetError(
            f"{len(confirmed)} of {len(state.engines)} engines have confirmed ({', '.join(confirmed) or 'none'}): the "
            "others learn it from them when they are back; to be sure, run `outvote fleet push` again then"
        )
    with fleet.change() as draft:
        draft.set(told=max(state.claimed, draft.state.told))
    return confirmed
