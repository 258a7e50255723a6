"""Compile every kernel of the simulator, once: test processes that start together would each do it for themselves."""

from __future__ import annotations

from outvote import simulate

JUMPING = ("dme", "tally", "me-local", "ucb-unlimited")
"""Protocols that have kernels of their own when they jump; the others use the same."""


def main() -> None:
    tiny = {"means": (0.9, 0.1), "players": 2, "horizon": 60, "trials": 1, "grid": 2}
    simulate(**tiny, protocol="dme", engine="step")  # type: ignore[arg-type]
    for protocol in JUMPING:
        simulate(**tiny, protocol=protocol, engine="jump")  # type: ignore[arg-type]
    simulate(**tiny, protocol="tally", engine="jump", privacy_budget=1.0)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
