"""The newest checkpoint of the journal in the footer, to compare between two screens."""

from __future__ import annotations

from threading import Event

from tui.driver import MIDDLE, NARROW, WIDE, User, dashboard, past
from watchroom import Workspace
from watchroom.history.seal import read_seals
from watchroom_tui.keys.actions import SCREENS

SEAL = "▣"


def seal(workspace: Workspace) -> str:
    """Create a checkpoint. Return its text in a wide footer."""
    workspace.flush()
    assert workspace.sealing.write_due(Event(), at_once=True)
    (recorded,) = read_seals(workspace.journal, limit=1)
    assert recorded.signed is not None
    checkpoint = recorded.signed.seal
    return f"{SEAL} {checkpoint.size} rows sealed {checkpoint.root.hex()[:8]}"


def footer(user: User) -> str:
    return user.lines()[-1]


async def test_the_footer_shows_the_newest_checkpoint(workspace: Workspace) -> None:
    async with dashboard(workspace, size=MIDDLE) as user:
        assert not user.shows(SEAL)
        first = seal(workspace)
        # Most terminals have space for the root only.
        await user.until(
            lambda: SEAL in footer(user) and first.split()[-1] in footer(user), "the first checkpoint"
        )
        workspace.tools("alice").dispatch_tool_call("collab_list", {})
        second = seal(workspace)
        await user.until(
            lambda: SEAL in footer(user) and second.split()[-1] in footer(user), "the second one"
        )
        assert footer(user).count(SEAL) == 1


async def test_the_past_shows_its_own_checkpoint(workspace: Workspace) -> None:
    before = workspace.journal.last_seq()
    first = seal(workspace)
    between = workspace.journal.last_seq()
    workspace.tools("alice").dispatch_tool_call("collab_list", {})
    seal(workspace)
    async with past(workspace.journal, between, size=WIDE) as user:
        await user.until(lambda: first in footer(user), "the checkpoint of then")
    async with past(workspace.journal, before, size=WIDE) as user:
        await user.until(lambda: user.model.seq == before, "the model of then")
        assert not user.shows(SEAL)


async def test_keys_take_precedence_over_the_checkpoint(workspace: Workspace) -> None:
    mark = seal(workspace)
    async with dashboard(workspace, size=NARROW) as user:
        await user.until(lambda: user.model.seal is not None, "a model with a checkpoint")
        for key, name in SCREENS:
            await user.goes_to(key, name)
            assert SEAL not in footer(user)
    async with dashboard(workspace, size=WIDE) as user:
        for key, name in SCREENS:
            await user.goes_to(key, name)
            # The root alone if there are many keys.
            await user.until(lambda: SEAL in footer(user), f"the checkpoint on {name}")
            assert mark.split()[-1] in footer(user)
