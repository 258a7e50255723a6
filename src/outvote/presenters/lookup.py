"""Finds the presenter of a protocol."""

from __future__ import annotations

from typing import Final

from outvote.presenters.presenter import Presenter
from outvote.presenters.tally import TallyPresenter
from outvote.presenters.votes import VotesPresenter

PRESENTERS: Final[dict[str, Presenter]] = {
    "tally": TallyPresenter(),
    "dme": VotesPresenter("votes only, as in the paper", "Lemma 2", has_instances=False),
    "edme": VotesPresenter("votes, when activity is unknown", "Theorem 4", has_instances=True),
}
_PLAIN: Final = Presenter()


def presenter(protocol: str) -> Presenter:
    """Return the presenter of a protocol; a plain one if it has none of its own."""
    return PRESENTERS.get(protocol, _PLAIN)
