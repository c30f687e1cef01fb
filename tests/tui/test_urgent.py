"""One key goes to the most urgent need."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest
from calls import ok, refused
from clock import JumpingClock
from tui.driver import dashboard, past
from tui.recorded import SECOND, recorded
from tui.team import PLAN, deliver, opens_merge, stale_write, write
from watchroom import Toolbox, Workspace
from watchroom.features.requests.rows import Request
from watchroom.kernel.call_context import CallContext


async def test_urgent_goes_to_the_merge_of_a_conflict_over_its_file(
    workspace: Workspace, alice: Toolbox, conflict: int
) -> None:
    deliver(alice, "bob", "less-urgent.md")
    async with dashboard(workspace) as user:
        draft = await opens_merge(user)
        assert draft.sides.incoming.seq == conflict
        await user.press("escape")
        await user.until(lambda: user.place == "files", "the files")
        await user.until(lambda: getattr(user.cursor("versions"), "seq", 0) == conflict, "the refused row")
        assert user.cursor("shared").path == PLAN
        assert user.pane == "versions"
        await user.sees("+ late", "− one")


async def test_urgent_says_that_all_is_well_when_nothing_waits(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.press("exclamation_mark")
        await user.is_told("all well")
        assert user.place == "overview"


async def test_urgent_goes_to_the_headers_next_need_on_the_same_screen_too(workspace: Workspace) -> None:
    for step, agent in enumerate(("alice", "bob"), 1):
        workspace.requests.ask(
            CallContext(agent), f"{agent}/mcp/{step}", Request("prompt", f"Which, {agent}?")
        )
    async with dashboard(workspace) as user:
        await user.goes_to("7", "requests")
        for agent, following in (("alice", "bob"), ("bob", "alice"), ("alice", "bob")):
            await user.sees(f"next: question {agent}")
            await user.press("exclamation_mark")
            await user.until(lambda agent=agent: user.cursor("requests").agent == agent, agent)  # type: ignore[misc]
            await user.sees(f"next: question {following}")


async def test_urgent_goes_to_a_new_deadline_first(workspace: Workspace) -> None:
    for step, agent in enumerate(("alice", "bob"), 1):
        workspace.requests.ask(CallContext(agent), f"{agent}/mcp/{step}", Request("prompt", "Which?"))
    async with dashboard(workspace) as user:
        await user.press("exclamation_mark")
        await user.sees("next: question bob")
        soon = Request("prompt", "Soon?", expires=time.time_ns() + 600 * SECOND)
        workspace.requests.ask(CallContext("charlie"), "charlie/mcp/1", soon)
        await user.sees("next: question charlie")
        await user.press("exclamation_mark")
        await user.until(lambda: user.cursor("requests").agent == "charlie", "charlie")
        await user.sees("next: question bob")


async def test_urgent_starts_again_after_the_person_has_gone_elsewhere(workspace: Workspace) -> None:
    for step, agent in enumerate(("alice", "bob"), 1):
        workspace.requests.ask(CallContext(agent), f"{agent}/mcp/{step}", Request("prompt", "Which?"))
    async with dashboard(workspace) as user:
        await user.press("exclamation_mark")
        await user.sees("next: question bob")
        await user.goes_to("1", "overview")
        await user.sees("next: question alice")
        assert user.list("needs").items[0].agent == "alice"
        await user.press("exclamation_mark")
        await user.until(lambda: user.cursor("requests").agent == "alice", "alice")


async def test_requests_are_in_the_order_of_the_needs(workspace: Workspace) -> None:
    now = time.time_ns()
    for agent, seconds in (("alice", 0), ("bob", 900), ("charlie", 600)):
        expires = now + seconds * SECOND if seconds else None
        workspace.requests.ask(
            CallContext(agent), f"{agent}/mcp/1", Request("prompt", "Which?", expires=expires)
        )
    async with dashboard(workspace) as user:
        await user.goes_to("7", "requests")
        await user.until(lambda: len(user.list("requests").items) == 3, "the requests")
        assert [each.agent for each in user.list("requests").items] == ["charlie", "bob", "alice"]
        for agent in ("charlie", "bob", "alice", "charlie"):
            await user.sees(f"next: question {agent}")
            await user.press("exclamation_mark")
            await user.until(lambda agent=agent: user.cursor("requests").agent == agent, agent)  # type: ignore[misc]


async def test_urgent_finds_the_file_behind_a_filter(workspace: Workspace, conflict: int) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.press("slash", *"zoo", "enter")
        await user.until(lambda: len(user.list("shared").items) == 1, "the filtered list")
        await opens_merge(user)
        await user.press("escape")
        await user.until(lambda: getattr(user.cursor("versions"), "seq", 0) == conflict, "the refused row")


def two_deliveries(root: Path) -> None:
    """Make two handoffs, and acknowledge the later one."""
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        alice, bob = workspace.tools("alice"), workspace.tools("bob")
        deliver(alice, "bob", "one.md")
        deliver(alice, "bob", "two.md")
        ok(bob, "acknowledge_handoff", from_agent="alice", filename="two.md")


@pytest.mark.parametrize("keys", [("enter",), ("exclamation_mark",)], ids=["enter", "urgent"])
async def test_a_handoff_that_waits_long_is_gone_to(tmp_path: Path, keys: tuple[str, ...]) -> None:
    with closing(recorded(tmp_path, two_deliveries, apart=600 * SECOND)) as journal:
        async with past(journal, journal.last_seq()) as user:
            await user.sees("⚑ 1 needs you")
            await user.press(*keys)
            await user.until(lambda: user.place == "handoffs", "the handoffs")
            await user.until(lambda: getattr(user.cursor("deliveries"), "filename", "") == "one.md", "one.md")
            await user.until(lambda: "about one.md" in user.words_in("#content"), "its message")


async def test_a_new_handoff_is_not_urgent(tmp_path: Path) -> None:
    with closing(recorded(tmp_path, two_deliveries, apart=SECOND)) as journal:
        async with past(journal, journal.last_seq()) as user:
            await user.sees("✓ all well")


async def test_urgent_for_a_stubborn_agent_goes_to_that_agent(workspace: Workspace, charlie: Toolbox) -> None:
    for _ in range(3):
        refused(charlie, "save_to_my_workspace", filename="../x", content="")
    async with dashboard(workspace) as user:
        await user.press("exclamation_mark")
        await user.until(lambda: user.place == "agents", "the agents")
        await user.until(lambda: user.cursor("agents").agent.id == "charlie", "charlie")
        await user.sees("denied: invalid_path")


async def test_urgent_for_an_edit_of_a_delivered_file_goes_to_that_handoff(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(alice, "one\n", 0)
    deliver(alice, "bob", "raw.md")
    deliver(alice, "bob", "newer.md")
    (root / "handoff/alice_to_bob/raw.md").write_text("by hand", encoding="utf-8")
    workspace.scan()
    async with dashboard(workspace) as user:
        await user.press("exclamation_mark")
        await user.until(lambda: user.place == "handoffs", "the handoffs")
        await user.until(lambda: getattr(user.cursor("deliveries"), "filename", "") == "raw.md", "raw.md")


async def test_urgent_goes_to_what_is_new_since_the_last_visit_of_its_screen(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "one\n", 0)
    deliver(alice, "bob", "older.md")
    async with dashboard(workspace) as user:
        await user.goes_to("3", "handoffs")
        await user.until(lambda: user.list("deliveries").items, "the deliveries")
        await user.goes_to("2", "agents")
        deliver(alice, "bob", "raw.md")
        deliver(alice, "bob", "newer.md")
        (root / "handoff/alice_to_bob/raw.md").write_text("by hand", encoding="utf-8")
        workspace.scan()
        await user.sees("⚑ 1 needs you")
        await user.press("exclamation_mark")
        assert user.place == "handoffs"
        assert user.cursor("deliveries").filename == "raw.md"


async def test_urgent_for_a_refused_first_write_shows_that_write(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(alice, "one\n", 0)
    stale_write(bob, "never seen before\n", 3, "none.md")
    async with dashboard(workspace) as user:
        await user.press("exclamation_mark")
        await user.sees("never seen before")


@pytest.mark.sqlite("A server has its own clock.")
async def test_every_screen_counts_needs_that_become_urgent_without_a_row(
    workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(alice, "bob", "waits.md")
    async with dashboard(workspace) as user:
        await user.goes_to("8", "activity")
        await user.sees("✓ all well")
        JumpingClock(monkeypatch).ahead = 200 * 10**9
        await user.sees("⚑ 1 needs you")
