"""The verdict as a page: one file, with nothing to load, for whoever has to keep it.

One rule: all that comes from the run is escaped.
"""

from __future__ import annotations

from html import escape

from outvote import __version__
from outvote.privacy.audit.judge import Verdict
from outvote.privacy.audit.report import headline, sections

STYLE = """
:root { color-scheme: light dark; --ink: #1b2430; --soft: #5b6776; --paper: #fff; --line: #d9dfe6; --good: #176b3a;
  --bad: #b3261e; --tint: #f4f7f9 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --soft: #9aa7b5; --paper: #14191f; --line: #2c3640;
  --good: #5fd08f; --bad: #ff8a80; --tint: #1b222a } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 46rem;
  margin: 2.5rem auto; padding: 0 1.25rem }
h1 { font-size: 1.5rem; margin: 0 0 .25rem } h2 { font-size: 1.05rem; margin: 0 0 .4rem }
.soft { color: var(--soft) }
.verdict { border-left: .4rem solid; padding: .7rem 1rem; background: var(--tint); font-weight: 600; margin: 1.4rem 0 }
.good { color: var(--good) } .bad { color: var(--bad) } .verdict.good, .verdict.bad { border-color: currentColor }
section { border-top: 1px solid var(--line); padding: 1rem 0 } ul { margin: 0; padding-left: 1.2rem }
li { margin: .2rem 0; overflow-wrap: anywhere } li.bad { font-weight: 600 }
"""


def in_html(verdict: Verdict) -> str:
    task = verdict.setting.task
    parts = []
    for section in sections(verdict):
        mine = [each for each in verdict.findings if each.kind in section.kinds]
        mark = ""
        if section.kinds:
            mark = '<span class="bad">✗ no</span>' if mine else '<span class="good">✓ yes</span>'
            if section.kinds in (("marker",), ("time",)):  # questions to which the good answer is no
                mark = '<span class="bad">✗ yes</span>' if mine else '<span class="good">✓ no</span>'
        lines = "".join(f"<li>{escape(line)}</li>" for line in section.lines)
        lines += "".join(f'<li class="bad">{escape(each.where)}: {escape(each.what)}</li>' for each in mine)
        parts.append(f"<section><h2>{escape(section.title)} {mark}</h2><ul>{lines}</ul></section>")
    about = (
        f"outvote {__version__}, protocol {task.protocol}, {task.players} sites, seed {verdict.setting.seed}, "
        f"{verdict.seconds:.1f} s"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Privacy audit</title><style>{STYLE}</style></head><body><h1>Privacy audit of a fleet</h1>"
        f'<p class="soft">{escape(about)}</p>'
        f'<p class="verdict {"good" if verdict.passed else "bad"}">{escape(headline(verdict))}</p>'
        f"{''.join(parts)}</body></html>\n"
    )
