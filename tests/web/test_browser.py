"""The dashboard in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok, refused
from watchroom import Workspace
from web.browsing import CHROMIUM, browser_at, served

pytestmark = [
    pytest.mark.slow(1),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


def with_conflict(root: Path) -> None:
    """A shared file on which two agents collided."""
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        alice, bob = workspace.tools("alice"), workspace.tools("bob")
        base = {"filepath": "plan.md", "message": "m"}
        ok(alice, "collab_write", **base, content="one\ntwo\n", expected_version=0)
        ok(alice, "collab_write", **base, content="one\nalice\n", expected_version=1)
        refused(bob, "collab_write", **base, content="one\nbob\n", expected_version=1)


async def test_a_conflict_is_settled_by_keyboard_after_a_write_made_meanwhile(root: Path) -> None:
    with_conflict(root)
    with served(root, "--as", "dana") as url:
        async with browser_at(url) as tab:
            await tab.sees("watchroom", "alice", "conflict")
            with Workspace.open(root, scan=False) as workspace:
                ok(workspace.tools("alice"), "save_to_my_workspace", filename="meanwhile.md", content="x")
            await tab.sees("meanwhile.md")
            await tab.press("!")
            await tab.sees("region 1 of 1", "choose: c current")
            await tab.press("i")
            await tab.sees("all decided")
            await tab.press("w")
            await tab.sees("enter commit")
            await tab.press("Enter")
            await tab.sees("all well")
    with Workspace.open(root) as workspace:
        head = workspace.journal.head("collab", "plan.md")
        assert head is not None
        assert (head.actor, workspace.journal.content(head.seq)) == ("human:dana", "one\nbob\n")
        assert workspace.verify() == []


async def test_who_may_only_look_changes_nothing(root: Path) -> None:
    with_conflict(root)
    with served(root, "--view") as url:
        async with browser_at(url) as tab:
            await tab.sees("view only", "conflict")
            await tab.press("!")
            await tab.sees("region 1 of 1")
            await tab.press("i", "w")
            await tab.sees("View only")
    with Workspace.open(root) as workspace:
        head = workspace.journal.head("collab", "plan.md")
        assert head is not None
        assert head.actor == "alice"


async def test_nothing_is_fetched_from_anywhere_else(root: Path) -> None:
    with_conflict(root)
    asked: list[str] = []
    with served(root) as url:
        async with browser_at(url) as tab:
            tab.page.on("requestfinished", lambda request: asked.append(request.url))
            await tab.page.reload()
            await tab.sees("watchroom")
    address = url.partition("?")[0]
    assert asked
    assert all(each.startswith((address, "data:")) for each in asked)
