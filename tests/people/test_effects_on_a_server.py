"""What the logins of a server may change of protected state, for every effect, actor and tool."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from people.effects import ATTEMPTS
from people.test_protected_effects import OTHER_TOOLS, PAGE, TABLE
from watchroom import Agent, Workspace
from watchroom.errors import DeniedError, JournalError
from watchroom.kernel.journal import Journal, open_journal
from watchroom.kernel.journal.postgres.members import DatabaseMembers
from watchroom.model import Draft

pytestmark = pytest.mark.postgres


def server_column(effect: str) -> str:
    """Who may cause ``effect`` on a server, as the page says."""
    found = re.search(rf"^\| {re.escape(effect)} \|.*\| ([^|]*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def append(journal: Journal, draft: Draft) -> None:
    """Append ``draft`` to the journal of a login; the server may refuse it, with or without a row."""
    with suppress(JournalError, DeniedError):
        journal.append([draft])


@pytest.fixture
def workspace_url(new_database: Callable[[], str]) -> str:
    return new_database()


@pytest.mark.parametrize("effect", [*ATTEMPTS])
def test_an_agents_login_changes_no_protected_state(effect: str, workspace_url: str, tmp_path: Path) -> None:
    own_actor = {"ask a request": "alice", "withdraw a request": "system", "use a grant": "system"}.get(
        effect
    )
    agents = [Agent("alice"), Agent("bob")]
    with (
        Workspace.open(workspace_url, agents, checkout=tmp_path / "team") as workspace,
        closing(DatabaseMembers(workspace_url)) as members,
        closing(open_journal(members.add("alice", "agent"))) as alice,
    ):
        attempt = ATTEMPTS[effect](workspace)
        tools = dict.fromkeys((*TABLE[effect].tools, *OTHER_TOOLS))
        for actor in ("alice", "bob", "outside", "system", "human:dana"):
            for tool in tools:
                if (actor, tool in TABLE[effect].tools) == (own_actor, True):
                    continue
                append(alice, attempt.draft(actor, tool))
                assert not attempt.has_happened(workspace), (actor, tool)
        if own_actor is not None:
            assert "its agent" in server_column(effect)
            append(alice, attempt.draft(own_actor, TABLE[effect].tools[0]))
            assert attempt.has_happened(workspace)


@pytest.mark.parametrize("effect", [*ATTEMPTS])
def test_a_supervisors_login_decides_as_the_page_says(
    effect: str, workspace_url: str, tmp_path: Path
) -> None:
    agents = [Agent("alice"), Agent("bob")]
    with (
        Workspace.open(workspace_url, agents, checkout=tmp_path / "team") as workspace,
        closing(DatabaseMembers(workspace_url)) as members,
        closing(open_journal(members.add("dana", "supervisor"))) as dana,
    ):
        attempt = ATTEMPTS[effect](workspace)
        for actor in ("alice", "human:eve"):
            append(dana, attempt.draft(actor, (*TABLE[effect].tools, "collab_write")[0]))
            assert not attempt.has_happened(workspace), actor
        append(dana, attempt.draft("human:dana", (*TABLE[effect].tools, "collab_write")[0]))
        # In an open workspace nobody is enrolled without their own signature.
        is_expected = "supervisors" in server_column(effect) and TABLE[effect].signature != "always an owner"
        assert attempt.has_happened(workspace) == is_expected
