"""The handoffs screen: states and contents, and a filter for open ones."""

from __future__ import annotations

import pytest
from calls import ok
from tui.driver import MIDDLE, WIDE, dashboard
from tui.team import deliver
from watchroom import Toolbox, Workspace


@pytest.mark.parametrize("size", [MIDDLE, WIDE])
async def test_each_handoff_has_its_state_and_its_content_and_z_leaves_out_the_acknowledged(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, size: tuple[int, int]
) -> None:
    for name in ("one", "two", "three"):
        deliver(alice, "bob", f"{name}.md", f"content of {name}")
    ok(bob, "acknowledge_handoff", from_agent="alice", filename="one.md", message="thank you")
    ok(bob, "read_handoff", from_agent="alice", filename="two.md")
    async with dashboard(workspace, size=size) as user:
        await user.goes_to("3", "handoffs")
        await user.sees("content of three", "about three.md")
        states = {"one.md": "acknowledged", "two.md": "read", "three.md": "waiting"}
        for name, state in states.items():
            assert any(f" {name} " in line and f" {state} " in line for line in user.lines()), state
        await user.press("down", "down")
        await user.sees("content of one", "thank you")
        await user.press("z")
        await user.until(lambda: len(user.list("deliveries").items) == 2, "only what is open")
        await user.sees("Handoffs · open only")
        await user.press("z")
        await user.until(lambda: len(user.list("deliveries").items) == 3, "all")
