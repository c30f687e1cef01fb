"""A closed workspace whose journal is on a server: what counts is the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from people.conftest import EVE, Team, close
from watchroom import Agent, Workspace
from watchroom.features.overview.snapshots import read_model
from watchroom.features.requests.rows import decide_all
from watchroom.kernel.call_context import CallContext
from watchroom.model import Write

pytestmark = pytest.mark.postgres


def test_what_counts_is_what_was_signed(new_database: Callable[[], str], tmp_path: Path) -> None:
    agents = [Agent("alice"), Agent("bob")]
    with Workspace.open(new_database(), agents, checkout=tmp_path / "team") as workspace:
        close(workspace)
        team = Team(workspace, tmp_path / "team")
        number = team.ask()
        workspace.journal.append(
            [Write("human:dana", "answer_request", "request", "alice/1/1", "{}", expected=1)]
        )
        assert workspace.requests.ended("alice/1/1") is None
        team.sign_as(EVE)
        workspace.requests.answer(
            CallContext("human:eve"), number, decide_all(workspace.requests.find(number), True)
        )
        ended = workspace.requests.ended("alice/1/1")
        assert ended is not None
        assert ended.row.actor == "human:eve"
        model = read_model(workspace.journal, workspace.journal.last_seq())
        assert [need.kind for need in model.needs] == ["forged"]
        assert model.requests == ()
