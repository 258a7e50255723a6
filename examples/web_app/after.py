"""The same shop: Outvote finds the colour of its button."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from outvote.client import AsyncClient, Decision

PAGE = """<!doctype html><title>Mugs</title><h1>One good mug</h1>
<form method="post" action="/buy?view={view}"><button style="background: {colour}">Buy</button></form>"""

outvote = AsyncClient("http://127.0.0.1:8700")
views: dict[str, Decision] = {}  # pages that were shown


async def show(request: Request) -> HTMLResponse:
    decision = await outvote.decide("button", fallback="green")
    view = secrets.token_urlsafe(8)
    views[view] = decision
    if len(views) > 10_000:
        del views[next(iter(views))]  # the oldest
    return HTMLResponse(PAGE.format(view=view, colour=decision.variant))


async def buy(request: Request) -> HTMLResponse:
    decision = views.get(request.query_params.get("view", ""))
    if decision is not None:
        await outvote.reward(decision, 1, strict=False)
    return HTMLResponse("Thank you.")


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with outvote:
        yield


app = Starlette(routes=[Route("/", show), Route("/buy", buy, methods=["POST"])], lifespan=lifespan)
