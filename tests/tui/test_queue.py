"""The attention queue: each kind of need is settled one key away."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from calls import ok, refused
from tui.driver import NARROW, User, dashboard, past
from tui.recorded import SECOND, recorded
from tui.team import PLAN, collide, deliver, opens_merge, stale_write, write
from watchroom import Toolbox, Workspace


async def is_closed(user: User, workspace: Workspace) -> None:
    await user.has_taken_in(workspace)
    await user.until(lambda: not user.model.needs, "an empty queue")
    await user.sees("✓ all well")


async def marks_as_seen(user: User, question: str) -> None:
    await user.press("S")
    await user.is_asked(question)
    await user.press("enter")
    await user.is_told("Marked as seen")


async def test_a_conflict_is_one_key_away_and_dismissed_there(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("D", "enter")
        await is_closed(user, workspace)


async def test_an_edit_by_hand_is_one_key_away_and_reverted_there(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "one\n", 0)
    (root / "collaborative/current" / PLAN).write_text("by hand\n", encoding="utf-8")
    workspace.scan()
    async with dashboard(workspace) as user:
        await opens_merge(user)
        await user.press("R", "enter")
        await is_closed(user, workspace)


@pytest.mark.parametrize("keys", [("exclamation_mark",), ("enter",)], ids=["urgent", "enter"])
async def test_an_unchecked_overwrite_is_one_key_away_and_marked_as_seen_there(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, keys: tuple[str, ...]
) -> None:
    write(alice, "one\n", 0)
    write(bob, "over it\n", -1)
    async with dashboard(workspace) as user:
        await user.press(*keys)
        await user.until(lambda: user.place == "files", "the files")
        await user.sees("+ over it", "− one")
        await user.is_told("S marks it as seen")
        await marks_as_seen(user, "bob overwrote alice unchecked")
        await is_closed(user, workspace)
        row = user.model.recent[0]
        assert (row.actor, row.tool, row.version) == ("human:dana", "mark_as_seen", None)


async def test_no_is_no(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    write(alice, "one\n", 0)
    write(bob, "over it\n", -1)
    async with dashboard(workspace) as user:
        await user.press("exclamation_mark")
        await user.until(lambda: user.place == "files", "the files")
        await user.press("S")
        await user.is_asked("bob overwrote alice unchecked")
        await user.press("escape")
        await user.until(lambda: user.place == "files", "the files")
        await user.has_taken_in(workspace)
        assert [need.kind for need in user.model.needs] == ["unchecked"]


@pytest.mark.parametrize("size", [NARROW, (120, 40)], ids=["80x24", "120x40"])
async def test_a_denied_agent_is_one_key_away_with_its_attempt_and_marked_as_seen(
    workspace: Workspace, charlie: Toolbox, size: tuple[int, int]
) -> None:
    # In the zone of handoffs, so that the need's screen is not that of its row.
    for _ in range(3):
        refused(charlie, "handoff_file", to_agent="nobody", filename="raw.md", content="x", message="take it")
    async with dashboard(workspace, size=size) as user:
        await user.press("exclamation_mark")
        await user.until(lambda: user.place == "agents", "the agents")
        await user.until(lambda: user.cursor("agents").agent.id == "charlie", "charlie")
        await user.sees("denied: unkn")
        assert user.pane == "rows"
        await marks_as_seen(user, "charlie was refused 3 times in a row")
        await is_closed(user, workspace)


def stalls(root: Path) -> None:
    """Bob's write is refused, and a handoff waits for charlie. Both are inactive, so each is one need."""
    with Workspace.open(root, agents=["alice", "bob", "charlie"]) as workspace:
        alice, bob, charlie = (workspace.tools(each) for each in ("alice", "bob", "charlie"))
        ok(charlie, "save_to_my_workspace", filename="own.md", content="what charlie did last")
        write(alice, "one\n", 0)
        write(alice, "two\n", 1)
        deliver(alice, "charlie", "raw.md")
        stale_write(bob, "late\n", 1)
        ok(alice, "save_to_my_workspace", filename="a.md", content="x")


async def test_a_stalled_agent_is_one_key_away_with_its_last_action(tmp_path: Path) -> None:
    with closing(recorded(tmp_path, stalls, apart=400 * SECOND)) as journal:
        async with past(journal, journal.last_seq()) as user:
            await user.until(lambda: len(user.list("needs").items) == 2, "the queue")
            await user.sees("2 need you")
            conflict, stalled = user.list("needs").items
            assert (conflict.kind, conflict.agent) == ("conflict", "bob")
            assert (stalled.kind, stalled.agent) == ("stalled", "charlie")
            await user.app.navigator.go_to_need(stalled)
            await user.until(lambda: user.place == "agents", "the agents")
            await user.until(lambda: user.cursor("agents").agent.id == "charlie", "charlie")
            await user.until(lambda: user.pane == "rows", "what charlie did")
            await user.sees("own.md")


async def test_an_edit_of_a_delivered_file_is_marked_as_seen_where_it_is(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    deliver(alice, "bob", "raw.md")
    ok(bob, "acknowledge_handoff", from_agent="alice", filename="raw.md")
    (root / "handoff/alice_to_bob/raw.md").write_text("by hand", encoding="utf-8")
    workspace.scan()
    async with dashboard(workspace) as user:
        await user.press("exclamation_mark")
        await user.until(lambda: user.place == "handoffs", "the handoffs")
        await marks_as_seen(user, "external edit")
        await is_closed(user, workspace)


async def test_a_conflict_cannot_be_marked_as_seen(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    collide(alice, bob)
    async with dashboard(workspace) as user:
        await user.press("S")
        await user.is_told("settled, not only marked as seen")
        await user.goes_to("4", "files")
        await user.press("S")
        await user.is_told("No item that needs you is under the cursor")


async def test_the_palette_changes_how_needs_are_announced(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        for said in ("desktop notification", "bell and notification", "Alerts: off", "bell"):
            await user.chooses("alerts")
            await user.is_told(said)
