"""One trial of `dme` on a fleet of a given size; prints its seconds and this process's peak memory as JSON.

`engines` starts it as a process of its own: PLAYERS HORIZON GRID.
"""

from __future__ import annotations

import json
import resource
import sys

from outvote import simulate


def main(players: int, horizon: int, grid: int) -> None:
    result = simulate(players=players, horizon=horizon, grid=grid, trials=1, engine="fast")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux counts in KiB
    print(json.dumps({"seconds": result.seconds, "peak_mib": peak, "finished": result.finished.share == 1.0}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
