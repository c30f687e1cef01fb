"""The versions of a file as a timeline, with refused writes as branches."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from watchroom.features.trees.rows import REPO
from watchroom.kernel.rules.details import met_version
from watchroom.model import Row

from watchroom_tui.context import dashboard_of
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.columns import Column, size
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList

SIZED_FROM: Final = 64
"""Minimum number of columns to show the size of each version."""


def version_name(row: Row) -> str:
    """Return the version number, or a sign for a row without a version: a refused write or an external
    edit."""
    if row.version is not None:
        return f"v{row.version}"
    return "✎" if row.error == "outside_edit" else "✗"


class VersionTimeline(ItemList[Row]):
    """Versions, newest first. One version can be marked for comparison. Broken versions show their
    problem."""

    COLUMNS: ClassVar = (
        Column(least=3),
        Column(least=2),
        Column(least=8, most=20),
        Column(least=4, align="right"),
        # With little space, the message is more useful than the size.
        Column(align="right", from_width=SIZED_FROM),
        Column(least=10, grows=True),
    )

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._marked: Row | None = None
        self._broken: Mapping[int, str] = {}
        self._same: Mapping[int, int] = {}

    @property
    def marked(self) -> Row | None:
        return self._marked

    @property
    def compared(self) -> Row | None:
        """The marked version, if the cursor is on another one."""
        row, marked = self.item, self._marked
        return marked if marked is not None and (row is None or marked.seq != row.seq) else None

    def flip_mark(self) -> None:
        """Mark the version under the cursor, or remove its mark."""
        if self.item is not None:
            self.mark(self.item if self._marked is None or self._marked.seq != self.item.seq else None)

    def mark(self, row: Row | None) -> None:
        """Mark the version of ``row``. None removes the mark."""
        self._marked = row
        self._retitle()
        self.redraw_changed()

    def show(self, items: Sequence[Row]) -> None:
        if items is not self.items:
            self._same = _find_equal_versions(items)
        super().show(items)

    def show_broken(self, broken: Mapping[int, str]) -> None:
        """Show problems of rows, by row number."""
        self._broken = broken
        self.redraw_changed()

    def item_key(self, item: Row) -> Hashable:
        return item.seq

    def title_text(self, title: str) -> str:
        return title if self._marked is None else f"{title}  ◆ {version_name(self._marked)}"

    @property
    def tab_text(self) -> str:
        """The name on this pane's tab, without the mark, which is in the title."""
        return f"{texts_of(self)(self._title)} {len(self.items)}"

    def cells(self, item: Row) -> Sequence[Line]:
        broken = self._broken.get(item.seq)
        style = "error" if broken else self._style_of(item)
        is_current = item.version is not None and not broken
        age, kept = (self.age_of(item), size(item.size)) if not broken else ("", "")
        return (
            [self._mark_of(item, style)],
            [Span(version_name(item), "strong" if is_current else style)],
            [labels.actor_span(item)],
            [Span(age, "dim")],
            [Span(kept, "dim")],
            [Span(broken, "error")] if broken else self._message_line(item),
        )

    def _message_line(self, item: Row) -> Line:
        texts = texts_of(self)
        is_plain = item.zone == REPO and item.version is not None and not item.deleted
        told = labels.origin_text(item, texts) if is_plain else labels.outcome_span(item, texts).text
        said = Span(sanitize(item.message) or told, "" if item.message and item.version else "dim")
        if item.seq not in self._same:
            return [said]
        return [Span(texts("files.same_text", version=self._same[item.seq]) + "  ", "ok"), said]

    def _mark_of(self, item: Row, style: str) -> Span:
        is_marked = self._marked is not None and item.seq == self._marked.seq
        if item.version is None:
            return Span(" ├◆", "accent") if is_marked else Span(" ├◌", style)
        if is_marked:
            return Span(" ◆─", "accent")
        return Span(" ✖─" if style == "error" else " ●─", style)

    def _style_of(self, item: Row) -> str:
        """Return the style for an accepted, open or settled row."""
        if item.version is not None:
            return "ok"
        if not dashboard_of(self).model.is_open(item):
            return "dim"
        return "warning" if item.error == "outside_edit" else "error"

    def item_text(self, item: Row) -> str:
        return f"{super().item_text(item)} {labels.outcome_span(item, texts_of(self)).text}"


def _find_equal_versions(timeline: Iterable[Row]) -> dict[int, int]:
    """Return the refused writes whose text equals a version, by row number, with the newest such version
    since the write.

    ``timeline``: the rows, newest first.
    """
    newest: dict[str, int] = {}
    waiting: list[Row] = []
    for row in timeline:
        if row.version is None:
            waiting.append(row)
        elif row.sha256 is not None:
            newest.setdefault(row.sha256, row.version)
    equal = {row.seq: (newest.get(row.sha256 or "", 0), met_version(row)) for row in waiting}
    return {seq: version for seq, (version, met) in equal.items() if met is not None and version >= met > -1}
