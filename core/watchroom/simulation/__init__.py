"""Simulated agents at work: what the demo shows, and a load for tests. Nobody is asked for a key.

Each agent works through its own toolbox and the runtime, in sessions of its own, if wanted in another
process; its script speaks through a simulated model. What it decides depends on the seed, on its id and on
what it sees, on nothing else.
"""

from watchroom.simulation.developers import developer
from watchroom.simulation.roster import roster, works_apart
from watchroom.simulation.runner import Simulation
from watchroom.simulation.tally import Summary

__all__ = ["Simulation", "Summary", "developer", "roster", "works_apart"]
