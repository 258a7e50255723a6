"""An edge behind FastAPI, written as its documentation teaches: path parameters, pydantic models, a response model."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import FastAPI
from pydantic import BaseModel, Field

from outvote.edge.site import Edge


class Decision(BaseModel):
    variant: str
    ticket: str


class Reward(BaseModel):
    variant: str
    reward: Annotated[float, Field(ge=0, le=1)]
    ticket: str


def make_app(edge: Edge, arms: Sequence[str]) -> Any:
    app = FastAPI()
    indices = {arm: index for index, arm in enumerate(arms)}

    @app.post("/v1/tasks/{task}/decide")
    async def decide(task: str) -> Decision:
        index, ticket = edge.decide(edge.find(task))
        return Decision(variant=arms[index], ticket=str(ticket))

    @app.post("/v1/tasks/{task}/reward", status_code=204)
    async def reward(task: str, body: Reward) -> None:
        edge.reward(edge.find(task), indices[body.variant], body.reward, int(body.ticket))

    return app
