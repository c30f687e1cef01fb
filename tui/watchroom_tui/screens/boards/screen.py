"""The boards screen: the tree of boards, the selected board, and its summary."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from watchroom.features.overview.model import Model, Need
from watchroom.model import Row

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.formatters.board_tree import BoardItem, board_tree
from watchroom_tui.keys.actions import bindings
from watchroom_tui.markdown.board_drawing import BoardDrawing
from watchroom_tui.readers.board import read_board
from watchroom_tui.screens.boards.board_list import BoardList
from watchroom_tui.screens.boards.board_pane import BoardPane
from watchroom_tui.screens.boards.draft import BoardDraft, begun
from watchroom_tui.screens.boards.editor_screen import BoardEditorScreen
from watchroom_tui.screens.boards.summary_panel import BoardPanel
from watchroom_tui.screens.boards.versions_screen import BoardVersionsScreen
from watchroom_tui.widgets.containers import Horizontal
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.text_pane import TextPane


class BoardsScreen(BaseScreen):
    CSS_PATH = "boards.tcss"
    SCREEN_NAME: ClassVar = "boards"
    BINDINGS = bindings("boards")

    def __init__(self) -> None:
        super().__init__()
        self._pane: BoardPane | None = None
        self.boards = BoardList(title="pane.boards", empty="empty.boards", id="boards", classes="pane")
        self.text = TextPane(title="pane.board", empty="empty.board", id="board", classes="pane")
        self.panel = BoardPanel(title="pane.summary", empty="empty.summary", id="summary", classes="pane")

    def compose_panes(self) -> ComposeResult:
        with Horizontal(id="body", classes="group"):
            yield self.boards
            yield self.text
            yield self.panel

    @property
    def pane(self) -> BoardPane:
        """The pane with the board under the cursor."""
        if self._pane is None:
            self._pane = BoardPane(self, self.text, self.panel)
        return self._pane

    def show_model(self, model: Model) -> None:
        boards = board_tree(model)
        self.boards.show_boards(boards, self.pane.unseen(boards), self._drafts(boards))
        self.pane.show(self.boards.item)

    def _drafts(self, boards: Iterable[BoardItem]) -> list[str]:
        """Return the names of the boards with a draft."""
        drafts = self.dashboard.drafts
        return [each.name for each in boards if drafts.find(BoardDraft, each.name) is not None]

    def go_to_row(self, row: Row) -> None:
        self.show_model(self.dashboard.model)
        self.boards.move_to(row.path.partition(" > ")[0])
        self.front(self.boards)

    @property
    def current_need(self) -> Need | None:
        item = self.boards.item
        return self.find_need(["unchecked"], f"board {item.name}" if item else None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        item = self.boards.item
        if action == "settle":
            return item is not None and item.conflicts > 0
        if action == "drop_draft":
            return item is not None and self.dashboard.drafts.find(BoardDraft, item.name) is not None
        if action in ("versions", "outline"):
            return item is not None and item.view is not None
        return action != "edit" or item is not None

    @on(ItemList.Highlighted, "#boards")
    def choose(self) -> None:
        self.show_model(self.dashboard.model)

    @on(ItemList.Opened, "#boards")
    def open_board(self) -> None:
        self.front(self.text)

    @on(ItemList.Opened, "#summary")
    def find(self) -> None:
        """Show the place of the chosen summary item in the board."""
        row = self.panel.item
        if row is not None and not row.item.is_heading:
            self.text.show_anchor(row.item.offset)
            self.front(self.text)

    def action_outline(self) -> None:
        def go(offset: int | None) -> None:
            if offset is not None:
                self.text.show_anchor(offset)

        # Imports the Markdown parser, which takes longer than to open this screen.
        from watchroom_tui.dialogs.outline import OutlineDialog

        drawing = self.text.drawing
        headings = drawing.outline() if isinstance(drawing, BoardDrawing) else ()
        self.app.push_screen(OutlineDialog(headings, self.text.top_anchor), go)

    @work(group="edit", exclusive=True)
    async def action_edit(self) -> None:
        """Edit the board, or continue its draft."""
        app, item = self.dashboard, self.boards.item
        if await app.wait_for_workspace() is None:
            app.explain_read_only()
        elif item is not None and item.board is None:
            app.show_message(app.texts("boards.unknown"), "warning")
        elif item is not None:
            reading = self.pane.reading
            at = self.text.top_anchor if reading else 0
            if reading is None:
                # The key was pressed before the pane had read the board.
                head = item.view.head if item.view else None
                reading = await asyncio.to_thread(read_board, app.journal, item.name, head, app.model.seq)
            draft = app.drafts.find(BoardDraft, reading.name)
            if draft is None:
                draft = await asyncio.to_thread(begun, reading.name, reading.version, reading.data, at)
            if draft is None:
                app.show_message(app.texts("boards.too_long"), "warning")
            else:
                app.push_screen(BoardEditorScreen(draft))

    def action_drop_draft(self) -> None:
        """Drop the draft of the board after a confirmation."""
        app, item = self.dashboard, self.boards.item
        if item is None or app.drafts.find(BoardDraft, item.name) is None:
            app.show_message(app.texts("boards.no_draft"))
            return

        def drop(is_confirmed: bool | None) -> None:
            if is_confirmed:
                app.drafts.drop(BoardDraft, item.name)
                self.show_model(app.model)

        title, text = app.texts("boards.drop_title"), app.texts("boards.drop_question", board=item.name)
        app.push_screen(ConfirmDialog(title, text), drop)

    def action_versions(self) -> None:
        item = self.boards.item
        if item is not None and item.view is not None:
            self.app.push_screen(BoardVersionsScreen(item.view.head))

    async def action_settle(self) -> None:
        """Go to the merge of the newest open conflict on the board."""
        app, item = self.dashboard, self.boards.item
        place = ("board", item.name if item else "")
        mine = [each for each in app.model.conflicts if (each.zone, each.path) == place]
        if mine:
            await app.navigator.open_merge(mine[0].row)
        else:
            app.show_message(app.texts("boards.no_conflict"))
