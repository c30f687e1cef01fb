"""The list of realtime documents."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar

from watchroom.features.documents.view import DocumentView
from watchroom.kernel.rules.activity import sparkline_counts

from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import Column, sparkline
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.localization import now_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList

_SPARK = 8
_SPARKED_FROM = 46
"""Minimum width in columns at which the list shows the activity of documents."""
_MOST_DOTS = 4


class DocumentList(ItemList[DocumentView]):
    """Documents, each with its writers, its version, its activity, its age, and whether it has unseen
    versions."""

    COLUMNS: ClassVar = (
        Column(least=1),
        Column(least=8, grows=True),
        Column(least=1),
        Column(least=3, align="right"),
        Column(from_width=_SPARKED_FROM),
        Column(least=4, align="right"),
    )

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._unseen: Mapping[str, int] = {}

    def show_documents(self, documents: tuple[DocumentView, ...], unseen: Mapping[str, int]) -> None:
        """Show ``documents``. ``unseen``: the number of versions of each that a person has not seen."""
        self._unseen = unseen
        self.show(documents)

    def item_key(self, item: DocumentView) -> Hashable:
        return item.name

    def cells(self, item: DocumentView) -> Sequence[Line]:
        unseen = self._unseen.get(item.name, 0)
        counts = sparkline_counts(item.activity, now_of(self))
        return (
            [Span("●" if unseen else " ", "accent")],
            [Span(sanitize(item.name), "strong" if unseen else "")],
            [Span("▍", agent_class(writer)) for writer in item.writers[:_MOST_DOTS]],
            [Span(f"v{item.version:,}", "ok")],
            [Span(sparkline(counts, _SPARK), "accent")],
            [Span(self.age_of(item.newest), "dim")],
        )

    def item_text(self, item: DocumentView) -> str:
        return " ".join((item.name, *item.writers))

    def copy_text(self, item: DocumentView) -> str:
        return item.name
