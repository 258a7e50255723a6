import os

import httpx
from openfeature.api import get_client, set_provider_and_wait
from openfeature.contrib.provider.ofrep import OFREPProvider

EDGE = os.environ.get("OUTVOTE_EDGE", "http://127.0.0.1:8700")

set_provider_and_wait(OFREPProvider(EDGE))
flags = get_client()
edge = httpx.Client(base_url=EDGE)


def button() -> tuple[str, str]:
    """The variant to show, and the ticket of this decision: keep it until you know what came of it."""
    shown = flags.get_string_details("shop", "green")
    return shown.value, str(shown.flag_metadata.get("ticket", "uncounted"))  # none, if no edge answered


def earned(ticket: str, reward: float) -> None:
    """What it earned, from 0 to 1; it may be sent again."""
    if ticket != "uncounted":
        edge.post("/v1/tasks/shop/reward", json={"ticket": ticket, "reward": reward}).raise_for_status()
