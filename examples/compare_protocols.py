"""All protocols and baselines on your own means, sites and activity: what they cost in regret, draws and bits.

    python examples/compare_protocols.py
    python examples/compare_protocols.py --means .3,.25,.1 --players 200 --activity 80-20 --horizon 3e5
    python examples/compare_protocols.py --protocols tally,ucb-unlimited --activity 3,1,1,1 --players 4

It prints a table, and draws the regret of each with its 95 % confidence band. It needs outvote's extra `sim`.
"""

import argparse
from pathlib import Path

from matplotlib.figure import Figure

from outvote import OutvoteError, Result, simulate

COLOURS = {
    "tally": "#D55E00",
    "dme": "#0072B2",
    "edme": "#009E73",
    "me-local": "#E69F00",
    "me-unlimited": "#CC79A7",
    "ucb-unlimited": "#000000",
}
FIRST_DRAW = 100  # where the picture's logarithmic axis begins


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--means", default=".7,.5,.3,.1,.1,.1", help="mean reward of each arm (%(default)s)")
    parser.add_argument("--players", type=int, default=32, help="sites (%(default)s)")
    parser.add_argument("--activity", default="uniform", help="uniform, 80-20, weights or a trace file (%(default)s)")
    parser.add_argument("--epsilon", type=float, default=0.5, help="for what votes; tally finds the best (%(default)s)")
    parser.add_argument("--horizon", type=float, default=1e6, help="draws of a trial (%(default)g)")
    parser.add_argument("--trials", type=int, default=20, help="trials of each protocol (%(default)s)")
    parser.add_argument("--protocols", default=",".join(COLOURS), help="which to compare (all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path, default=Path("compare_protocols.png"), help="the picture (%(default)s)")
    options = parser.parse_args()
    if not options.plot.absolute().parent.is_dir():
        parser.error(f"--plot must be in a folder that exists, got {options.plot}")
    try:
        means = [float(mean) for mean in options.means.split(",")]
    except ValueError:
        parser.error(f"--means must be numbers like .7,.5,.3, got {options.means!r}")

    results = []
    for protocol in options.protocols.split(","):
        try:
            result = simulate(
                protocol=protocol,
                means=means,
                players=options.players,
                activity=options.activity,
                epsilon=None if protocol == "tally" else options.epsilon,
                horizon=options.horizon,
                trials=options.trials,
                seed=options.seed,
                grid=2000,
            )
        except OutvoteError as error:
            parser.error(str(error))
        results.append(result)

    print_table(results)
    draw(results, options.plot)
    print(f"picture: {options.plot}")


def print_table(results: list[Result]) -> None:
    first = results[0]
    print(f"{len(first.arms)} arms of means {', '.join(f'{mean:g}' for mean in first.means or ())}; ", end="")
    print(f"{first.players} sites ({first.activity}); {first.trials} trials of {first.horizon:,} draws")
    print(f"{'protocol':14} {'regret at the end':>20} {'one arm left at draw':>21} {'it is the best':>15} {'bits':>16}")
    for result in results:
        low, high = result.regret.low[-1], result.regret.high[-1]
        width = "" if low is None or high is None else f" ± {(high - low) / 2:,.0f}"
        when = "never" if result.finished.mean is None else f"{result.finished.mean:,.0f}"
        if 0 < result.finished.share < 1:
            when += f" ({result.finished.share:.0%})"
        best = "-" if result.finished.mean is None else f"{result.best:.0%}"
        regret = f"{result.regret.mean[-1]:,.0f}{width}"
        print(f"{result.protocol:14} {regret:>20} {when:>21} {best:>15} {result.bits.total:>16,.0f}")
    cheapest = min(results, key=lambda result: result.regret.mean[-1])
    print(f"The least regret: {cheapest.protocol}, at {cheapest.bits.total / cheapest.horizon:.3g} bits a draw.")


def draw(results: list[Result], path: Path) -> None:
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for result in results:
        colour = COLOURS[result.protocol]
        label = f"{result.protocol}: {result.bits.total:,.0f} bits"
        style = "--" if result.protocol == "me-local" else "-"  # until the others decide they share its line
        axes.plot(result.draws, result.regret.mean, style, color=colour, label=label)
        if result.trials > 1:
            low, high = ([value or 0.0 for value in side] for side in (result.regret.low, result.regret.high))
            axes.fill_between(result.draws, low, high, color=colour, alpha=0.2, lw=0)
    first = results[0]
    axes.set(xscale="log", yscale="log", xlabel="draws (events of all sites)", ylabel="regret (rewards missed)")
    axes.set_xlim(min(max(FIRST_DRAW, first.draws[0]), first.horizon / 2), first.horizon)
    axes.set_title(
        f"{len(first.arms)} arms, {first.players} sites ({first.activity}); "
        f"means of {first.trials} trials, bands: 95 % confidence",
        loc="left",
        fontsize="medium",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2)
    axes.legend(loc="upper left", frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
