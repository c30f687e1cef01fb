"""Simulated developers for a task: an architect has programmers write a small program, and tests it."""

from __future__ import annotations

from functools import cache, partial
from typing import Final

from watchroom.model import USER
from watchroom.rules.config import Agent
from watchroom.rules.members import Member
from watchroom.runtime.models import SimulatedModel
from watchroom.simulation.model_agent import ScriptedModel
from watchroom.simulation.scenario import Scenario
from watchroom.simulation.scenario_file import BUILT_IN, load
from watchroom.simulation.script import Play
from watchroom.texts import Language

_SCENARIO: Final = BUILT_IN / "developers.toml"
_IDLE: Final = "idle"


@cache
def _scenario() -> Scenario:
    return load(_SCENARIO)


def developer(member: Member, language: Language, *, speed: float = 0.0) -> SimulatedModel:
    """The model of ``member`` of a task, who plays the part that its role has among the developers and speaks
    ``language``. ``speed`` divides the time that it thinks and speaks; at 0 it takes none."""
    scenario = _scenario()
    role = member.role if member.role in scenario.routines else _IDLE
    agent = Agent(member.id, member.role, member.layer, member.parent or USER)
    play = Play(scenario, agent, (), language=language)
    return SimulatedModel(ScriptedModel(partial(play.script, role), speed=speed))
