"""The list of a team's boards."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import ClassVar

from watchroom.texts import Catalogue

from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.board_tree import BoardItem
from watchroom_tui.formatters.columns import Column, format_age
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.localization import now_of, texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList

_OWNERS_FROM = 38
"""Minimum width in columns at which the list names the owners of boards."""


def board_name(item: BoardItem, texts: Catalogue) -> str:
    """Return the name of a board for people: its layer, its role or its agent."""
    if item.board is None:
        return sanitize(item.name)
    if item.board.kind in ("global", "top"):
        return texts(f"boards.{item.board.kind}")
    return sanitize(item.board.owner)


class BoardList(ItemList[BoardItem]):
    """Boards as a tree, with their owners, lock holders, versions and ages. Unseen versions, drafts and
    conflicts are marked."""

    COLUMNS: ClassVar = (
        Column(least=1),
        Column(least=8, grows=True),
        Column(),
        Column(),
        Column(least=3, most=24),
        Column(least=2, align="right"),
        Column(least=4, align="right"),
    )

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._unseen: Mapping[str, int] = {}
        self._drafts: frozenset[str] = frozenset()

    def show_boards(
        self, boards: tuple[BoardItem, ...], unseen: Mapping[str, int], drafts: Iterable[str]
    ) -> None:
        """Show ``boards``.

        - ``unseen``: the number of versions of each board that a person has not seen.
        - ``drafts``: the names of the boards with a draft.
        """
        self._unseen, self._drafts = unseen, frozenset(drafts)
        self.show(boards)

    def item_key(self, item: BoardItem) -> Hashable:
        return item.name

    def cells(self, item: BoardItem) -> Sequence[Line]:
        texts, now = texts_of(self), now_of(self)
        unseen, holder = self._unseen.get(item.name, 0), item.holder(now)
        name = board_name(item, texts)
        owners = _owners(item, name, is_named=self.content_area.width >= _OWNERS_FROM)
        style = "strong" if unseen else "" if item.version else "dim"
        return (
            [Span("●" if unseen else " ", "accent")],
            [Span(item.guides, "number"), Span(name, style), *([Span(" "), *owners] if owners else ())],
            [Span("✐" if item.name in self._drafts else "", "human")],
            [Span("⚔" if item.conflicts else "", "error")],
            [Span(f"✎ {sanitize(holder)}" if holder else "", agent_class(holder))],
            [Span(f"v{item.version}" if item.view else "–", "ok" if item.view else "dim")],
            [Span(format_age(item.view.head.time, now) if item.view else "", "dim")],
        )

    def item_text(self, item: BoardItem) -> str:
        return " ".join((item.name, *item.owners))

    def copy_text(self, item: BoardItem) -> str:
        return item.name


def _owners(item: BoardItem, name: str, *, is_named: bool) -> Line:
    """Return a mark in the colour of each owner. A single owner's name follows if ``is_named`` and the board
    has another name."""
    return [
        Span(
            f"▍{owner} " if is_named and owner != name and len(item.owners) == 1 else "▍", agent_class(owner)
        )
        for owner in item.owners
    ]
