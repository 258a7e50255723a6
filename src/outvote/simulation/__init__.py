"""Simulated fleets: who is active, what they earn, and what the protocols make of it."""

from outvote.simulation.results import Result
from outvote.simulation.run import simulate

__all__ = ["Result", "simulate"]
