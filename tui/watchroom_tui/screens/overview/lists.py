"""The lists of the overview: the needs and the activity."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar, Final

from watchroom.features.overview.edit_rows import without_repeats
from watchroom.features.overview.model import ActivityEntry, Need
from watchroom.model import Row

from watchroom_tui.context import dashboard_of
from watchroom_tui.formatters import labels, need_texts
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.machines import RemoteNeed, sent_text
from watchroom_tui.formatters.needs import (
    NeedKeys,
    need_keys,
    need_matter,
    need_party,
    need_time,
    remote_need_keys,
)
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.keymap import shown_key
from watchroom_tui.presentation.localization import keymap_of, now_of, texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.row_list import RowList

VERBS_FROM: Final = 96
"""Minimum width in columns to label the keys."""


class NeedList(ItemList[Need | RemoteNeed]):
    """The items that wait for a person, most urgent first, then those of other machines."""

    COLUMNS: ClassVar = (
        Column(least=2),
        Column(least=8, most=12),
        Column(least=8, most=40, cut="middle"),
        Column(least=8, grows=True),
        Column(least=9, align="right"),
        Column(least=5, from_width=56),
    )

    def item_key(self, item: Need | RemoteNeed) -> Hashable:
        return item.identity if isinstance(item, RemoteNeed) else (item.kind, item.key)

    def cells(self, item: Need | RemoteNeed) -> Sequence[Line]:
        texts = texts_of(self)
        answers = dashboard_of(self).can_act
        keymap = keymap_of(self)
        named = NeedKeys(*(shown_key(each, keymap) for each in ("approve_need", "reject_need", "open")))
        if isinstance(item, RemoteNeed):
            keys = remote_need_keys(item, texts, named, can_act=answers)
        else:
            keys = need_keys(item, texts, named, can_act=answers)
        if self.content_area.width < VERBS_FROM:
            keys = keys.rpartition(" ")[0]
        if isinstance(item, RemoteNeed):
            return self._remote_cells(item, keys)
        party = need_party(item, texts)
        return (
            [Span(" "), labels.NEED_MARKS[item.kind]],
            [Span(need_texts.need_kind(item, texts), "strong")],
            [party],
            [Span(need_matter(item, texts))],
            [need_time(item, now_of(self), texts)],
            [Span(keys, "key")],
        )

    def _remote_cells(self, item: RemoteNeed, keys: str) -> Sequence[Line]:
        """Return the cells of a need of another machine. Without a connection, it is dimmed."""
        texts, need, view = texts_of(self), item.need, item.view
        sent = sent_text(view, need.row, texts)
        matter = [Span(f"{sent}  ", "warning")] if sent else []
        is_known = view.is_connected
        return (
            [Span(" "), Span("⇄", "accent" if is_known else "dim")],
            [Span(sanitize(need.kind), "strong" if is_known else "dim")],
            [Span(item.party, agent_class(need.agent) if need.agent and is_known else "dim")],
            [*matter, Span(sanitize(need.matter), "" if is_known else "dim")],
            [need_time(item, now_of(self), texts)],
            [Span(keys, "key")],
        )

    def copy_text(self, item: Need | RemoteNeed) -> str:
        return item.party if isinstance(item, RemoteNeed) else item.hint or item.row.path


class ActivityList(RowList):
    """The activity, newest first. Successive reads of an agent are one line until they are unfolded."""

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._folds: Mapping[int, tuple[int, int]] = {}

    def show_folded(self, entries: Sequence[ActivityEntry]) -> None:
        """Show ``entries``, newest first. Successive reads of an agent, and the rows of one edit, are one
        line."""
        kept = {row.seq for row in without_repeats([entry.row for entry in entries])}
        # The model has counted each read once. Its row may be a call with an equal row near it.
        entries = [entry for entry in entries if entry.readings or entry.row.seq in kept]
        before = [entry.row.seq for entry in entries[1:]]
        # The key of a fold is the row before it, because the fold grows at its newer end.
        self._folds = {
            entry.row.seq: (entry.readings, seq)
            for entry, seq in zip(entries, [*before, 0], strict=False)
            if entry.readings
        }
        self.show([entry.row for entry in entries])

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Show ``rows``, newest first, without folds."""
        self._folds = {}
        self.show(rows)

    def is_folded(self, item: Row) -> bool:
        """Return whether the line of ``item`` is a fold of several reads."""
        return self._folds.get(item.seq, (0, 0))[0] > 1

    def item_key(self, item: Row) -> Hashable:
        fold = self._folds.get(item.seq)
        return item.seq if fold is None else ("after", fold[1])

    def cells(self, item: Row) -> Sequence[Line]:
        time, actor, tool, path, outcome = super().cells(item)
        if not self.is_folded(item):
            return time, actor, tool, path, outcome
        readings = texts_of(self)("activity.readings", count=self._folds[item.seq][0])
        return time, actor, [Span(readings, "dim")], [Span(path[0].text, "dim")], ()
