"""A realtime document; the cursor stays while the content changes."""

from __future__ import annotations

from watchroom_tui.formatters.document_drawing import DocumentDrawing
from watchroom_tui.widgets.line_view import LineView


class DocumentFieldsView(LineView):
    """Shows a document. The row under the cursor stays where it is on the screen when others come or go."""

    def show_document(self, name: str, drawing: DocumentDrawing, *, title: str) -> None:
        before = self._drawing
        at, top = self._cursor, self.scroll_offset.y
        known = before.rows if isinstance(before, DocumentDrawing) else []
        row = known[at] if at is not None and known else None
        offset = self._line_of(at) - top if row is not None and at is not None else 0
        is_same = self._subject == name
        self.show_drawing(name, drawing, title=title, with_cursor=True)
        if row is None or at is None or not is_same:
            return
        found = drawing.same_row(row, at)
        if found is not None:
            self._cursor = found
            self.scroll_to(y=self._line_of(found) - offset, animate=False, immediate=True)
            self._show_foot()
            self.refresh()
