"""Lists of rows of the journal."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

from watchroom.features.overview.timeline import is_reading
from watchroom.model import Row

from watchroom_tui.context import dashboard_of
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.columns import Column, pad
from watchroom_tui.formatters.local_time import local_clock
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.widgets.item_list import ItemList

SHORT_OUTCOME: Final = 9
"""Minimum number of cells of an outcome before a message."""
ALIGNED_FROM: Final = 96
"""Minimum number of columns to align the messages. Narrower lists show more of each message instead."""


class RowList(ItemList[Row]):
    """Rows of the journal, newest first."""

    GROWS_AT_TOP = True
    SHOWS_ACTOR = True
    COLUMNS: ClassVar = (
        Column(least=8, from_width=48),
        Column(least=11, most=20),
        Column(least=14, most=24),
        Column(least=16, cut="middle"),
        Column(least=20, grows=True),
    )

    def item_key(self, item: Row) -> Hashable:
        return item.seq

    def cells(self, item: Row) -> Sequence[Line]:
        texts, is_open = texts_of(self), dashboard_of(self).model.is_open(item)
        outcome, said = labels.outcome_span(item, texts, is_open=is_open), labels.row_message(item)
        if said and self.content_area.width >= ALIGNED_FROM:
            # Short outcomes are padded, so that the messages after them are aligned.
            outcome = outcome._replace(text=pad(outcome.text, SHORT_OUTCOME))
        changed_nothing = is_reading(item) or (item.version is None and item.outcome == "ok")
        return (
            [Span(local_clock(item.time), "dim")],
            [labels.actor_span(item)] if self.SHOWS_ACTOR else (),
            [Span(labels.tool_label(item, texts), "dim" if changed_nothing else "")],
            [Span(labels.shown_path(item, texts, has_trees=len(dashboard_of(self).model.trees) > 1))],
            [outcome, Span("  " + said, "dim")] if said else [outcome],
        )

    def item_text(self, item: Row) -> str:
        return " ".join((item.actor, item.tool, item.path, item.outcome, item.error, item.message))

    def copy_text(self, item: Row) -> str:
        return item.path


class OwnRowList(RowList):
    """The rows of one agent."""

    SHOWS_ACTOR = False
