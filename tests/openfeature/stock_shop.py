import os

import httpx
from openfeature.api import get_client, set_provider_and_wait
from openfeature.contrib.provider.ofrep import OFREPProvider

EDGE = os.environ.get("OUTVOTE_EDGE", "http://127.0.0.1:8700")

set_provider_and_wait(OFREPProvider(EDGE))
flags = get_client()


def button() -> tuple[str, str | None]:
    """The variant to show, and the ticket of this decision: keep both until you know what came of it."""
    shown = flags.get_string_details("shop", "green")
    ticket = shown.flag_metadata.get("ticket")  # none, if no edge answered and the default is shown
    return shown.value, None if ticket is None else str(ticket)


def earned(variant: str, ticket: str | None, reward: float) -> None:
    """From 0 to 1; once for each decision."""
    if ticket is not None:
        told = {"variant": variant, "ticket": ticket, "reward": reward}
        httpx.post(f"{EDGE}/v1/tasks/shop/reward", json=told).raise_for_status()
