"""UCB1 on the same problem by other libraries and by us, in one run, taking turns.

Peers live in an environment of their own (`.env-peers`), so that they never become our dependencies. One that cannot
be installed or does not run is left out, and the result says why.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.timing import say
from outvote import simulate

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.txt"
ENVIRONMENT = HERE.parents[1] / ".env-peers"
THEIR_PYTHON = str(ENVIRONMENT / "bin" / "python")
INSTALL_SECONDS = 600
PLAY_SECONDS = 300
OURS: dict[str, Any] = {"protocol": "ucb-unlimited", "problem": 1}
OUR_HORIZON = 1_000_000
OUR_TRIALS = 100
CHECK_TRIALS = 200
AGREEMENT = 5.0
"""Standard errors within which a peer's mean regret must lie around ours; by chance alone it is outside once in 10⁶."""


@dataclass
class Peer:
    """A library, how it is called, and what it did."""

    name: str
    package: str
    call: str
    horizon: int
    """So long that one round lasts a second or two: what a draw costs them does not depend on it."""
    python: str = THEIR_PYTHON
    version: str = ""
    ns: float = math.inf
    regrets: list[float] = field(default_factory=list)
    trouble: str | None = None


class Trouble(Exception):
    """Why a peer is left out."""


def peers() -> list[Peer]:
    return [
        Peer("MABWiser", "mabwiser", "`UCB1(alpha=1)`: `predict`, `partial_fit`", 20_000),
        Peer("SMPyBandits", "SMPyBandits", "`UCB`: `choice`, `getReward`", 100_000),
        Peer("river", "river", "`bandit.UCB(delta=1)`: `pull`, `update`", 200_000),
        Peer("pymab", "pymab", "`Experiment.run` with `UCBPolicy(c=2)`, Rust backend", 200_000),
        Peer("NumPy loop", "numpy", "one loop over draws, 100 trials in each step", 50_000, sys.executable),
    ]


def measure(*, quick: bool) -> dict[str, Any]:
    """Nanoseconds per draw of each peer and of ours, and whether their regrets agree."""
    rounds = 1 if quick else 3
    playing = peers()
    for peer in playing:
        peer.horizon //= 10 if quick else 1
        attempt(peer, partial(install, peer))
    ours = math.inf
    ours_at = dict.fromkeys((peer.horizon for peer in playing), math.inf)
    for number in range(rounds):
        say(f"peers: round {number + 1} of {rounds}")
        for peer in playing:
            attempt(peer, partial(play, peer, number))
            ours = min(ours, our_nanoseconds(OUR_HORIZON, OUR_TRIALS))
            ours_at[peer.horizon] = min(ours_at[peer.horizon], our_nanoseconds(peer.horizon, CHECK_TRIALS))
    return {
        "horizon": OUR_HORIZON,
        "trials": OUR_TRIALS,
        "ours_ns": ours,
        "rows": [row(peer, ours_at[peer.horizon]) for peer in playing if peer.trouble is None],
        "left_out": [{"name": peer.name, "why": peer.trouble} for peer in playing if peer.trouble is not None],
    }


def attempt(peer: Peer, work: Callable[[], None]) -> None:
    """Do something with a peer that is still in."""
    if peer.trouble is None:
        try:
            work()
        except Trouble as trouble:
            peer.trouble = str(trouble)
            say(f"peers: {peer.name} is left out: {trouble}")


def install(peer: Peer) -> None:
    """Make the peers' environment if need be, and install one from PyPI; a mark says that it is there."""
    if peer.python != THEIR_PYTHON:
        return
    made, mark = ENVIRONMENT / ".made", ENVIRONMENT / f".{peer.package}"
    wanted = REQUIREMENTS.read_text(encoding="utf-8")
    if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return
    say(f"peers: installing {peer.name} into {ENVIRONMENT.name} (once)")
    if not made.exists():
        call([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], INSTALL_SECONDS, "no environment was made")
        made.touch()
    (pinned,) = (line for line in wanted.splitlines() if line.startswith(f"{peer.package}=="))
    pip = [THEIR_PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    call([*pip, "--constraint", str(REQUIREMENTS), pinned], INSTALL_SECONDS, f"{pinned} could not be installed")
    mark.write_text(wanted, encoding="utf-8")


def play(peer: Peer, seed: int) -> None:
    """One round of a peer."""
    out = call(
        [peer.python, "-I", str(HERE / "play.py"), peer.package, str(peer.horizon), str(seed)],
        PLAY_SECONDS,
        "it did not run",
    )
    played = json.loads(out.splitlines()[-1])  # some libraries print while they are imported
    peer.version = played["version"]
    peer.ns = min(peer.ns, played["ns"])
    peer.regrets += played["regrets"]


def our_nanoseconds(horizon: int, trials: int) -> float:
    return simulate(horizon=horizon, trials=trials, **OURS).seconds / (horizon * trials) * 1e9


def row(peer: Peer, ours_ns: float) -> dict[str, Any]:
    """A peer beside us at its own horizon; regrets are compared so that it is sure to have solved the same problem."""
    regrets = simulate(horizon=peer.horizon, trials=CHECK_TRIALS, grid=1, **OURS).per_trial.regret
    spread = statistics.stdev(regrets) * math.sqrt(1 / len(regrets) + 1 / len(peer.regrets))
    regret, our_regret = statistics.fmean(peer.regrets), statistics.fmean(regrets)
    return {
        "name": peer.name,
        "version": peer.version,
        "call": peer.call,
        "horizon": peer.horizon,
        "ns": peer.ns,
        "ours_ns_at_its_horizon": ours_ns,
        "regret": regret,
        "our_regret": our_regret,
        "agrees": abs(regret - our_regret) <= AGREEMENT * spread,
    }


def call(command: Sequence[str], seconds: float, what: str) -> str:
    """What a command prints, or a `Trouble` with the line that explains it."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise Trouble(f"{what} within {seconds:g} s") from None
    except OSError as error:
        raise Trouble(f"{what}: {error.strerror}") from None
    if done.returncode:
        raise Trouble(f"{what}: {explanation(done.stderr)}")
    return done.stdout


def explanation(errors: str) -> str:
    """The line of an error output that says most, without addresses and folders, which are the machine's own."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()] or ["no reason given"]
    telling = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")] or lines[-1:]
    return re.sub(r"\(?\S*[/\\]\S*", "", telling[0]).strip()[:200]
