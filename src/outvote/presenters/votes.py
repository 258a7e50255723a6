"""What people are told of votes: the paper's protocols, `dme` and `edme`."""

from __future__ import annotations

from typing import Any, cast

from outvote.core.codes import Codebook, fixed_width
from outvote.core.ledger import bits_bound
from outvote.core.task import Task
from outvote.core.votes.server import VoteServer
from outvote.log.log_state import TaskState
from outvote.presenters.formats import count
from outvote.presenters.presenter import ABOUT_ITSELF, Presenter, Scenario


def _server(state: TaskState) -> VoteServer:
    return cast(VoteServer, state.server)


class VotesPresenter(Presenter):
    """Votes to drop a variant, counted against a quorum. They tell no count, no reward and no mean."""

    says = "“I would drop this one”"
    messages = "votes"
    variants_part = "variants_votes.html"
    figures = ("votes",)
    silence = "votes do not tell"
    bound_is = "the paper's bound is"
    # The paper's schedule goes with 1/ε²: at .95 with 4 arms a site needs some 2,000 events, at .5 with 10 arms 60,000.
    demo = Scenario((0.8, 0.55, 0.1), variants=4, pace=3000, epsilon=0.95)
    # What is audited is what the fleet says, not whether it is right: a smaller δ would take many more events.
    audit = Scenario((0.9, 0.5, 0.1), variants=3, pace=1500, epsilon=0.99, delta=0.9)

    def __init__(self, offer: str, theorem: str, *, has_instances: bool) -> None:
        self.offer = offer
        self._theorem = theorem
        self._has_instances = has_instances

    def variant(self, state: TaskState, arm: int) -> dict[str, Any]:
        server = _server(state)
        return {"votes": tuple(server.votes(arm, instance) for instance in range(len(state.task.instances)))}

    def votes_needed(self, task: Task) -> tuple[int, ...]:
        return task.quorums

    def promise(self, task: Task) -> str:
        if task.quorum != "paper":
            return super().promise(task)
        good = f"it is within {task.epsilon:g} of the best"
        return f"{good}, by the paper with probability {1 - task.delta:g}, though its proof has a gap"

    def bits_bound(self, state: TaskState) -> tuple[int, str]:
        bound, most = bits_bound(state.task), most_bits(state.task)
        if most > bound:
            why = f"the most that the whole task can cost, which is more than the paper's bound of {count(bound)}"
            return most, f"{why} ({self._theorem})"
        return bound, f"the paper's bound for the whole task ({self._theorem})"

    def eavesdropped(self, state: TaskState) -> list[str]:
        instances = len(state.task.instances)
        which = "" if instances == 1 else f" in one of {instances} instances"
        return [
            f"Each says that one site would drop one variant{which}. No count, no reward and no mean was sent: of no "
            "single event is it known what it earned."
        ]

    def left_a_site(self, task: Task) -> str:
        which = f", in which of {len(task.instances)} instances" if self._has_instances else ""
        width = fixed_width(len(task.arms)) + fixed_width(len(task.instances))
        told = f"which variants it would drop{which} ({width} bits each), {ABOUT_ITSELF}."
        return f"{told} No count, no reward, no event, no user."

    def task_options(self, sites: int) -> dict[str, Any]:
        return {"instances": min(4, sites)} if self._has_instances else {}


def most_bits(task: Task) -> int:
    """Return the most bits that a task of votes can cost: the bound of Lemma 2 or Theorem 4, or more with longer codes.

    The theorem omits the bits that name the instance, and the longest Huffman codewords are longer than ⌈log₂K⌉.
    """
    book = Codebook(task)
    longest = max(len(word) for word in book.arm_words)
    votes = task.players * (len(task.arms) - 1)
    up = votes * len(task.instances) * (longest + book.instance_bits)
    return max(bits_bound(task), up + votes * longest)
