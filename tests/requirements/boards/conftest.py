"""A team of three layers: two of the top, two of the middle, and three below, one of them without a boss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from watchroom import Toolbox, Workspace
from watchroom.features.config.rows import Agent
from watchroom_whiteboards import Whiteboards

TEAM = (
    Agent("ceo", "strategy", "top"),
    Agent("cfo", "money", "top"),
    Agent("anna", "architect", "mid", "ceo"),
    Agent("paul", "pm", "mid", "ceo"),
    Agent("ada", "coder", "bottom", "anna"),
    Agent("tim", "tester", "bottom", "paul"),
    Agent("zoe", "helper", "bottom"),
)

ToolsOf = Callable[[str], Toolbox]


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace.open(root, agents=TEAM) as opened:
        yield opened


@pytest.fixture
def tools_of(workspace: Workspace) -> ToolsOf:
    """The toolbox of an agent, or of a person (``human:NAME``); always the same one."""
    known: dict[str, Toolbox] = {}

    def tools(actor: str) -> Toolbox:
        if actor not in known:
            _, is_human, name = actor.rpartition("human:")
            known[actor] = workspace.tools_for_human(name) if is_human else workspace.tools(actor)
        return known[actor]

    return tools


@pytest.fixture
def ceo(tools_of: ToolsOf) -> Toolbox:
    return tools_of("ceo")


@pytest.fixture
def cfo(tools_of: ToolsOf) -> Toolbox:
    return tools_of("cfo")


@pytest.fixture
def boards(workspace: Workspace) -> Whiteboards:
    return Whiteboards.of(workspace)
