"""A configuration that is changed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok, refused
from watchroom import Toolbox, Workspace


def test_an_agent_added_to_the_configuration_by_hand_appears(workspace: Workspace, root: Path) -> None:
    config = root / ".watchroom/config.toml"
    config.write_text(config.read_text() + '\n[agents.dora]\nrole = "reviewer"\nlayer = "mid"\n')
    (row,) = workspace.scan()
    assert (row.actor, row.zone, row.outcome) == ("outside", "config", "ok")
    assert (workspace.config.agents["dora"].role, workspace.config.agents["dora"].layer) == (
        "reviewer",
        "mid",
    )
    ok(workspace.tools("dora"), "save_to_my_workspace", filename="x", content="x")
    assert workspace.scan() == []
    assert workspace.verify() == []


def test_an_agent_taken_out_of_the_configuration_by_hand_is_gone(
    workspace: Workspace, root: Path, bob: Toolbox
) -> None:
    config = root / ".watchroom/config.toml"
    config.write_text("[agents.bob]\n[agents.charlie]\n")
    workspace.scan()
    assert list(workspace.config.agents) == ["bob", "charlie"]
    refusal = refused(bob, "handoff_file", to_agent="alice", filename="x", content="x", message="m")
    assert refusal["error"] == "unknown_agent"


def test_a_delivery_outlives_the_registration_of_its_sender(
    workspace: Workspace, root: Path, bob: Toolbox, data: Path
) -> None:
    (root / ".watchroom/config.toml").write_text("[agents.bob]\n")
    workspace.scan()
    assert [each["filename"] for each in ok(bob, "check_my_handoffs")["handoffs"]] == ["data.csv"]
    assert ok(bob, "read_handoff", from_agent="alice", filename="data.csv")["content"] == "first"


@pytest.mark.parametrize(
    "text",
    [
        "[agents.alice",
        'language = "xx"\n[agents.eve]\n',
        "[agents.Eve]\n",
        '[agents.eve]\nlayer = "middle"\n',
        '[agents.eve]\nsupervisor = "nobody"\n',
        '[agents.eve]\nsupervisor = "eve"\n',
        "agents = 3\n",
        "[agents]\neve = 3\n",
    ],
)
def test_a_configuration_broken_by_hand_is_kept_and_the_last_valid_one_holds(
    workspace: Workspace, root: Path, text: str
) -> None:
    config = root / ".watchroom/config.toml"
    good = config.read_text()
    config.write_text(text)
    (row,) = workspace.scan()
    assert (row.outcome, row.error, workspace.journal.content(row.seq)) == ("failed", "config_invalid", text)
    assert list(workspace.config.agents) == ["alice", "bob", "charlie"]
    assert workspace.scan() == []
    with Workspace.open(root) as again:
        assert list(again.config.agents) == ["alice", "bob", "charlie"]
        assert config.read_text() == text
    assert workspace.repair() == []
    assert config.read_text() == good


def test_a_configuration_removed_by_hand_is_laid_out_again(workspace: Workspace, root: Path) -> None:
    config = root / ".watchroom/config.toml"
    good = config.read_text()
    config.unlink()
    workspace.scan()
    assert list(workspace.config.agents) == ["alice", "bob", "charlie"]
    assert workspace.repair() == []
    assert config.read_text() == good
