"""The transcript of a session, with foldable calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from watchroom_tui.formatters.transcript import Transcript, TranscriptEntry, entry_of_step
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.widgets.text_pane import TextPane


class TranscriptView(TextPane):
    """Shows the entries of a session. The cursor stays on its entry. At the end it follows new entries."""

    BINDINGS = bindings("session")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("view", "session")

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._path = ""
        self._entries: Sequence[TranscriptEntry] = ()
        self._saying = ("", "")
        self._unfolded: frozenset[str] = frozenset()
        self._folded: Transcript | None = None
        self._session_title = ""

    def show_session(
        self, path: str, entries: Sequence[TranscriptEntry], saying: tuple[str, str], *, title: str
    ) -> None:
        """Show a session. ``saying``: its agent, and the text that its model is writing."""
        is_another = path != self._path
        if is_another:
            self._path, self._unfolded, self._folded = path, frozenset(), None
        if entries is not self._entries:
            self._entries, self._folded = entries, None
        self._saying, self._session_title = saying, title
        self._draw(at_end=is_another or self._is_at_end())

    def clear(self) -> None:
        self._path, self._entries, self._folded = "", (), None
        super().clear()

    @property
    def is_being_read(self) -> bool:
        """Whether the view has the focus and the cursor is not at the end."""
        return self.has_focus and not self._is_at_end()

    def _is_at_end(self) -> bool:
        return self._drawing is None or self._cursor is None or self._cursor >= len(self._drawing) - 1

    def _draw(self, *, at_end: bool) -> None:
        if self._folded is None:
            self._folded = Transcript(self._entries, self._unfolded)
        agent, text = self._saying
        transcript = self._folded.saying(agent, text) if text else self._folded
        self.show_drawing(self._path, transcript, title=self._session_title, with_cursor=True)
        if at_end:
            self.action_scroll_to_end(1)
        else:
            self._show_cursor()

    def move_to_step(self, step: int) -> None:
        """Move the cursor to the entry of a step. ``step``: the version of its row."""
        entry = entry_of_step(self._entries, step)
        row = self._folded.row_of(entry.key) if self._folded is not None and entry is not None else None
        if row is not None:
            self._move_cursor(row)

    def action_fold(self) -> None:
        """Show or hide the arguments and the result of the call under the cursor."""
        drawing, row = self._drawing, self._cursor or 0
        if isinstance(drawing, Transcript) and drawing.kind_at(row) == "call":
            self._unfolded ^= {drawing.key_at(row)}
            self._folded = None
            self._draw(at_end=False)

    def open_row(self) -> None:
        self.action_fold()

    def action_fold_all(self) -> None:
        """Show the arguments and results of all calls, or hide them if any call is unfolded."""
        calls = frozenset(entry.key for entry in self._entries if entry.kind == "call")
        self._unfolded = frozenset() if self._unfolded else calls
        self._folded = None
        self._draw(at_end=False)
