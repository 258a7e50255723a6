"""A shop with one page and one green button."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

PAGE = """<!doctype html><title>Mugs</title><h1>One good mug</h1>
<form method="post" action="/buy"><button style="background: {colour}">Buy</button></form>"""


async def show(request: Request) -> HTMLResponse:
    return HTMLResponse(PAGE.format(colour="green"))


async def buy(request: Request) -> HTMLResponse:
    return HTMLResponse("Thank you.")


app = Starlette(routes=[Route("/", show), Route("/buy", buy, methods=["POST"])])
