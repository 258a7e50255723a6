"""`python -m faults.run`: many schedules, several at a time, and a report of them. Ctrl-C leaves nothing behind.

    PYTHONPATH=tests:. python -m faults.run --schedules 300 --workers 2 --out out/faults
    PYTHONPATH=tests:. python -m faults.run --replay 29

Exit code 0 if nothing was found, 1 if something was; what a run with findings left behind stays in its folder.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import subprocess
import sys
from pathlib import Path
from typing import Any

from faults import report
from faults.nursery import PATH
from faults.schedule import make_schedule
from outvote.engine.process import find_binary
from outvote.processes import die_with

GOODBYE = 40.0
"""Seconds in which workers that are told to end must have."""


class Worker:
    """A process that runs schedules."""

    def __init__(self, out: Path, number: int) -> None:
        path = os.pathsep.join(filter(None, (PATH, os.environ.get("PYTHONPATH"))))
        self.log = (out / f"worker-{number}.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "faults.worker", str(out), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=os.environ | {"PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for us, who end it in order
            preexec_fn=die_with(os.getpid()),
        )
        self.seed: int | None = None

    def begin(self, seed: int) -> None:
        self.seed = seed
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seed}\n".encode())
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.terminate() if self.seed is not None else None
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(GOODBYE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def run_all(seeds: list[int], workers: int, out: Path, kept: Path | None) -> list[dict[str, Any]]:
    """The results, in the order in which they came; those that there are, at Ctrl-C. Each is also added to `kept`."""
    waiting: list[int] = list(reversed(seeds))
    results: list[dict[str, Any]] = []
    team = [Worker(out, number) for number in range(min(workers, len(seeds)))]
    with selectors.DefaultSelector() as ready:
        for each in team:
            ready.register(each.process.stdout, selectors.EVENT_READ, each)  # type: ignore[arg-type]
            each.begin(waiting.pop())
        try:
            while any(each.seed is not None for each in team):
                for key, _ in ready.select():
                    worker: Worker = key.data
                    line = worker.process.stdout.readline()  # type: ignore[union-attr]
                    if not line:
                        raise SystemExit(f"a worker ended at seed {worker.seed}: see {worker.log.name}")
                    results.append(json.loads(line))
                    if kept is not None:
                        with kept.open("ab") as file:
                            file.write(line)
                    tell(results[-1], len(results), len(seeds))
                    worker.seed = None
                    if waiting:
                        worker.begin(waiting.pop())
        except KeyboardInterrupt:
            print("interrupted: the report is of the runs so far", file=sys.stderr)
        finally:
            for each in team:
                each.end()
    return results


def tell(result: dict[str, Any], done: int, of: int) -> None:
    faults, operations = (
        ", ".join(kind for kind, count in result[what].items() for _ in range(count)) or "none"
        for what in ("faults", "operations")
    )
    print(f"[{done}/{of}] seed {result['seed']}: {result['seconds']:.1f} s; {faults}; {operations}", flush=True)
    for kind, what in result["findings"]:
        print(f"    {kind}: {what}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="faults", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--schedules", type=int, default=300, help="how many (300)")
    parser.add_argument("--workers", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--seed", type=int, default=0, help="that of the first (0)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="show and run the schedule of one seed")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the report as JSON there, too")
    parser.add_argument("--resume", action="store_true", help="go on after what is in --out already")
    parser.add_argument("--out", type=Path, default=Path("out/faults"), help="where the report is written (out/faults)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    out = args.out.resolve()
    seeds = [args.replay] if args.replay is not None else list(range(args.seed, args.seed + args.schedules))
    if args.replay is not None:
        print(json.dumps(make_schedule(args.replay).to_json(), indent=2))
    kept = out / "results.jsonl" if args.replay is None else None
    before: list[dict[str, Any]] = []
    if kept is not None and kept.exists():
        if args.resume:
            before = [each for each in map(json.loads, kept.read_text().splitlines()) if each["seed"] in seeds]
        else:
            kept.unlink()
    done = {each["seed"] for each in before}
    results = before + run_all([each for each in seeds if each not in done], args.workers, out, kept)
    found = report.summary(results, first_seed=seeds[0], engine=find_binary().version)
    if args.replay is None:
        (out / "report.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
        (out / "report.md").write_text(report.text(found))
    if args.keep is not None:
        args.keep.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    print(report.text(found))
    return 0 if report.is_well(found) else 1


if __name__ == "__main__":
    sys.exit(main())
