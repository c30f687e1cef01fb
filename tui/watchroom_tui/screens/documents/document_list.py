"""The list of realtime documents."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from watchroom.projections import DocumentView
from watchroom.projections.model import bucket_of, sparkline_counts

from watchroom_tui.formatters.columns import fit, format_age, sparkline
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.localization import now_of
from watchroom_tui.sanitize import sanitize
from watchroom_tui.theme import agent_class
from watchroom_tui.widgets.line_list import LineList

_SPARK = 8
_SPARKED_FROM = 46
"""From so many columns on, the list shows how busy documents are."""
_MOST_DOTS = 4


class DocumentList(LineList[DocumentView]):
    """Documents by name: how many versions, how many of them are new, who writes, and how busy they are."""

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._unseen: Mapping[str, int] = {}

    def show_documents(self, documents: tuple[DocumentView, ...], unseen: Mapping[str, int]) -> None:
        """Show them; ``unseen`` says of how many versions a person has not seen of each."""
        self._unseen = unseen
        self.show(documents)

    def item_key(self, item: DocumentView) -> Hashable:
        return item.name

    def render_key(self, item: DocumentView) -> Hashable:
        now = now_of(self)
        unseen = self._unseen.get(item.name, 0)
        return (item.name, item.version, unseen, self.age_of(item.newest), bucket_of(now))

    def line(self, item: DocumentView, width: int) -> Line:
        now = now_of(self)
        spark = _SPARK if width >= _SPARKED_FROM else 0
        rest = max(8, width - _MOST_DOTS - 16 - spark)
        unseen = self._unseen.get(item.name, 0)
        dots = [Span("▍", agent_class(writer)) for writer in item.writers[:_MOST_DOTS]]
        return [
            Span("● " if unseen else "  ", "accent"),
            Span(fit(sanitize(item.name), rest), "strong" if unseen else ""),
            *dots,
            Span(" " * (_MOST_DOTS - len(dots))),
            Span(fit(f"v{item.version:,}", 7, "right"), "ok"),
            Span(" " + sparkline(sparkline_counts(item.activity, now), spark), "accent"),
            Span(fit(format_age(item.newest.time, now), 6, "right"), "dim"),
        ]

    def item_text(self, item: DocumentView) -> str:
        return " ".join((item.name, *item.writers))

    def copy_text(self, item: DocumentView) -> str:
        return item.name
