"""Edit a board's Markdown beside a preview. A conflict opens the merge screen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.widgets import TextArea
from watchroom.algorithms.merge import split_lines
from watchroom.features.overview.model import Model
from watchroom.kernel.reads import find_row
from watchroom.model import Json, Row

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.dialogs.commit import CommitDialog
from watchroom_tui.formatters.diff_drawing import DiffDrawing, DiffInput
from watchroom_tui.markdown.board_drawing import BoardDrawing
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.screens.boards.draft import BoardDraft
from watchroom_tui.screens.boards.text_area import BoardTextArea
from watchroom_tui.widgets.containers import Horizontal
from watchroom_tui.widgets.line_widget import content
from watchroom_tui.widgets.text_pane import TextPane

PREVIEWED_AFTER: Final = 0.1
"""Seconds after the last change or cursor movement before the preview is updated."""


class BoardEditorScreen(BaseScreen):
    """The editor of a board, on top of the boards screen. Unsaved text is kept as a draft."""

    CSS_PATH = "boards.tcss"
    SCREEN_NAME: ClassVar = "board_writing"
    AUTO_FOCUS = "#source"

    def __init__(self, draft: BoardDraft) -> None:
        super().__init__()
        self._draft = draft
        self._is_open = False
        self._is_saving = False
        self._newest = draft.version

    def compose_panes(self) -> ComposeResult:
        with Horizontal(id="body", classes="group"):
            yield BoardTextArea(id="source")
            yield TextPane(title="pane.preview", empty="empty.board", id="preview", classes="pane")

    def prepare(self) -> None:
        source = self.query_one(BoardTextArea)
        source.open(self._draft.text)
        self._is_open = True
        self._entitle()
        # The preview has its width only after the first layout.
        self.call_after_refresh(self._preview, self._draft.text)

    def show_model(self, model: Model) -> None:
        head = self._head(model)
        newest = (head.version or 0) if head else 0
        if newest != self._newest:
            self._newest = newest
            self._entitle()

    def _head(self, model: Model) -> Row | None:
        return next((board.head for board in model.boards if board.name == self._draft.name), None)

    def _entitle(self) -> None:
        texts, draft = self.dashboard.texts, self._draft
        where = f"{draft.name} > {draft.section}" if draft.section else draft.name
        title = f"{sanitize(where)}  v{draft.version}"
        if self._is_saving:
            title += "  " + texts("boards.saving")
        if self._newest > draft.version:
            head = self._head(self.dashboard.model)
            who = sanitize(head.actor) if head else ""
            title += "  " + texts("boards.meanwhile", version=self._newest, who=who)
        self.query_one(BoardTextArea).border_title = content(title)
        self._show_tabs()

    @property
    def draft(self) -> BoardDraft:
        """The draft with the current text of the editor."""
        if not self._is_open:
            return self._draft
        return self._draft._replace(text=self.query_one(BoardTextArea).source)

    @on(TextArea.Changed)
    def keep(self) -> None:
        """Keep the draft at every change, because the dashboard asks about drafts when it quits."""
        if self._is_open:
            self.dashboard.drafts.keep(self._draft.name, self.draft)

    @on(TextArea.Changed)
    @on(TextArea.SelectionChanged)
    def follow(self) -> None:
        if self._is_open:
            self.preview_soon()

    @work(exclusive=True, group="preview")
    async def preview_soon(self) -> None:
        await asyncio.sleep(PREVIEWED_AFTER)
        self._preview(self.draft.text)
        self._show_where_it_is_written()

    def _show_where_it_is_written(self) -> None:
        """Scroll the preview to the section under the cursor, if it is not visible."""
        source, preview = self.query_one(BoardTextArea), self.query_one(TextPane)
        row = source.cursor_location[0]
        above = "".join(f"{source.document.get_line(number)}\n" for number in range(row + 1))
        end = len(above.encode())
        drawing = preview.drawing
        section = drawing.section_at(end - 1) if isinstance(drawing, BoardDrawing) else 0
        if not preview.shows_anchor(section):
            preview.show_anchor(section)

    def _preview(self, text: str) -> None:
        title = self.dashboard.texts("pane.preview")
        # The screen may be closed before this call. Then it has no preview.
        for preview in self.query(TextPane):
            preview.show_drawing(self._draft.name, BoardDrawing(text.encode()), title=title)

    @on(BoardTextArea.Left)
    def go_back(self) -> None:
        # Called later, because the removal of this screen waits until this handler ends.
        self.app.call_later(self.dashboard.action_back)

    async def leave(self) -> None:
        self._keep()

    def _keep(self) -> None:
        """Keep the draft for the next time, or drop it if it has no changes."""
        app, draft = self.dashboard, self.draft
        if draft.is_changed:
            app.drafts.keep(draft.name, draft)
            app.show_message(app.texts("boards.draft_kept", board=draft.name))
        else:
            app.drafts.drop(BoardDraft, draft.name)

    @on(BoardTextArea.Saved)
    def save(self) -> None:
        app, draft = self.dashboard, self.draft
        if not draft.is_changed:
            app.show_message(app.texts("boards.nothing_to_save"))
        elif not app.can_act:
            app.explain_read_only()
        elif not self._is_saving:
            self._is_saving = True
            self.ask_and_save(draft)

    @work(group="save")
    async def ask_and_save(self, draft: BoardDraft) -> None:
        """Show the changes, ask for a message, and save."""
        app = self.dashboard
        try:
            found = await app.worker_process.changes(draft.before, draft.text)
            compared = DiffInput(split_lines(draft.before), split_lines(draft.text), found)
            changes = await asyncio.to_thread(DiffDrawing, compared, side_by_side=False)
            title = f"{sanitize(draft.name)}  v{draft.version} → v{draft.version + 1}"
            message = await app.push_screen_wait(CommitDialog(changes, title, ""))
        finally:
            self._is_saving = False
        if message is not None:
            self._hold_still(True)
            answer = app.act(*draft.call(message))
            # A worker of the app, because the result can close this screen and end its workers.
            app.run_worker(self._report_result(answer, draft), group="ending")

    def _hold_still(self, is_still: bool) -> None:
        """Make the editor read-only, or writable again. A save may wait for the board's lock, and text typed
        meanwhile would not be saved."""
        self._is_saving = is_still
        self.query_one(BoardTextArea).read_only = is_still
        self._entitle()

    async def _report_result(self, coming: Awaitable[Mapping[str, Json] | None], draft: BoardDraft) -> None:
        app = self.dashboard
        answer = await asyncio.shield(coming)
        if answer is None:
            return
        if answer["success"]:
            self._is_open = False
            app.drafts.drop(BoardDraft, draft.name)
            app.show_message(app.texts("boards.saved", board=draft.name, version=answer["version"]))
            await self._close()
        elif answer.get("is_conflict"):
            await self._to_merge(answer["conflict_id"])
        else:
            app.show_failure(answer)
            if self.is_attached:
                self._hold_still(False)

    async def _to_merge(self, number: Json) -> None:
        """Drop the draft and open the merge, because the board changed meanwhile. ``number``: the row of the
        conflict."""
        app = self.dashboard
        if not isinstance(number, int):
            raise TypeError(number)
        found = await asyncio.to_thread(find_row, app.journal, number)
        if found is None:
            raise LookupError(number)
        row = found.row
        app.show_message(app.texts("boards.collided", board=row.path), "warning")
        self._is_open = False
        app.drafts.drop(BoardDraft, row.path)
        await self._close()
        await app.navigator.open_merge(row)

    async def _close(self) -> None:
        if self.is_in_front:
            await self.app.pop_screen()
