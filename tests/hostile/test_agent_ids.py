"""Names of agents: only valid ones are registered, and only the registered get a toolbox."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from calls import ok
from evidence import snapshot
from watchroom import Agent, Workspace
from watchroom.errors import InvalidAgentId, InvalidRole, UnknownAgent
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


COLLIDING: Final = {
    "a role that is another agent's id": (
        Agent("arch", "Système!", "mid"),
        Agent("eve", "arch", "mid"),
        "role_is_agent",
    ),
    "an id that is another agent's role": (
        Agent("eve", "arch", "mid"),
        Agent("arch", "Système!", "mid"),
        "agent_is_role",
    ),
    "in other letters": (Agent("data-base", "keeper"), Agent("eve", "  Data\tBASE "), "role_is_agent"),
    "without a role": (Agent("arch", "", "mid"), Agent("eve", "Arch", "mid"), "role_is_agent"),
    "another role's board": (
        Agent("ann", "data base", "mid"),
        Agent("eve", "data-base", "mid"),
        "role_is_board",
    ),
}


@pytest.mark.parametrize(("first", "second", "rule"), COLLIDING.values(), ids=COLLIDING)
def test_no_agent_is_registered_who_could_pass_for_another(
    root: Path, first: Agent, second: Agent, rule: str
) -> None:
    with Workspace.open(root, agents=[first]) as workspace:
        with pytest.raises(InvalidRole) as refusal:
            workspace.register([second])
        assert refusal.value.values["rule"] == rule
        assert all(refusal.value.message(language) for language in LANGUAGES)
        assert list(workspace.config.agents) == [first.id]
        assert workspace.verify() == []


def test_agents_may_share_a_role(root: Path) -> None:
    team = [
        Agent("arch", "Arch", "mid"),
        Agent("eve", "arch", "mid"),
        Agent("bob", "coder"),
        Agent("tim", "Coder"),
    ]
    with Workspace.open(root, agents=team) as workspace:
        assert workspace.verify() == []


def test_agents_registered_by_hand_who_could_pass_for_each_other_are_a_problem(root: Path) -> None:
    with Workspace.open(root, agents=[Agent("arch", "Système!", "mid"), Agent("eve", "other", "mid")]):
        pass
    config = root / ".watchroom" / "config.toml"
    config.write_text(config.read_text().replace("other", "arch"))
    with Workspace.open(root) as workspace:
        (problem,) = workspace.verify()
        assert (problem.kind, problem.path) == ("registry", "config.toml")
        assert "eve" in problem.what
        assert workspace.repair() == [problem]
        # Whoever changes it is registered, and nothing is wrong any more.
        workspace.register([Agent("eve", "scout", "mid")])
        assert workspace.verify() == []
