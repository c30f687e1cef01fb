"""Simulated agents at work, as scenarios say: what the demo shows, and a load for tests. Nobody is asked
for a key.

Each agent works through its own toolbox and the runtime, in sessions of its own; its routine speaks through
a simulated model. What it decides depends on the seed, on its id and on what it is told, on nothing else.
"""

from watchroom.simulation.developers import developer
from watchroom.simulation.errors import InvalidScenario
from watchroom.simulation.runner import Simulation
from watchroom.simulation.scenario import Scenario
from watchroom.simulation.scenario_file import BUILT_IN_NAMES, demo, load, roster
from watchroom.simulation.statistics import Summary

__all__ = [
    "BUILT_IN_NAMES",
    "InvalidScenario",
    "Scenario",
    "Simulation",
    "Summary",
    "demo",
    "developer",
    "load",
    "roster",
]
