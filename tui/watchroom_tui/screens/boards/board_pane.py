"""Show the selected board: its text and its summary."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from watchroom.errors import WatchroomError
from watchroom.model import Row

from watchroom_tui.formatters.board_summary import with_headings
from watchroom_tui.formatters.board_tree import BoardItem
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.keys.keymap import shown_key
from watchroom_tui.markdown.board_drawing import BoardDrawing
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.readers.board import BoardSnapshot, read_board
from watchroom_tui.screens.boards.board_list import board_name
from watchroom_tui.screens.boards.summary_panel import BoardPanel
from watchroom_tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from watchroom_tui.base_screen import BaseScreen

SUMMED_UP_AFTER: Final = 0.1
"""Seconds without a new version or another board before the summary is read."""


class BoardPane:
    """Shows the text of a board in ``view`` and its summary in ``panel``."""

    def __init__(self, screen: BaseScreen, view: TextPane, panel: BoardPanel) -> None:
        self._screen = screen
        self._app = screen.dashboard
        self._view = view
        self._panel = panel
        self._item: BoardItem | None = None
        self._asked: tuple[str, Row | None] | None = None
        self._reading: BoardSnapshot | None = None
        self._looked: dict[str, int] = {}
        """The newest version of each board that a person has seen."""

    @property
    def reading(self) -> BoardSnapshot | None:
        """The board under the cursor, None until it is read."""
        return self._reading

    def unseen(self, boards: Iterable[BoardItem]) -> dict[str, int]:
        """Return the number of unseen versions by board, without boards that have none. The
        versions of a board at the first call count as seen."""
        shown = self._item.name if self._item else None
        return {
            each.name: each.version - self._looked[each.name]
            for each in boards
            if each.version > self._looked.setdefault(each.name, each.version) and each.name != shown
        }

    def show(self, item: BoardItem | None) -> None:
        """Show ``item``, and read it again if it has a new version."""
        self._item = item
        if item is None:
            self._asked = self._reading = None
            self._view.clear()
            self._panel.show_message(())
            return
        self._looked[item.name] = item.version
        if self._asked is None or self._asked[0] != item.name:
            self._reading = None
            self._panel.wait()
        wanted = (item.name, item.view.head if item.view else None)
        if wanted != self._asked:
            self._asked = wanted
            self._start(partial(self._load, item))

    def _start(self, work: Callable[[], Awaitable[None]]) -> None:
        self._screen.run_worker(work, group="board", exclusive=True)

    async def _load(self, item: BoardItem) -> None:
        app = self._app
        head = item.view.head if item.view else None
        try:
            reading = await asyncio.to_thread(read_board, app.journal, item.name, head, app.model.seq)
        except WatchroomError as error:
            self._reading = None
            self._view.show_notice(
                item.name, [[], [Span(f" {sanitize(str(error))}", "error")]], title=item.name
            )
            self._panel.show_message(())
            return
        self._reading = reading
        if item.view is None:
            said = app.texts("boards.unwritten", shown=shown_key("edit_board", app.keymap))
            self._view.show_notice(item.name, [[], [Span(" "), Span(said, "dim")]], title=self._title(item))
            self._panel.show_message(())
            return
        drawing = await asyncio.to_thread(BoardDrawing, reading.data)
        self._view.show_drawing(item.name, drawing, title=self._title(item))
        await asyncio.sleep(SUMMED_UP_AFTER)
        found = await app.worker_process.summary(reading.data, app.language)
        self._panel.show_message(with_headings(found))

    def _title(self, item: BoardItem) -> str:
        texts = self._app.texts
        name = board_name(item, texts)
        if item.view is None:
            return f"{name}  {texts('boards.template')}"
        head = item.view.head
        said = f" · {sanitize(head.message)}" if head.message else ""
        return f"{name}  v{head.version} · {sanitize(head.actor)}{said}"
