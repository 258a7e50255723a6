"""Measures everything, prints tables, and writes `benchmarks/results.json` and `docs/performance.md`: `make bench`.

Nothing is written before all is measured, and then whole files at once, so stopping it at any time does no harm.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import core, engines, page
from benchmarks.peers import compare
from benchmarks.timing import say
from outvote import __version__


def main() -> int:
    options = read_options()
    out: Path | None = options.out
    if out is None and not (options.quick or options.no_peers):
        out = page.RESULTS
    if out is not None and not os.access(out.parent, os.W_OK):
        say(f"results cannot be written: {out.parent} is no folder that can be written to")
        return 2
    start = time.perf_counter()
    try:
        if options.only is not None:
            measured = ALONE[options.only](quick=options.quick)
            if measured is None:
                return 2
            results = merged(options.only, measured)
        else:
            results = measure(quick=options.quick, with_peers=not options.no_peers)
    except KeyboardInterrupt:
        say("stopped; nothing was written")
        return 130
    print(page.targets_part(results))
    if out is not None:
        text = page.page(results)
        write(out, json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        if out.resolve() == page.RESULTS.resolve():
            write(page.PAGE, text)
    say(f"done in {time.perf_counter() - start:.0f} s" + (f"; wrote {out.name}" if out else ""))
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions; no fleet of a million")
    parser.add_argument(
        "--only", choices=list(ALONE), help="measure this part; the others stay as benchmarks/results.json has them"
    )
    parser.add_argument("--no-peers", action="store_true", help="leave other libraries out")
    parser.add_argument(
        "--out", type=Path, metavar="FILE",
        help="where results go; a full run writes benchmarks/results.json and docs/performance.md, others only print",
    )  # fmt: skip
    return parser.parse_args()


def measure(*, quick: bool, with_peers: bool) -> page.Results:
    """All parts one after the other; each is printed when it is done."""
    results: page.Results = {"outvote": __version__, "quick": quick, "machine": machine()}
    print(page.machine_part(results), end="\n\n", flush=True)
    results["engines"] = tidy(engines.measure(quick=quick))
    for part in (page.engines_part, page.scaling_part, page.fleets_part):
        print(part(results), end="\n\n", flush=True)
    results["peers"] = tidy(compare.measure(quick=quick)) if with_peers else None
    print(page.peers_part(results), end="\n\n", flush=True)
    results["core"] = tidy(core.measure(quick=quick))
    print(page.core_part(results), end="\n\n", flush=True)
    results["network"] = measure_network(quick=quick)
    print(page.network_part(results), end="\n\n", flush=True)
    results["dashboard"] = measure_dashboard(quick=quick)
    print(page.dashboard_part(results), end="\n\n", flush=True)
    return results


def measure_network(*, quick: bool) -> dict[str, Any] | None:
    """With its own note of the machine, as it may be measured alone; None where the extra `network` is missing."""
    try:
        from benchmarks.network import parts
    except ModuleNotFoundError as error:
        say(f"network: not measured, as {error.name} is missing: install the extra `network`")
        return None
    about = machine_alone(parts.versions())
    return {"machine": about, **tidy(parts.measure(quick=quick))}


def measure_dashboard(*, quick: bool) -> dict[str, Any] | None:
    """The same; None also where there is no Chromium."""
    try:
        from benchmarks.dashboard import parts
    except ModuleNotFoundError as error:
        say(f"dashboard: not measured, as {error.name} is missing: install the extras `dashboard` and `dev`")
        return None
    about = machine_alone(parts.versions())
    measured = parts.measure(quick=quick)
    return None if measured is None else {"machine": about, **tidy(measured)}


ALONE: dict[str, Callable[..., dict[str, Any] | None]] = {"network": measure_network, "dashboard": measure_dashboard}
"""Parts that can be measured alone."""


def machine_alone(versions: dict[str, str]) -> dict[str, Any]:
    """What the figures of such a part depend on."""
    return {key: value for key, value in machine().items() if key not in ("numpy", "numba")} | {"versions": versions}


def merged(part: str, measured: dict[str, Any]) -> page.Results:
    """The results that are there, with those of one part measured anew."""
    results: page.Results = json.loads(page.RESULTS.read_text(encoding="utf-8"))
    results[part] = measured
    shown = page.network_part if part == "network" else page.dashboard_part
    print(shown(results), end="\n\n", flush=True)
    return results


def machine() -> dict[str, Any]:
    """What a figure depends on, and nothing that names the machine."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def tidy(value: Any) -> Any:
    """Five significant digits are more than any timing has."""
    if isinstance(value, dict):
        return {key: tidy(each) for key, each in value.items()}
    if isinstance(value, list):
        return [tidy(each) for each in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def write(path: Path, text: str) -> None:
    """A whole file or nothing."""
    half = path.with_name(path.name + ".part")
    try:
        half.write_text(text, encoding="utf-8")
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
