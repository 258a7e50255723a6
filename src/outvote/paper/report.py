"""One self-contained page: the figures in the paper's order with what to see in each, and the verdicts."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from string import Template

from outvote import __version__
from outvote.files import write_whole
from outvote.paper.study import FIGURES, Study
from outvote.paper.verdicts import DOES_NOT, HOLDS, IN_PART, Claim
from outvote.simulation.plots import Panel

CAPTIONS = {
    2: (
        "Problem 1, uniform players",
        "Sharing votes helps while players are few enough to end their first epoch within the horizon. Beyond 64 "
        "players nobody does, and DME and players alone are the same line. UCB1 is far below everything.",
    ),
    3: (
        "Problem 2, uniform players",
        "The same shape at a smaller scale: Median Elimination is a fixed design and spends the same number of draws "
        "whatever the gaps are.",
    ),
    4: (
        "Problem 1, 20 % of players make 80 % of events",
        "The busy players decide and all others profit: DME comes close to unlimited communication, players alone do "
        "not.",
    ),
    5: (
        "Problem 2, 20 % of players make 80 % of events",
        "As in Figure 4: the sites with little traffic gain most from the votes of the others.",
    ),
    6: (
        "What N_γ to give, 256 players, 20 % of them make 80 % of events",
        "From a few up to somewhat more than the true number every N_γ is better than none. Too large, and the quorum "
        "is never reached. Extended DME needs no N_γ.",
    ),
}

TALLY_CAPTION = (
    "Tally pools counts in place of votes and looks for the exact best arm, with the same probability of error. "
    "The scale is logarithmic: what takes the paper's algorithms most of the horizon takes Tally a few hundred or "
    "thousand draws. One wrong decision, which it may make with probability δ, weighs as much as all its other trials "
    "together: it shows as a peak with a wide band."
)
FRONTIER_CAPTION = (
    "Down and to the left is better. Tally is shown for four anonymity floors (the fewest events that a message speaks "
    "of), as it is sent, with its arm implied, and as it would be with the arm named in every message."
)

PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Network of Bandits, run anew</title>
<style>
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #dfe4ea; --page: #f6f7f9; --card: #fff;
  --good: #006b4f; --part: #8a5a00; --bad: #a3262a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf0; --soft: #a3adba; --line: #323a45; --page: #14181d;
  --card: #1d232a; --good: #5cc8a4; --part: #e0b050; --bad: #f08a8d; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 2rem 1.2rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .5rem 0; } h2 { font-size: 1.3rem; margin: 2.6rem 0 .4rem; }
p { max-width: 46rem; } .soft { color: var(--soft); }
.counts { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0; }
.counts div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .7rem 1.1rem; }
.counts b { font-size: 1.6rem; display: block; line-height: 1.1; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 1rem; }
figure { margin: 0; background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: .6rem; }
figure svg { width: 100%; height: auto; display: block; }
.table { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .55rem .8rem; border-bottom: 1px solid var(--line); }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; } tr:last-child td { border-bottom: 0; }
.verdict { font-weight: 600; white-space: nowrap; }
.holds { color: var(--good); } .part { color: var(--part); } .not { color: var(--bad); }
a { color: inherit; }
</style>
</head>
<body>
<main>
<h1>Network of Bandits, run anew</h1>
<p>The Experiments section of Raphaël Féraud, <i>Network of Bandits insure Privacy of end-users</i>, simulated with
outvote $version: $trials trials of $horizon draws for each point, seed $seed. Bands are 95 % confidence intervals.</p>
$counts
$figures
$tally
$claims
</main>
</body>
</html>
""")
CLASSES = {HOLDS: "holds", IN_PART: "part", DOES_NOT: "not"}


def write(path: Path, study: Study, panels: Sequence[Panel], claims: Sequence[Claim], folder: Path) -> None:
    """Write the report; the SVGs of the panels are taken from `folder` into the page."""
    page = PAGE.substitute(
        version=html.escape(__version__),
        trials=f"{study.trials:,}",
        horizon=f"{study.horizon:,}",
        seed=study.seed,
        counts=_counts(claims),
        figures="\n".join(_figure(figure, panels, folder) for figure in FIGURES if figure in study.figures),
        tally=_beyond(panels, folder),
        claims=_claims(claims),
    )
    write_whole(path, page)


def _counts(claims: Sequence[Claim]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    boxes = "".join(f'<div class="{CLASSES[v]}"><b>{counts[v]}</b>{v}</div>' for v in (HOLDS, IN_PART, DOES_NOT))
    return f'<div class="counts">{boxes}</div>' if claims else ""


def _figure(figure: int, panels: Sequence[Panel], folder: Path) -> str:
    title, caption = CAPTIONS[figure]
    pictures = _pictures([panel for panel in panels if panel.name.startswith(f"figure-{figure}")], folder)
    return _section(f"Figure {figure}. {title}", caption, pictures)


def _beyond(panels: Sequence[Panel], folder: Path) -> str:
    sections = (
        ("The same figures with Tally", TALLY_CAPTION, "tally-"),
        ("What regret costs in bits", FRONTIER_CAPTION, "frontier-"),
    )
    found = []
    for title, caption, start in sections:
        pictures = _pictures([panel for panel in panels if panel.name.startswith(start)], folder)
        if pictures:
            found.append(_section(title, caption, pictures))
    return "\n".join(found)


def _section(title: str, caption: str, pictures: str) -> str:
    return (
        f'<section><h2>{html.escape(title)}</h2><p class="soft">{html.escape(caption)}</p>'
        f'<div class="panels">{pictures}</div></section>'
    )


def _pictures(panels: Sequence[Panel], folder: Path) -> str:
    pictures = []
    for panel in panels:
        svg = (folder / f"{panel.name}.svg").read_text(encoding="utf-8")
        svg = svg[svg.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{html.escape(panel.title)}"', 1)
        pictures.append(f"<figure>{_unique_ids(svg, panel.name)}</figure>")
    return "".join(pictures)


def _unique_ids(svg: str, name: str) -> str:
    """Matplotlib numbers the parts of every picture alike; on one page they must not share names."""
    for mark in ('id="', 'href="#', "url(#"):
        svg = svg.replace(mark, f"{mark}{name}-")
    return svg


def _claims(claims: Sequence[Claim]) -> str:
    if not claims:
        return '<p class="soft">Claims are judged when all figures are run.</p>'
    rows = "".join(
        f"<tr><td>{html.escape(claim.place)}</td><td>{html.escape(claim.statement)}</td>"
        f'<td class="number">{interval(claim)}</td>'
        f'<td class="verdict {CLASSES[claim.verdict]}">{claim.verdict}</td><td>{html.escape(claim.why)}</td></tr>'
        for claim in claims
    )
    return (
        "<section><h2>What the paper says, and what the runs say to it</h2>"
        '<div class="table"><table><thead><tr><th>Place</th><th>Statement</th><th>Measured</th><th>Verdict</th>'
        f"<th>Why</th></tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def interval(claim: Claim) -> str:
    """The measured number, and its interval where it has one."""
    if claim.low == claim.high:
        return number(claim.measured)
    return f"{number(claim.measured)} ({number(claim.low)} to {number(claim.high)})"


def number(value: float) -> str:
    if abs(value) >= 1e7:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
