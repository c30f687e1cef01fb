"""Simulated agents that play scenarios: the demo, and a load for tests. They need no API key.

Each agent works through its own toolbox and the runtime, in its own sessions, with a simulated model. Its
decisions depend only on the seed, on its id, and on what it receives.
"""

from watchroom.agents.simulation.model_agent import developer
from watchroom.agents.simulation.runner import Simulation
from watchroom.agents.simulation.scenario import Scenario
from watchroom.agents.simulation.scenario_file import BUILT_IN_NAMES, demo, load, roster
from watchroom.agents.simulation.statistics import Summary
from watchroom.errors import InvalidScenario

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
