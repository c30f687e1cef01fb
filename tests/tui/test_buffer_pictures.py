"""Pictures of open buffers, at each size and in both languages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import ok, refused
from syrupy.assertion import SnapshotAssertion
from tui.driver import MIDDLE, NARROW, User, past
from tui.pictures import SIZES, at_rest
from tui.recorded import recorded
from watchroom import Agent, Workspace
from watchroom.kernel.journal import Journal
from watchroom.texts import Language

PLAN = """# Harbour plan

The harbour grows by 12 %.
The harbour needs a crane.

## Costs

The crane costs 4 million. 起重机四百万。
"""


def at_work(root: Path) -> None:
    """Open buffers in every state: flushed, changed, behind, both, and with an open choice."""
    team = [Agent("alice", "writes", "top"), Agent("bob", "reviews", "mid", "alice")]
    with Workspace.open(root, agents=team) as workspace:
        alice, bob = workspace.tools("alice"), workspace.tools("bob")
        ok(alice, "collab_write", filepath="docs/plan.md", content=PLAN, message="A plan.")
        ok(alice, "collab_write", filepath="docs/dates.md", content="May\nJune\n", message="Dates.")
        ok(alice, "save_to_my_workspace", filename="notes.md", content="- ask the harbour master\n")
        ok(bob, "open_buffer", source="collab", path="docs/plan.md", name="review")
        workspace.flush()
        ok(bob, "review_replace", old_text="a crane", new_text="two cranes")
        ok(bob, "open_buffer", source="collab", path="docs/dates.md")
        workspace.flush()
        ok(alice, "collab_write", filepath="docs/dates.md", content="June\n", message="Later.")
        more = PLAN + "\n## Dates\n\nDredging begins in May.\n"
        ok(alice, "collab_write", filepath="docs/plan.md", content=more, message="Dates.")
        ok(alice, "open_buffer", source="private", path="notes.md")
        workspace.flush()
        ok(alice, "open_buffer", source="board", path="global")
        workspace.flush()
        ok(alice, "global_append", text="\n- crane ordered\n")
        ok(alice, "open_buffer", source="collab", path="docs/plan.md")
        workspace.flush()
        ok(alice, "plan_replace", old_text="12 %", new_text="12.4 %")
        refused(alice, "plan_replace", old_text="harbour", new_text="port")
        workspace.flush()


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    found = recorded(tmp_path_factory.mktemp("buffers"), at_work)
    yield found
    found.close()


async def looks_at_an_agent(user: User) -> None:
    await user.goes_to("2", "agents")
    await user.until(lambda: len(user.list("buffers").items) == 3, "the buffers")
    await user.until(lambda: len(user.list("rows").items) > 3, "the rows")
    if "buffers" not in user.shown_panes():
        await user.press("tab")
    await user.until(lambda: "global" in str(user.text("preview").border_title), "the preview")


async def looks_at_all(user: User) -> None:
    await looks_at_an_agent(user)
    await user.chooses("buffers")
    await user.press("down", "down")
    await user.press("tab")
    await user.until(lambda: "SEL#2" in user.words_in("#buffer"), "the text")


@pytest.mark.parametrize("size", SIZES)
async def test_an_agent(journal: Journal, size: tuple[int, int], picture: SnapshotAssertion) -> None:
    async with past(journal, journal.last_seq(), size=size) as user:
        await looks_at_an_agent(user)
        assert await at_rest(user) == picture


@pytest.mark.parametrize("size", [NARROW, MIDDLE], ids=["80x24", "120x40"])
async def test_all_buffers(journal: Journal, size: tuple[int, int], picture: SnapshotAssertion) -> None:
    async with past(journal, journal.last_seq(), size=size) as user:
        await looks_at_all(user)
        assert await at_rest(user) == picture


@pytest.mark.parametrize("language", ["zh"])
async def test_in_chinese(journal: Journal, language: Language, picture: SnapshotAssertion) -> None:
    async with past(journal, journal.last_seq(), size=MIDDLE, language=language) as user:
        await looks_at_all(user)
        assert await at_rest(user) == picture
