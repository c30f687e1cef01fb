"""The documents screen: the list, and the selected document, live or at an earlier version."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from watchroom.features.overview.model import Model
from watchroom.model import Row

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.keys.actions import bindings
from watchroom_tui.screens.documents.document_list import DocumentList
from watchroom_tui.screens.documents.document_pane import DocumentPane
from watchroom_tui.widgets.containers import Horizontal
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.scrubber import Scrubber
from watchroom_tui.widgets.text_pane import TextPane

_OF_A_DOCUMENT: Final = frozenset({"play", "step", "leap", "live"})


class DocumentsScreen(BaseScreen):
    CSS_PATH = "documents.tcss"
    SCREEN_NAME: ClassVar = "documents"
    BINDINGS = bindings("documents")

    def __init__(self) -> None:
        super().__init__()
        self._pane: DocumentPane | None = None

    def compose_panes(self) -> ComposeResult:
        with Horizontal(id="body", classes="group"):
            yield DocumentList(
                title="pane.documents", empty="empty.documents", id="documents", classes="pane"
            )
            yield TextPane(title="pane.document", empty="empty.document", id="document", classes="pane")
        yield Scrubber(id="scrubber")

    @property
    def pane(self) -> DocumentPane:
        """The pane with the document under the cursor."""
        if self._pane is None:
            view, scrubber = self.query_one("#document", TextPane), self.query_one(Scrubber)
            self._pane = DocumentPane(self, view, scrubber)
        return self._pane

    def show_model(self, model: Model) -> None:
        documents = self.query_one("#documents", DocumentList)
        documents.show_documents(model.documents, self.pane.unseen(model.documents))
        self.pane.show(documents.item)

    def go_to_row(self, row: Row) -> None:
        documents = self.query_one("#documents", DocumentList)
        self.show_model(self.dashboard.model)
        documents.move_to(row.path.partition("/")[0])
        self.front(documents)

    @on(ItemList.Highlighted, "#documents")
    def choose(self) -> None:
        self.show_model(self.dashboard.model)

    @on(ItemList.Opened, "#documents")
    def open_document(self) -> None:
        self.front(self.query_one("#document", TextPane))

    @on(Scrubber.SeekRequested)
    def seek(self, event: Scrubber.SeekRequested) -> None:
        self.pane.seek(event.share)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in _OF_A_DOCUMENT and not self.pane.has_document:
            return False
        return action != "live" or not self.pane.is_live

    def on_screen_suspend(self) -> None:
        self.pane.mark_seen()

    def action_step(self, versions: int) -> None:
        self.pane.step(versions)

    def action_leap(self, parts: int) -> None:
        self.pane.leap(parts)

    def action_play(self) -> None:
        self.pane.play_or_pause()

    def action_live(self) -> None:
        self.pane.go_live()

    def mark_seen(self) -> bool:
        """Mark the changes of the shown document as seen. Changes of documents create no need."""
        self.pane.mark_seen()
        self.show_model(self.dashboard.model)
        return True

    def return_to_pane(self) -> bool:
        if not self.pane.is_live:
            self.pane.go_live()
            return True
        return super().return_to_pane()
