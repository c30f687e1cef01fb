"""The versions of a file as a timeline; refused writes branch off it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from watchroom.model import Row
from watchroom.texts import Catalogue

from watchroom_tui import describe
from watchroom_tui.columns import fit, format_age, size
from watchroom_tui.localization import now_of, texts_of
from watchroom_tui.readers.versions import find_equal_versions
from watchroom_tui.sanitize import sanitize
from watchroom_tui.styled_text import Line, Span, width_of
from watchroom_tui.theme import agent_class
from watchroom_tui.widgets.line_list import LineList

SIZED_FROM: Final = 64
"""From so many columns on, the timeline says how large each version is."""


def version_name(row: Row) -> str:
    """The version, or what a row is that made none: refused, or an edit made by hand."""
    if row.version is not None:
        return f"v{row.version}"
    return "✎" if row.error == "outside_edit" else "✗"


class VersionTimeline(LineList[Row]):
    """Newest first. One version can be marked, to be compared with others; broken ones say what is wrong."""

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._marked: Row | None = None
        self._broken: Mapping[int, str] = {}
        self._same: Mapping[int, int] = {}

    @property
    def marked(self) -> Row | None:
        return self._marked

    def mark(self, row: Row | None) -> None:
        """Mark this version, or none."""
        self._marked = row
        self._retitle()
        self._redraw_changed()

    def show(self, items: Sequence[Row]) -> None:
        if items is not self.items:
            self._same = find_equal_versions(items)
        super().show(items)

    def show_broken(self, broken: Mapping[int, str]) -> None:
        """Say of these rows, by their numbers, what is wrong with them."""
        self._broken = broken
        self._redraw_changed()

    def item_key(self, item: Row) -> Hashable:
        return item.seq

    def render_key(self, item: Row) -> Hashable:
        is_marked = self._marked is not None and item.seq == self._marked.seq
        return (item.seq, self.age_of(item), is_marked, self._broken.get(item.seq), self._same.get(item.seq))

    def title_text(self, title: str) -> str:
        return title if self._marked is None else f"{title}  ◆ {version_name(self._marked)}"

    @property
    def tab_text(self) -> str:
        """What stands on this pane's tab: the mark stands in its title."""
        return f"{texts_of(self)(self._title)} {len(self.items)}"

    def line(self, item: Row, width: int) -> Line:
        texts = texts_of(self)
        broken = self._broken.get(item.seq)
        style = "error" if broken else _style(item)
        spans = [
            self._mark_of(item, broken is not None),
            Span(fit(version_name(item), 6), "strong" if item.version is not None and not broken else style),
            Span(fit(sanitize(item.actor), 12), agent_class(item.actor)),
        ]
        if broken:
            spans.append(Span(fit(" " + broken, width - width_of(spans)).rstrip(), "error"))
            return spans
        spans += [
            Span(fit(format_age(item.time, now_of(self)), 6, "right") + "  ", "dim"),
            # Where there is little space, what was meant says more than how much it is.
            Span(fit(size(item.size), 9, "right") + "  " if width >= SIZED_FROM else "", "dim"),
        ]
        said = sanitize(item.message) or describe.outcome_span(item, texts).text
        if item.seq in self._same:
            spans.append(Span(texts("files.same_text", version=self._same[item.seq]) + "  ", "ok"))
        rest = width - width_of(spans)
        spans.append(Span(fit(said, rest).rstrip(), "" if item.version is not None else "dim"))
        return spans

    def _mark_of(self, item: Row, is_broken: bool) -> Span:
        is_marked = self._marked is not None and item.seq == self._marked.seq
        if item.version is None:
            return Span(" │╰◆", "accent") if is_marked else Span(" │╰◌", _style(item))
        if is_marked:
            return Span(" ◆─ ", "accent")
        return Span(" ✖─ ", "error") if is_broken else Span(" ●─ ", "ok")

    def item_text(self, item: Row) -> str:
        texts: Catalogue = texts_of(self)
        said = (version_name(item), item.actor, item.message, describe.outcome_span(item, texts).text)
        return " ".join((*said, self._broken.get(item.seq, "")))


def _style(row: Row) -> str:
    if row.version is not None:
        return "ok"
    return "warning" if row.error == "outside_edit" else "error"
