"""An edge behind FastAPI, written as its documentation teaches: path parameters, pydantic models, a response model."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import FastAPI
from pydantic import BaseModel, Field

from outvote.core.decisions import Ticket
from outvote.edge.site import Edge


class Decision(BaseModel):
    variant: str
    ticket: str


class Reward(BaseModel):
    reward: Annotated[float, Field(ge=0, le=1)]
    ticket: str


def make_app(edge: Edge, arms: Sequence[str]) -> Any:
    app = FastAPI()

    @app.post("/v1/tasks/{task}/decide")
    async def decide(task: str) -> Decision:
        ticket = edge.decide(edge.find(task))
        return Decision(variant=arms[ticket.arm], ticket=str(ticket))

    @app.post("/v1/tasks/{task}/reward", status_code=204)
    async def reward(task: str, body: Reward) -> None:
        edge.reward(edge.find(task), Ticket.parse(body.ticket), body.reward)

    return app
