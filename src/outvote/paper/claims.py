"""Every statement of the paper that can be measured, in the paper's order.

A verdict comes from the measurement; its `why` says by which rule.
"""

from __future__ import annotations

from outvote.paper import claims_experiments as seen
from outvote.paper import claims_theory as theory
from outvote.paper.study import Study
from outvote.paper.verdicts import Claim, Results

STATEMENTS = (
    ("lemma-1", "Lemma 1", "DME finds an ε-approximation of the best arm with probability at least 1 − δ", theory.lemma_1),
    ("lemma-1-strict", "Lemma 1, Theorem 4", "the same where ε excludes arms", theory.lemma_1_strict),
    ("algorithm-1", "Algorithm 1", "the task ends with ε-approximations only, at every player", theory.algorithm_1_stop),
    ("lemma-2", "Lemma 2", "DME stops having transmitted 2N(K−1)⌈log₂K⌉ bits", theory.lemma_2),
    ("bits-4736", "Discussion", "64 players transmit 4736 bits", theory.printed_4736),
    ("bits-unlimited", "Discussion", "unlimited communication costs 2.56·10⁸ bits", theory.unlimited_bits),
    ("bits-million", "Discussion", "DME needs 10⁶ times fewer bits", theory.million_times_fewer),
    ("bits-horizon", "Discussion", "the cost of DME does not depend on the time horizon", theory.bits_and_horizon),
    ("lemma-3", "Lemma 3", "a player needs O(K/(ε²N_γ)·ln(K/δ)) pulls: they fall as 1/N_γ", theory.lemma_3),
    ("theorem-2", "Theorem 2", "the speed-up is at least of order N/(1 + ln K)", theory.theorem_2),
    ("theorem-3", "Theorem 3", "DME ends within O((K/(ε²γN_γ) + √(K/(ε²N_γ)))·ln(KN_γ/δ)) draws", theory.theorem_3),
    ("theorem-4", "Theorem 4", "Extended DME ends within the draws of its best instance", theory.theorem_4),
    (
        "figure-2a-unlimited", "Figures 2a, 3a",
        "whatever the number of players, DME is behind Median Elimination with unlimited communication", seen.behind_unlimited,
    ),
    (
        "figure-2a-1024", "Figures 2a, 3a", "with 1024 players neither DME nor players alone end epoch 1", seen.nothing_at_1024
    ),
    (
        "figure-2a-local", "Figures 2a, 3a",
        "for fewer than 1024 players DME clearly outperforms Median Elimination on each player", seen.ahead_of_local,
    ),
    (
        "figure-2b-local", "Figures 2b, 3b",
        "with 64 players DME significantly outperforms Median Elimination on each player on both problems", seen.ahead_at_64,
    ),
    ("figure-2b-ucb", "Figure 2b", "UCB clearly outperforms Median Elimination on Problem 1", seen.ucb_far_ahead),
    ("figure-3b-ucb", "Figure 3b", "the difference between UCB and Median Elimination is small on Problem 2", seen.ucb_near),
    (
        "figure-4-unlimited", "Figures 4, 5",
        "when players are not uniform the gap to unlimited Median Elimination is reduced", seen.gap_to_unlimited,
    ),
    (
        "figure-4-local", "Figures 4, 5",
        "when players are not uniform the gap to Median Elimination on each player is increased", seen.gap_to_local,
    ),
    ("figure-6-range", "Figure 6", "DME outperforms players alone for a wide range of N_γ", seen.wide_range),
    ("figure-6-over", "Figure 6", "when N_γ is overestimated DME can be worse than players alone", seen.overestimated),
    (
        "figure-6-extended", "Figure 6",
        "Extended DME obtains the result of the best instance and significantly outperforms players alone",
        seen.extended_equals_best,
    ),
    ("bits-9472", "Discussion", "256 players transmit 9472 bits", theory.printed_9472),
    ("bits-75776", "Discussion", "256 players with 8 instances transmit 75776 bits", theory.printed_75776),
)  # fmt: skip
"""Name, place and words of each, and what judges it."""


def judge_all(study: Study, results: Results) -> list[Claim]:
    """All claims, in the paper's order."""
    found = []
    for name, place, text, judge in STATEMENTS:
        measured, verdict, why = judge(study, results)
        found.append(Claim(name, place, text, measured.value, measured.low, measured.high, verdict, why))
    return found
