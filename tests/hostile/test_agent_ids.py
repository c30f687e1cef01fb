"""Names of agents: only valid ones are registered, and only the registered get a toolbox."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from calls import ok
from evidence import snapshot
from watchroom import Workspace
from watchroom.errors import InvalidAgentId, UnknownAgent
from watchroom.texts import LANGUAGES

VALID_IDS: Final = ("a", "0", "alice", "agent-1", "agent_1", "a" * 64, "to_", "a_to", "x_too")


INVALID_IDS: Final = (
    *("", "A", "Alice", "-a", "_a", ".a", "a.b", "a b", "a/b", "..", "a\\b", "a" * 65, "é", "ａ", "а", "١"),
    *(
        "alice\n",
        "alice\0",
        "a_to_b",
        "_to_",
        "outside",
        "system",
        "human",
        "user",
        "human:eve",
        "con",
        "com1",
    ),
    *("\ud800", "alice ", " alice", "a\u200b"),
)


@pytest.mark.parametrize("agent", VALID_IDS)
def test_a_valid_agent_id_is_registered(root: Path, agent: str) -> None:
    with Workspace.open(root, agents=[agent]) as workspace:
        ok(workspace.tools(agent), "save_to_my_workspace", filename="x", content="x")
    assert (root / "agents" / agent / "x").read_text() == "x"


@pytest.mark.parametrize("agent", INVALID_IDS, ids=ascii)
def test_an_invalid_agent_id_is_refused(root: Path, agent: str) -> None:
    Workspace.open(root, agents=["alice"]).close()
    before = snapshot(root)
    with pytest.raises(InvalidAgentId) as refusal:
        Workspace.open(root, agents=[agent])
    assert all(refusal.value.message(language) for language in LANGUAGES)
    with Workspace.open(root) as workspace:
        with pytest.raises(InvalidAgentId):
            workspace.tools(agent)
        assert list(workspace.config.agents) == ["alice"]
        assert workspace.verify() == []
    assert snapshot(root) == before


def test_a_toolbox_is_for_registered_agents_only(workspace: Workspace) -> None:
    with pytest.raises(UnknownAgent):
        workspace.tools("zed")
