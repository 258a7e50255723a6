"""Ask a server that what an edge has sent counts no more, as the operator's kit allows."""

from __future__ import annotations

import json
import ssl
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from outvote.fleet.errors import FleetError
from outvote.network.kits import read_operator_kit
from outvote.network.tokens import read_secret

PATIENCE: Final = 15.0
"""Seconds that an answer may take."""


def discount(folder: Path, edge: str) -> dict[str, Any]:
    """What the server of the operator's kit in `folder` says."""
    kit = read_operator_kit(folder)
    context = ssl.create_default_context(cafile=str(kit.ca))
    request = Request(
        f"{kit.server}/v1/edges/{edge}/discount",
        data=b"",
        method="POST",
        headers={"Authorization": f"Bearer {read_secret(kit.token)}", "Content-Type": "application/json"},
    )
    again = f"it is revoked, and what it has sent still counts: ask again with `outvote fleet revoke {edge} --discount`"
    try:
        with build_opener(ProxyHandler({}), HTTPSHandler(context=context)).open(request, timeout=PATIENCE) as response:
            found: dict[str, Any] = json.loads(response.read() or b"{}")
            return found
    except HTTPError as error:
        with error:
            detail = _detail(error)
        if error.code == 404 and detail.startswith("unknown edge"):  # it never sent anything
            return {"edge": edge, "tasks": []}
        raise FleetError(f"the server at {kit.server} refuses: {detail}; {again}") from None
    except (URLError, OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise FleetError(f"no server answers at {kit.server}: {reason}; {again}") from None


def _detail(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read())["detail"])
    except (ValueError, KeyError, TypeError):
        return f"it says {error.code}"
