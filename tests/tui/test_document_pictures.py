"""Pictures of realtime documents, at each size and in both languages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from calls import ok
from documents import create
from syrupy.assertion import SnapshotAssertion
from tui.driver import MIDDLE, NARROW, User, past
from tui.pictures import ALL, Sizes, at_rest, pictured
from tui.recorded import recorded
from watchroom import Workspace
from watchroom.kernel.journal import Journal
from watchroom.texts import Language

NOTES = (
    ("alice", 0, "The parser reads every event once.\n"),
    ("bob", 35, "看板由三个 Agent 同时编辑，互不覆盖。\n"),
    ("charlie", 4, "new "),
    ("alice", 62, "- who reviews the export on Friday?\n- [bold]not markup[/bold] \x1b[31m\n"),
    ("bob", 74, "carefully "),
)
SCHEMA = {
    "title": "lww_register",
    "notes": "rga",
    "tasks": "or_set",
    "owners": "lww_map",
    "done": "pn_counter",
}


def writing_together(root: Path) -> None:
    with Workspace.open(root, agents=["alice", "bob", "charlie"]) as workspace:
        box = {name: workspace.tools(name) for name in ("alice", "bob", "charlie")}
        for doc_id in ("glossary", "kanban"):
            create(box["alice"], doc_id, **SCHEMA)
        on = {"doc_id": "kanban"}
        ok(box["alice"], "realtime_set_field", **on, field_name="title", value="Sprint 1")
        for agent, position, text in NOTES:
            ok(box[agent], "realtime_get_field", **on, field_name="notes")
            args = {"position": position, "text": text}
            ok(box[agent], "realtime_edit_text", **on, field_name="notes", operation="insert", args=args)
        for agent, task in (("alice", "write docs"), ("bob", "fix export"), ("charlie", "翻译界面")):
            ok(box[agent], "realtime_edit_set", **on, field_name="tasks", operation="add", element=task)
        owner = {"who": "charlie", "since": "Monday"}
        ok(box["charlie"], "realtime_set_field", **on, field_name="owners", key="parser", value=owner)
        for agent, amount in (("alice", 5), ("bob", 3), ("charlie", 1)):
            counted = {"operation": "increment", "amount": amount}
            ok(box[agent], "realtime_edit_counter", **on, field_name="done", **counted)
        ok(box["bob"], "realtime_edit_counter", **on, field_name="done", operation="decrement")
        workspace.flush()


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    found = recorded(tmp_path_factory.mktemp("together"), writing_together)
    yield found
    found.close()


async def goes_to_document(user: User) -> None:
    await user.goes_to("5", "documents")
    await user.press("down", "enter")
    await user.sees("The new parser", "v15 of 15")


async def goes_to_an_earlier_version(user: User) -> None:
    await goes_to_document(user)
    await user.press(*["left_square_bracket"] * 9)
    await user.sees("v6 of 15")


async def goes_to_list(user: User) -> None:
    await user.goes_to("5", "documents")
    await user.sees("glossary", "kanban")


SCREENS = {
    "document": goes_to_document,
    "earlier": goes_to_an_earlier_version,
    "documents": goes_to_list,
}


async def drawn(user: User) -> str:
    """Return the still screen. The times of writes are in their stamps, so they differ on each day."""
    return re.sub(r"\d\d:\d\d:\d\d", "12:00:00", await at_rest(user))


PICTURED: Final[Mapping[str, Sizes]] = {
    "document": ALL,
    "earlier": (MIDDLE,),
    "documents": (NARROW,),
}


@pytest.mark.parametrize(("screen", "size"), pictured(PICTURED))
async def test_every_screen(
    journal: Journal, picture: SnapshotAssertion, size: tuple[int, int], screen: str
) -> None:
    async with past(journal, journal.last_seq(), size=size) as user:
        await SCREENS[screen](user)
        assert await drawn(user) == picture


async def test_in_chinese(journal: Journal, picture: SnapshotAssertion) -> None:
    language: Language = "zh"
    async with past(journal, journal.last_seq(), language=language) as user:
        await user.goes_to("5", "documents")
        await user.press("down", "enter")
        await user.sees("The new parser", "v15 / 15")
        assert await drawn(user) == picture
