"""The title line of a merge: file, both sides, and progress."""

from __future__ import annotations

from rich.cells import cell_len
from textual.strip import Strip

from watchroom_tui.columns import fit
from watchroom_tui.localization import texts_of
from watchroom_tui.merge_draft import MergeDraft
from watchroom_tui.sanitize import sanitize
from watchroom_tui.styled_text import Span
from watchroom_tui.theme import agent_class
from watchroom_tui.widgets.line_widget import LineWidget


class MergeTitle(LineWidget):
    def __init__(self) -> None:
        super().__init__()
        self._left: list[Span] = []
        self._right = Span("")

    def show(self, draft: MergeDraft, *, for_all: bool) -> None:
        """``for_all``: the next choice goes for the whole file."""
        texts, sides, state = texts_of(self), draft.sides, draft.state
        self._left = [Span(f" {sanitize(sides.incoming.path)} ", "title")]
        for row in (sides.current, sides.incoming):
            if row is not None:
                self._left += [Span(" ↔", "dim")] if len(self._left) > 1 else []
                message = f" “{sanitize(row.message)}”" if row.message else ""
                self._left += [Span(f" {sanitize(row.actor)}", agent_class(row.actor)), Span(message, "dim")]
        stops = state.stops
        if draft.is_settled:
            self._right = Span(f"✓ {texts('merge.settled_title')} ", "ok")
        elif (sides.is_deletion or sides.is_no_text) and not draft.state.is_touched:
            key = "merge.deleted_title" if sides.is_deletion else "merge.no_text_title"
            self._right = Span(f"✎ {texts(key)} ", "warning")
        elif for_all:
            self._right = Span(f"{texts('merge.whole_file')} ", "warning")
        elif draft.left:
            number = stops.index(state.at) + 1 if state.at in stops else 0
            at = texts("merge.region", number=number, count=len(stops))
            self._right = Span(f"{at} · {texts('merge.open', count=draft.left)} ", "error")
        else:
            self._right = Span(f"✓ {texts('merge.decided')} ", "ok")
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        space = max(0, width - cell_len(self._right.text) - 1)
        left: list[Span] = []
        for text, style in self._left:
            shown = fit(text, min(cell_len(text), space))
            left.append(Span(shown, style))
            space -= cell_len(shown)
        return self.strip([*left, Span(" " * (space + 1)), self._right], width)
