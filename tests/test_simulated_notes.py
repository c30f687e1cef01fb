"""What simulated agents write on their board at once reads well: for any seed and any order in which they get
to act, each line is one that somebody meant to write, and no two numbers ran together."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from random import Random
from typing import Final

import pytest
from calls import ok
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from watchroom import Json, Toolbox, Workspace
from watchroom.rules.config import Agent
from watchroom.simulation import board, roster
from watchroom.simulation.desk import AgentContext
from watchroom.simulation.material import material
from watchroom.simulation.sheet import Section, Sheet
from watchroom.simulation.sheet import board as the_board
from watchroom.simulation.steps import NOTHING, Call, Result, Script

TEAM: Final = roster(6)
_SLOT: Final = re.compile(r"\\\{(\w+)\\\}")
VISITS: Final = 5
DRIFT: Final = 9
"""So much a number changes when somebody corrects it."""


def visits(agent: Agent, seed: int) -> Script[None]:
    """An agent that comes to the board again and again."""
    desk = AgentContext(agent, TEAM, seed)
    for _ in range(VISITS):
        yield from board.visit(desk)


def interleave(workspace: Workspace, seed: int) -> int:
    """Let all agents write, one step of one of them after another, in an order that ``seed`` decides; gives how
    many corrections there were."""
    rng = Random(f"order {seed}")
    boxes: Mapping[str, Toolbox] = {agent.id: workspace.tools(agent.id) for agent in TEAM}
    scripts = {agent.id: visits(agent, seed) for agent in TEAM}
    results: dict[str, Result | None] = dict.fromkeys(scripts)
    corrections = 0
    while scripts:
        agent = rng.choice([*scripts])
        try:
            step = scripts[agent].send(results[agent])  # type: ignore[arg-type]  # None begins it
        except StopIteration:
            del scripts[agent]
            continue
        results[agent] = NOTHING
        if isinstance(step, Call):
            results[agent] = boxes[agent].dispatch_tool_call(step.tool, step.arguments)
            corrections += step.arguments.get("operation") == "replace"
    return corrections


def begins_line_of(line: str, section: Section, corrections: int) -> bool:
    """Whether a line is what one of the section's templates makes, or as much of it as is written by now."""
    limits = material().numbers

    def pattern(part: str) -> str:
        return _SLOT.sub(lambda slot: r"(\d+)" if slot[1] in limits else "(.+?)", re.escape(part))

    for parts in section.lines:
        slots = [slot[1] for slot in _SLOT.finditer(re.escape("".join(parts)))]
        for count in range(1, len(parts) + 1):
            match = re.fullmatch("".join(map(pattern, parts[:count])), line)
            numbers = zip(slots, match.groups(), strict=False) if match else []
            most = {slot: limits[slot][1] + corrections * DRIFT for slot in limits}
            if match and all(int(text) <= most[slot] for slot, text in numbers if slot in limits):
                return True
    return False


@settings(
    deadline=None,
    max_examples=40 if "WATCHROOM_HUNT" in os.environ else 4,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 10_000))
def test_what_several_wrote_at_once_reads_as_they_meant_it(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    root = tmp_path_factory.mktemp("notes")
    with Workspace.open(root / "team", agents=TEAM) as workspace:
        corrections = interleave(workspace, seed)
        found: dict[str, Json] = ok(
            workspace.tools(TEAM[0].id), "realtime_get_document_snapshot", doc_id=the_board().id
        )["snapshot"]
        sheet = Sheet(found, 1)
        assert corrections > 0
        for section in the_board().sections:
            lines = [line.text for line in sheet.lines(section)]
            assert len(lines) <= section.most + len(TEAM)
            for line in lines:
                assert begins_line_of(line, section, corrections // 2), (section.heading, line)
