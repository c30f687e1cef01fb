"""``watchroom init``: create a workspace, and add agents."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli.running import Captured, misuse, printed, printed_json, refusal, run
from watchroom import Workspace
from watchroom.texts import catalogue
from watchroom_cli.main import REFUSED


def test_init_makes_a_workspace_with_its_agents(capsys: Captured, tmp_path: Path) -> None:
    root = tmp_path / "new"
    out = printed(
        capsys, "init", str(root), "--agent", "boss:top", "--agent", "amy:mid:boss", "--agent", "bo"
    )
    assert out.splitlines() == ["boss\ttop\t-", "amy\tmid\tboss", "bo\tbottom\t-"]
    with Workspace.open(root, create=False) as workspace:
        assert [agent.id for agent in workspace.config.agents.values()] == ["boss", "amy", "bo"]
    assert (root / "agents/amy").is_dir()


def test_init_sets_the_role_that_names_an_agents_board(capsys: Captured, tmp_path: Path) -> None:
    root = str(tmp_path / "new")
    printed(capsys, "init", root, "--agent", "amy:mid::architect")
    boards = printed_json(capsys, "show", root, "boards", "--json")
    assert "mid-layer-architect" in [each["board"] for each in boards]


def test_init_adds_agents_and_keeps_existing_ones(capsys: Captured, team: str) -> None:
    assert printed(capsys, "init", team, "--agent", "dora").splitlines()[-1] == "dora\tbottom\t-"
    assert len(printed_json(capsys, "show", team, "agents", "--json")) == 4


@pytest.mark.parametrize("given", ["Bad Name", "a_to_b", "../up", ""])
def test_init_refuses_invalid_ids_with_the_rule(capsys: Captured, tmp_path: Path, given: str) -> None:
    assert "agent id" in refusal(capsys, "init", str(tmp_path / "new"), "--agent", given)
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_init_refuses_an_unknown_layer_and_an_unknown_supervisor(capsys: Captured, tmp_path: Path) -> None:
    root = str(tmp_path / "new")
    message = misuse(capsys, "init", root, "--agent", "amy:middle")
    assert "top, mid, bottom" in message
    assert not os.path.exists(root)
    assert "supervisor" in refusal(capsys, "init", root, "--agent", "amy:mid:nobody")
    assert not os.path.exists(root)


def test_init_in_chinese_makes_a_workspace_with_chinese_tools(capsys: Captured, tmp_path: Path) -> None:
    root = str(tmp_path / "new")
    printed(capsys, "init", root, "--agent", "amy", "--language", "zh")
    status, out, _ = run(capsys, "call", root, "amy", "collab_read", '{"filepath": "none.md"}')
    assert status == REFUSED
    zh = catalogue("zh")("error.file_not_found.suggestion")
    assert json.loads(out)["suggestion"] == zh
