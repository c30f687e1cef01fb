"""Search all texts, messages and calls in the journal as the person types, and go to a hit."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from threading import Event
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input
from watchroom.errors import InvalidSearch, JournalError
from watchroom.history.search import Hit, SearchIndex, SearchQuery, SearchResult, open_index, parse_query
from watchroom.model import Row, Zone

from watchroom_tui.context import Dashboard, RowTarget, SessionTarget
from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.dialogs.row import RowDialog
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import fit, fit_path
from watchroom_tui.formatters.local_time import local_time
from watchroom_tui.formatters.search_hit import marked_line, marked_lines
from watchroom_tui.formatters.styled_text import Line, Span, fit_line
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.localization import texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.line_widget import content
from watchroom_tui.widgets.text_pane import TextPane

WORDS: Final = "search.words"
"""The key of the remembered words among the filters."""
_HITS: Final = 100
_BEFORE: Final = 16
"""The number of characters before the first match in a line of the list."""
_OF_PATHS: Final = frozenset({"collab", "private", "handoff", "file", "repo"})
"""The zones with paths that are shown without the name of the zone."""
_WIDE: Final = 100
_AGAIN_SECONDS: Final = 1.0
"""Seconds between searches while the index is behind."""
_SHARE: Final = 0.5
"""The fraction of a core for indexing while a person waits."""

_SCREENS: Final[Mapping[Zone, str]] = {
    "agent": "tasks",
    "board": "boards",
    "collab": "files",
    "command": "tasks",
    "file": "tasks",
    "handoff": "handoffs",
    "private": "agents",
    "realtime": "documents",
    "repo": "files",
    "request": "requests",
    "session": "agents",
    "task": "tasks",
}
"""The screens for hits by zone. Other hits are shown as rows."""
_EXACT: Final[frozenset[Zone]] = frozenset({"collab", "request"})
"""The zones with screens that show the row itself."""


class HitList(ItemList[Hit]):
    """List of hits: age, actor, place, and the matched words in their context."""

    WRAPS = "never"

    def item_key(self, item: Hit) -> Hashable:
        return item.row.seq

    def cells(self, item: Hit) -> Sequence[Line]:
        row, width = item.row, self.content_area.width
        texts = texts_of(self)
        place = f"{labels.shown_path(row, texts)}{_version(item)}"
        if row.zone not in _OF_PATHS:
            place = f"{labels.zone_name(row.zone, texts)} {place}"
        actor_width, place_width = (16, 36) if width >= _WIDE else (10, 24)
        line = [
            Span(f"{self.age_of(row):>5} ", "dim"),
            Span(f"{fit(sanitize(row.actor), actor_width)} ", agent_class(row.actor)),
            Span(f"{fit_path(place, place_width)} "),
            *fit_line(marked_line(item, _BEFORE), width - actor_width - place_width - 8),
            Span(""),
        ]
        return (line,)

    def item_text(self, item: Hit) -> str:
        return f"{item.row.actor} {item.row.path} {item.excerpt}"

    def copy_text(self, item: Hit) -> str:
        return item.excerpt


class SearchDialog(ModalDialog[Hit | None]):
    """Search field with a list of hits. The result is the hit to go to, or None if the person goes back.
    ``until``: the last row to search, None for all rows."""

    BINDINGS = bindings("finding")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("finding",)

    def __init__(self, index: SearchIndex, until: int | None) -> None:
        super().__init__()
        self._index = index
        self._until = until
        self._left = Event()
        self._asked = 0
        self._answered = 0
        self._opens = False
        """Whether to open the first hit as soon as it is found."""
        self._result = SearchResult()

    def compose(self) -> ComposeResult:
        texts = self.dashboard.texts
        with Vertical(id="searching"):
            words = Input(self.dashboard.filters.get(WORDS, ""), id="words", placeholder=texts("search.hint"))
            words.border_title = content(texts("search.title"))
            words.border_subtitle = content(self.key_hints())
            yield words
            yield HitList(title="pane.hits", empty="empty.hits", id="hits", classes="pane")
            yield TextPane(title="pane.excerpt", empty="empty.excerpt", id="excerpt", classes="pane")

    @property
    def hits(self) -> HitList:
        return self.query_one(HitList)

    def on_mount(self) -> None:
        self.query_one("#words", Input).focus()
        self.set_interval(_AGAIN_SECONDS, self._follow_clock)
        self.index_missing()
        self._search()

    def on_unmount(self) -> None:
        self._left.set()

    @work(group="indexing")
    async def index_missing(self) -> None:
        """Index new rows, because no other process indexes them for viewers."""
        try:
            await asyncio.to_thread(
                self._index.index_missing, self.dashboard.journal, self._left, share=_SHARE
            )
        except JournalError as error:
            # Indexed rows can still be searched.
            self._set_subtitle(error.message(self.dashboard.language))
            return
        self._search()

    def _follow_clock(self) -> None:
        self.hits.redraw_changed()
        if self._result.is_behind and self._asked == self._answered:
            self.index_missing()

    @on(Input.Changed, "#words")
    def keep(self, event: Input.Changed) -> None:
        """Search for the typed words, and remember them."""
        self.dashboard.filters[WORDS] = event.value
        self._search()

    def _search(self) -> None:
        self._asked += 1
        if self._asked == self._answered + 1:
            self.search_newest()

    @work(group="searching")
    async def search_newest(self) -> None:
        """Search for the typed words, and repeat the search if they changed meanwhile. Run one search at a
        time."""
        while self._answered != self._asked:
            asked = self._asked
            typed = self.query_one("#words", Input).value
            query = parse_query(typed)._replace(until=self._until, limit=_HITS)
            try:
                found = await asyncio.to_thread(self._index.search, self.dashboard.journal, query)
            except (InvalidSearch, JournalError) as error:
                told = error.message(self.dashboard.language) if typed.strip() else ""
                self._show(query, SearchResult(), told)
            else:
                self._show(query, found, self._note(found))
            self._answered = asked
        if self._opens:
            self._opens = False
            self._open()

    def _show(self, query: SearchQuery, found: SearchResult, note: str) -> None:
        self._result = found
        self.hits.show_of(query, found.hits)
        self._set_subtitle(note)
        self._show_excerpt()

    def _set_subtitle(self, note: str) -> None:
        self.hits.border_subtitle = content(sanitize(note)) if note else None

    def _note(self, found: SearchResult) -> str:
        """Return a note about rows that were not searched or not shown, or about no hits. Empty otherwise."""
        texts, notes = self.dashboard.texts, []
        if found.is_behind:
            notes.append(texts("search.behind", indexed=found.indexed, last=found.last))
        if found.is_cut_off:
            notes.append(texts("search.cut_off"))
        elif found.has_more:
            notes.append(texts("search.more", count=len(found.hits)))
        elif not found.hits:
            notes.append(texts("search.none"))
        if found.oldest > 1 and found.indexed:
            notes.append(texts("search.oldest", oldest=found.oldest))
        return " ".join(notes)

    @on(ItemList.Highlighted, "#hits")
    def _show_excerpt(self) -> None:
        hit, view = self.hits.item, self.query_one("#excerpt", TextPane)
        if hit is None:
            view.clear()
            return
        row, texts = hit.row, self.dashboard.texts
        parts = [
            f"{labels.zone_name(row.zone, texts)} {labels.shown_path(row, texts)}{_version(hit)}",
            texts("search.line", line=hit.line) if hit.line else "",
            sanitize(row.actor),
            local_time(row.time),
            f"#{row.seq}",
        ]
        view.show_notice(hit, marked_lines(hit), title=" · ".join(filter(None, parts)))

    @on(Input.Submitted, "#words")
    def action_open_hit(self) -> None:
        """Go to the hit under the cursor, as soon as the search is done."""
        self._opens = self._asked != self._answered
        if not self._opens:
            self._open()

    @on(ItemList.Opened, "#hits")
    def _open(self) -> None:
        if self.hits.item is not None:
            self.dismiss(self.hits.item)

    def action_hit(self, step: int) -> None:
        self.hits.action_move(step)

    def action_hit_page(self, pages: int) -> None:
        self.hits.action_page(pages)


def _version(hit: Hit) -> str:
    """Return the displayed version of ``hit``, empty if the hit is not in a text."""
    return f" v{hit.row.version}" if hit.row.version is not None and hit.line else ""


async def search_everything(app: Dashboard) -> None:
    """Ask for words, and go to the chosen hit. Await this in a worker."""
    root = app.root if app.workspace is None else app.workspace.root
    if root is None:
        app.show_message(app.texts("search.impossible"), "warning")
        return
    if app.workspace is None:
        index = await asyncio.to_thread(open_index, root)
    else:
        index = app.workspace.search_index
    hit = await app.push_screen_wait(SearchDialog(index, None if app.is_live else app.model.seq))
    if hit is not None:
        await _go_to(app, hit.row)


async def _go_to(app: Dashboard, row: Row) -> None:
    """Go to the place of ``row``. Show the row above the screen if the screen cannot show the row itself."""
    is_step = row.zone == "session" and row.version is not None
    screen = _SCREENS.get(row.zone)
    if screen is not None:
        target = SessionTarget(row.path, row.version or 0) if is_step else RowTarget(row)
        await app.navigator.go_to(screen, target)
    if row.zone not in _EXACT and not is_step:
        app.push_screen(RowDialog(row))
