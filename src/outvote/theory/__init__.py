"""Lemmas and theorems as functions, each with its place: the paper's, ours, and what the field knows. Never big-O.

`lemmas` has the paper's statements, as printed and as they are; `accuracy` what is guaranteed really; `identification`
what nobody can do without; `liars` what sites that lie can do.
"""

from outvote.theory.accuracy import (
    accurate_fleet_error,
    answer_within,
    error_when_separated,
    inaccuracy,
    inaccuracy_limit,
    split_fleet_error,
)
from outvote.theory.identification import identification_bound
from outvote.theory.lemmas import (
    candidates_by_epoch,
    draws_bound,
    draws_within,
    lemma_3_printed,
    proposition_1,
    pulls_alone,
    pulls_per_player,
    theorem_2_printed,
)
from outvote.theory.liars import claims_to_refute, liars_to_eliminate, most_tolerated

__all__ = [
    "accurate_fleet_error",
    "answer_within",
    "candidates_by_epoch",
    "claims_to_refute",
    "draws_bound",
    "draws_within",
    "error_when_separated",
    "identification_bound",
    "inaccuracy",
    "inaccuracy_limit",
    "lemma_3_printed",
    "liars_to_eliminate",
    "most_tolerated",
    "proposition_1",
    "pulls_alone",
    "pulls_per_player",
    "split_fleet_error",
    "theorem_2_printed",
]
