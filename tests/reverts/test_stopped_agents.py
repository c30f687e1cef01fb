"""Agents that a revert paused stay paused when those go on that were stopped together."""

from __future__ import annotations

import pytest
from calls import ok
from reverts.test_reverts import ANN
from watchroom import Toolbox, Workspace
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted
from watchroom.agents.clients.session import ClientSession
from watchroom.features.overview.snapshots import read_model
from watchroom.features.reverts.rules import RevertSelection
from watchroom.kernel.call_context import CallContext
from watchroom.model import RELEASE_AGENTS, RESUME, STOP_AGENTS


@pytest.fixture
def ann(workspace: Workspace) -> Toolbox:
    """The person, while alice and bob have sessions and alice has written a file."""
    for name in ("alice", "bob"):
        ClientSession(workspace, name, "s-1", ClientInfo("claude")).record(PromptSubmitted("Go"))
    ok(workspace.tools("alice"), "collab_write", filepath="x.md", content="x", message="m")
    return workspace.tools_for_human("ann")


def reverts(workspace: Workspace) -> None:
    workspace.reverts.apply(CallContext(ANN), RevertSelection(("alice",)))


def stops(ann: Toolbox, *agents: str) -> None:
    ok(ann, STOP_AGENTS, agents=list(agents))


def released(workspace: Workspace, ann: Toolbox) -> set[str]:
    """Who goes on when the stop is taken back; the projection named the same agents before."""
    shown = set(read_model(workspace.journal, workspace.journal.last_seq()).stopped)
    rows = ok(ann, RELEASE_AGENTS)["rows"]
    assert set(rows) == shown
    return set(rows)


def test_who_was_reverted_before_the_stop_stays_paused(workspace: Workspace, ann: Toolbox) -> None:
    reverts(workspace)
    stops(ann, "alice", "bob")
    assert released(workspace, ann) == {"bob"}


def test_who_is_reverted_after_the_stop_stays_paused(workspace: Workspace, ann: Toolbox) -> None:
    stops(ann, "alice", "bob")
    reverts(workspace)
    assert released(workspace, ann) == {"bob"}


def test_who_is_reverted_between_two_stops_stays_paused(workspace: Workspace, ann: Toolbox) -> None:
    stops(ann, "alice", "bob")
    reverts(workspace)
    stops(ann, "alice", "bob")
    assert released(workspace, ann) == {"bob"}


def test_a_revert_alone_leaves_nobody_to_let_go_on(workspace: Workspace, ann: Toolbox) -> None:
    reverts(workspace)
    assert released(workspace, ann) == set()


def test_who_was_paused_and_resumed_since_is_stopped_with_the_others(
    workspace: Workspace, ann: Toolbox
) -> None:
    reverts(workspace)
    ok(ann, RESUME, agent_id="alice")
    stops(ann, "alice", "bob")
    stops(ann, "alice", "bob")
    assert released(workspace, ann) == {"alice", "bob"}
