"""Ask a server that what an edge has sent counts no more, as the operator's kit allows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from outvote.fleet.errors import FleetError
from outvote.network.kits import read_operator_kit
from outvote.network.operator_request import NoAnswer, send
from outvote.network.tls import client_context
from outvote.network.tokens import read_secret


def discount(folder: Path, edge: str) -> dict[str, Any]:
    """What the server of the operator's kit in `folder` says."""
    kit = read_operator_kit(folder)
    path, token = f"/v1/edges/{edge}/discount", read_secret(kit.token)
    again = f"it is revoked, and what it has sent still counts: ask again with `outvote fleet revoke {edge} --discount`"
    try:
        status, body = send(kit.server, "POST", path, token=token, context=client_context(kit.ca))
    except NoAnswer as error:
        raise FleetError(f"no server answers at {kit.server}: {error}; {again}") from None
    answer = _object(body)
    if 200 <= status < 300 and answer is not None:
        return answer
    detail = str((answer or {}).get("detail", f"it says {status}"))
    if status == 404 and detail.startswith("unknown edge"):  # it never sent anything
        return {"edge": edge, "tasks": []}
    raise FleetError(f"the server at {kit.server} refuses: {detail}; {again}")


def _object(body: bytes) -> dict[str, Any] | None:
    """The JSON object of an answer; None if it is something else."""
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
