"""The title of a merge, on one line or more: file, sides and progress."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len
from textual.geometry import Size
from textual.strip import Strip

from watchroom_tui.formatters.labels import actor_span
from watchroom_tui.formatters.styled_text import Line, Span, fit_line, width_of, wrapped
from watchroom_tui.keys.keymap import shown_key
from watchroom_tui.presentation.localization import keymap_of, texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.screens.merge.draft import MergeDraft
from watchroom_tui.widgets.line_widget import LineWidget

CHOOSING: Final = (
    "take_current",
    "take_incoming",
    "take_both",
    "take_both_incoming_first",
    "take_neither",
)
"""The actions that make a choice for a region or for the whole file."""

MOST_OF_MESSAGE: Final = 1000
"""Maximum number of characters of a message to wrap. Three lines of a wide screen hold fewer."""


class MergeTitle(LineWidget):
    def __init__(self) -> None:
        super().__init__()
        self._left: list[Span] = []
        self._right = Span("")
        self._line_count = 0

    def show(self, draft: MergeDraft, *, for_all: bool) -> None:
        """Show the title of ``draft``. ``for_all``: whether the next choice applies to the whole file."""
        texts, sides = texts_of(self), draft.sides
        self._left = [Span(" "), Span(f"{sanitize(draft.label)}  ", "title")]
        for name, row in (("base", sides.base), ("current", sides.current), ("incoming", sides.incoming)):
            if row is None:
                continue
            which = "" if name == "incoming" else f" v{row.version}"
            separator = " · " if len(self._left) > 2 else ""
            self._left.append(Span(f"{separator}{texts(f'merge.side.{name}')}{which}", "dim"))
            if name != "base":
                message = f" “{sanitize(row.message[:MOST_OF_MESSAGE])}”" if row.message else ""
                author = actor_span(row)
                if name == "incoming":
                    author = author._replace(text=sanitize(sides.name_incoming(texts)))
                self._left += [author._replace(text=f" {author.text}"), Span(message, "dim")]
        self._right = self._progress(draft, for_all=for_all)
        lines = len(self._lines(self.size.width))
        # This runs at each choice, so a new layout is requested only if the number of lines changes.
        self.refresh(layout=lines != self._line_count)
        self._line_count = lines

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines(width))

    def _progress(self, draft: MergeDraft, *, for_all: bool) -> Span:
        """Return the progress: the current region and the number of open regions."""
        texts, sides, state = texts_of(self), draft.sides, draft.state
        keymap = keymap_of(self)
        if draft.is_settled:
            return Span(f"✓ {texts('merge.settled_title')} ", "ok")
        if (sides.is_deletion or sides.is_no_text) and not state.is_touched:
            key = "merge.deleted_title" if sides.is_deletion else "merge.no_text_title"
            return Span(f"✎ {texts(key, keys=shown_key('revert', keymap))} ", "warning")
        if for_all:
            keys = " ".join(shown_key(each, keymap) for each in CHOOSING)
            return Span(f"{texts('merge.whole_file', keys=keys)} ", "warning")
        if not draft.left:
            return Span(f"✓ {texts('merge.decided', keys=shown_key('commit', keymap))} ", "ok")
        if state.at in state.open:
            number = state.open.index(state.at) + 1
            return Span(f"{texts('merge.region', number=number, count=draft.left)} ", "error")
        region = state.regions[state.at]
        how = "decided" if region.choice else region.kind
        left = texts("merge.open", count=draft.left)
        return Span(f"{texts(f'merge.state.{how}')} · {left} ", "error")

    def render_line(self, y: int) -> Strip:
        lines, width = self._lines(self.size.width), self.size.width
        space = self._space_beside_progress(width)
        shown = lines[y:] if y == self.size.height - 1 else lines[y : y + 1]
        left = fit_line([span for line in shown for span in line], space)
        if y > 0:
            return self.strip(left, width)
        return self.strip([*left, Span(" " * (space + 1 - width_of(left))), self._right], width)

    def _lines(self, width: int) -> list[Line]:
        return wrapped(self._left, self._space_beside_progress(width))

    def _space_beside_progress(self, width: int) -> int:
        return max(0, width - cell_len(self._right.text) - 1)
