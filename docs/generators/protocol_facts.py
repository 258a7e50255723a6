"""Facts about the protocols: their names, the states of an arm, what a player needs."""

from __future__ import annotations

from outvote.core.protocols import REGISTRY
from outvote.core.votes.player import ARM_TRANSITIONS
from outvote.core.votes.schedule import Schedule, paper_log_eta
from outvote.simulation.registry import BASELINES


def arm_states() -> str:
    """The states of one arm in one instance of one player, as a diagram of text: it looks the same everywhere."""
    width = max(len(event) for _, event in ARM_TRANSITIONS)
    states = list(dict.fromkeys([*(state for state, _ in ARM_TRANSITIONS), *ARM_TRANSITIONS.values()]))
    lines = []
    for number, state in enumerate(states):
        moves = [(event, after) for (before, event), after in ARM_TRANSITIONS.items() if before == state]
        lines.append(("" if number else "start ─▶ ") + state + ("" if moves else ": the end"))
        for place, (event, after) in enumerate(moves, 1):
            corner = "└" if place == len(moves) else "├"
            lines.append(f"  {corner}─ {event} {'─' * (width - len(event))}─▶ {after}")
    return "\n".join(["```", *lines, "```"])


def pulls_per_player() -> str:
    """What one player needs with the paper's constants: K = 10, ε = .5, δ = .05, epochs of 10, 5, 3 and 2 arms."""
    columns = [("1, alone (η = δ)", 2.0), *((f"{n:,}", float(n)) for n in (4, 16, 64, 256, 1024))]
    schedules = [Schedule(10, 0.5, paper_log_eta(0.05, active)) for _, active in columns]
    first = [schedule.pulls(1) for schedule in schedules]
    total = [sum(arms * schedule.pulls(epoch) for epoch, arms in enumerate((10, 5, 3, 2), 1)) for schedule in schedules]
    rows = [
        ["N = N_γ", *(name for name, _ in columns)],
        ["---"] + ["---:"] * len(columns),
        ["pulls of each arm in epoch 1", *(f"{pulls:,}" for pulls in first)],
        ["pulls of all arms in all epochs", *(f"{pulls:,}" for pulls in total)],
        ["times fewer than alone", *(f"{total[0] / pulls:.2f}" for pulls in total)],
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def protocol_names() -> str:
    """Every protocol and baseline that `outvote simulate` runs."""
    names = {name: entry.summary for name, entry in (REGISTRY | BASELINES).items()}
    return "\n".join(
        ["| name | what it is |", "|---|---|", *(f"| `{name}` | {what} |" for name, what in names.items())]
    )
