"""`outvote paper`: rerun the paper's experiments."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.cli.options import add_json, add_workers, write_result
from outvote.presenters.task_fields import numbers
from outvote.quantities import number

if TYPE_CHECKING:
    from outvote.paper.verdicts import Claim

EXAMPLE = """\
examples:
  outvote paper --out paper
  outvote paper --out quick --trials 5 --figures 2,6
"""


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "paper",
        help="rerun the paper's experiments, with a verdict on each claim",
        description="Rerun the paper's Figures 2 to 6 with confidence bands, and judge each of its claims: pictures, "
        "CSV, claims.json and report.html in one folder.",
        epilog=EXAMPLE,
    )
    parser.add_argument("--out", type=Path, default=Path("paper"), help="the folder to write to (paper)")
    parser.add_argument("--figures", type=numbers, default=[2, 3, 4, 5, 6], help="which figures, like 2,6 (all)")
    parser.add_argument("--trials", type=number, default=100, help="trials for each point (100)")
    parser.add_argument("--horizon", type=number, default=1_000_000, help="draws of a trial (1e6)")
    parser.add_argument("--seed", type=number, default=0, help="seed of all randomness (0)")
    parser.add_argument("--resume", action="store_true", help="go on where an interrupted run left off")
    add_workers(parser)
    add_json(parser)
    parser.set_defaults(run=run, when_interrupted="what is finished is kept: go on with --resume")


def run(args: argparse.Namespace) -> int:
    from outvote.cli.progress import trials_bar
    from outvote.paper.build import all_cells, build, prepare
    from outvote.paper.study import Study, read_figures
    from outvote.simulation.executors import cores, open_executor

    study = Study(trials=args.trials, horizon=args.horizon, seed=args.seed, figures=read_figures(args.figures))
    prepare(args.out, resume=args.resume)
    total = sum(cell.trials for cell in all_cells(study).values())
    with open_executor(workers=args.workers, dask=args.dask) as executor, trials_bar("trials", total) as advance:
        claims = build(study, args.out, executor=executor, drawers=args.workers or cores(), progress=advance)
    if write_result(args, {"claims": [claim.to_json() for claim in claims]}):
        show(claims, args.out)
    return 0


def show(claims: list[Claim], folder: Path) -> None:
    """The verdicts for people."""
    from outvote.cli.tables import console, table
    from outvote.paper.report import interval

    out = console()
    colours = {"holds": "green", "holds in part": "yellow", "does not hold": "red"}
    shown = table("place", "statement", "measured", "verdict")
    for claim in claims:
        colour = colours[claim.verdict]
        shown.add_row(claim.place, claim.statement, interval(claim), f"[{colour}]{claim.verdict}[/{colour}]")
    if claims:
        out.print(shown)
    out.print(f"figures, curves and {folder / 'report.html'} are written; open the report in any browser")
