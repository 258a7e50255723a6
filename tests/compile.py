"""Compile every kernel of the simulator, once: test processes that start together would each do it for themselves."""

from __future__ import annotations

from outvote import simulate

PROTOCOLS = ("dme", "tally", "blocks", "me-local", "ucb-unlimited")
"""Protocols that have kernels of their own; the others use the same."""


def main() -> None:
    tiny = {"means": (0.9, 0.1), "players": 2, "horizon": 60, "trials": 1, "grid": 2}
    simulate(**{**tiny, "players": 60}, protocol="dme")  # type: ignore[arg-type]  # too few draws each to skip any
    for protocol in PROTOCOLS:
        simulate(**tiny, protocol=protocol)  # type: ignore[arg-type]
    simulate(**tiny, protocol="tally", privacy_budget=1.0)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
