"""What the paper ran, as settings: Figures 2 to 6, and what its claims need besides.

Every cell has a name; figures and claims ask for cells by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from outvote.core.errors import InvalidSettings, one_of
from outvote.simulation.settings import Settings, read_settings

FIGURES = (2, 3, 4, 5, 6)
PANELS = {2: (1, "uniform"), 3: (2, "uniform"), 4: (1, "80-20"), 5: (2, "80-20")}
"""Problem and activity of the figures that have a panel over N and a panel over time."""
PLAYERS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
CURVE_PLAYERS = 64
FIGURE_6_PLAYERS = 256
INSTANCES = 8
ACTIVE_PLAYERS = (1, 2, 4, 8, 16, 32, 51, 64, 80, 96, 128, 160, 192, 224, 256)
"""N_γ over which Figure 6 goes; 51 is round(0.2·256), the truth."""
LONG = 30
"""Horizons for the claims about ends are so many times the paper's."""
OVER = 5
"""An overestimated N_γ is looked at over so many times the paper's horizon, too: within it nobody ends an epoch."""
STRICT_EPSILON = 0.15
"""An ε that excludes arms in both problems; the paper's .5 leaves three or ten of ten."""
SPEED_UP_PLAYERS = (4, 16, 64, 256)


@dataclass(frozen=True)
class Study:
    """The options of one reproduction."""

    trials: int = 100
    horizon: int = 1_000_000
    seed: int = 0
    figures: tuple[int, ...] = FIGURES

    def __post_init__(self) -> None:
        for figure in self.figures:
            if figure not in FIGURES:
                raise InvalidSettings(
                    f"must be among {one_of(FIGURES)}, got {figure!r}", field="figures", code="choice"
                )
        self.cell()  # refuses trials, horizon and seed that cannot be

    @property
    def whole(self) -> bool:
        """All figures are drawn, so all claims are judged."""
        return set(self.figures) == set(FIGURES)

    def cells(self) -> dict[str, Settings]:
        """The cells of the chosen figures of the paper, and the claims' own where all figures are chosen."""
        found: dict[str, Settings] = {}
        for figure in self.figures:
            found |= self.figure_6_cells() if figure == 6 else self.panel_cells(*PANELS[figure])
        return found | self.claim_cells() if self.whole else found

    def panel_cells(self, problem: int, activity: str) -> dict[str, Settings]:
        found = self.over_players("dme", problem, activity) | self.over_players("me-local", problem, activity)
        for protocol in ("me-unlimited", "ucb-unlimited"):
            found[shared_name(protocol, problem)] = self.cell(protocol=protocol, problem=problem, grid=200)
        return found

    def over_players(self, protocol: str, problem: int, activity: str) -> dict[str, Settings]:
        """One protocol for every number of players; for one of them there is a curve over time."""
        return {
            panel_name(protocol, problem, activity, players): self.cell(
                protocol=protocol, problem=problem, activity=activity, players=players,
                grid=200 if players == CURVE_PLAYERS else 1,
            )
            for players in PLAYERS
        }  # fmt: skip

    def figure_6_cells(self) -> dict[str, Settings]:
        found = {}
        options = {"activity": "80-20", "players": FIGURE_6_PLAYERS}
        for problem in (1, 2):
            for active in ACTIVE_PLAYERS:
                found[active_name(problem, active)] = self.cell(
                    protocol="dme", problem=problem, active_players=active, **options
                )
            for protocol in ("edme", "me-local"):
                found[panel_name(protocol, problem, "80-20", FIGURE_6_PLAYERS)] = self.cell(
                    protocol=protocol, problem=problem, instances=INSTANCES if protocol == "edme" else None, **options
                )
        return found

    def claim_cells(self) -> dict[str, Settings]:
        """Where the paper's own settings cannot fail or do not reach the end: longer, stricter, over N."""
        found = {}
        long = self.horizon * LONG
        for problem in (1, 2):
            for protocol in ("dme", "edme"):
                found[strict_name(protocol, problem)] = self.cell(
                    protocol=protocol, problem=problem, players=16, epsilon=STRICT_EPSILON, horizon=long,
                    trials=3 * self.trials,
                )  # fmt: skip
        few = max(2, self.trials // 4)  # ends vary little: the intervals stay far narrower than the differences
        for players in SPEED_UP_PLAYERS:
            for protocol in ("dme", "me-local"):
                found[long_name(protocol, players)] = self.cell(
                    protocol=protocol, players=players, horizon=long,
                    trials=self.trials if players == CURVE_PLAYERS else few,
                )  # fmt: skip
        found[long_name("dme", CURVE_PLAYERS, factor=10)] = self.cell(horizon=10 * long)
        for protocol in ("dme", "me-local"):
            found[over_name(protocol)] = self.cell(
                protocol=protocol, activity="80-20", players=FIGURE_6_PLAYERS, active_players=FIGURE_6_PLAYERS,
                horizon=OVER * self.horizon,
            )  # fmt: skip
        found["long 80-20"] = self.cell(activity="80-20", horizon=long)
        found["long edme"] = self.cell(
            protocol="edme", activity="80-20", players=FIGURE_6_PLAYERS, instances=INSTANCES, horizon=long, trials=few
        )
        for instance in range(1, INSTANCES + 1):
            found[f"long instance {instance}"] = self.cell(
                activity="80-20", players=FIGURE_6_PLAYERS, active_players=FIGURE_6_PLAYERS * instance / INSTANCES,
                delta=0.05 / INSTANCES, horizon=long, trials=few,
            )  # fmt: skip
        return found

    def cell(self, **options: object) -> Settings:
        chosen: dict[str, object] = {
            "protocol": "dme", "problem": 1, "players": CURVE_PLAYERS, "grid": 1,
            "horizon": self.horizon, "trials": self.trials, "seed": self.seed,
        }  # fmt: skip
        return read_settings(**{**chosen, **options})  # type: ignore[arg-type]  # read_settings checks all of them


def panel_name(protocol: str, problem: int, activity: str, players: int) -> str:
    """What is shared without limit depends on neither activity nor players."""
    if protocol.endswith("unlimited"):
        return shared_name(protocol, problem)
    return f"{protocol}, problem {problem}, {activity}, {players} players"


def shared_name(protocol: str, problem: int) -> str:
    return f"{protocol}, problem {problem}"


def active_name(problem: int, active: float) -> str:
    return f"dme, problem {problem}, 80-20, {FIGURE_6_PLAYERS} players, N_γ {active:g}"


def strict_name(protocol: str, problem: int) -> str:
    return f"{protocol}, problem {problem}, ε {STRICT_EPSILON}"


def long_name(protocol: str, players: int, factor: int = 1) -> str:
    return f"{protocol}, {players} players, {LONG * factor} times the horizon"


def over_name(protocol: str) -> str:
    return f"{protocol}, N_γ {FIGURE_6_PLAYERS}, {OVER} times the horizon"


def read_figures(chosen: Iterable[float]) -> tuple[int, ...]:
    """Figures as the command line names them."""
    return tuple(sorted({int(figure) if figure == figure // 1 else figure for figure in chosen}))  # type: ignore[misc]
