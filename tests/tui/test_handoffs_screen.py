"""The handoffs screen: messages, marks and counts, and only what is open."""

from __future__ import annotations

from calls import ok
from tui.driver import dashboard
from tui.team import deliver
from watchroom import Toolbox, Workspace


async def test_the_handoffs_show_message_marks_and_counts_and_a_hides_the_acknowledged(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    deliver(alice, "bob", "one.md", "first content")
    deliver(alice, "bob", "two.md", "second content")
    ok(bob, "acknowledge_handoff", from_agent="alice", filename="one.md", message="thank you")
    async with dashboard(workspace) as user:
        await user.goes_to("3", "handoffs")
        await user.sees("second content", "“about two.md”", "2 ✉1")
        await user.press("down")
        await user.sees("first content", "thank you")
        await user.press("a")
        await user.until(lambda: len(user.list("deliveries").items) == 1, "only what is open")
        assert user.cursor("deliveries").filename == "two.md"
        await user.press("a")
        await user.until(lambda: len(user.list("deliveries").items) == 2, "all")
