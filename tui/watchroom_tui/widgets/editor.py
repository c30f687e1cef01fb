"""An editor that shows placeholders for unsafe characters."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from rich.text import Text
from textual.message import Message
from textual.widgets import TextArea

from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.textual_compat import LayoutHooks

_FIRST_STAND_IN: Final = 0xF0000
"""The first placeholder. Placeholders are in a private use plane, which texts do not use."""
_TABS: Final = re.compile(r"^\t", re.MULTILINE)
_LONE_RETURN: Final = re.compile(r"\r(?!\n)")
_LONE_FEED: Final = re.compile(r"(?<!\r)\n")


class SourceArea(TextArea):
    """Base of editors. `source` is the text with its original characters and the changes of the person."""

    _meant: dict[int, str] = {}  # noqa: RUF012  # replaced, never changed

    def load_source(self, source: str) -> None:
        """Load ``source`` into the editor."""
        shown, self._meant = substitution_maps(source)
        self.load_text(source.translate(shown))

    @property
    def source(self) -> str:
        """The current text, with the original characters."""
        return self.text.translate(self._meant)

    def get_line(self, line_index: int) -> Text:
        """Return the line with visible characters in place of invisible characters."""
        line = self.document.get_line(line_index)
        shown = "".join(_visible(self._meant.get(ord(each), each)) for each in line)
        return Text(shown, end="", no_wrap=True)


class Editor(LayoutHooks, SourceArea):
    BINDINGS = bindings("editor")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("editor",)

    class Done(Message):
        """Message: the person has finished writing."""

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(
            id=id, classes="pane editor", soft_wrap=False, show_line_numbers=True, tab_behavior="indent"
        )
        self._is_opening = False

    def open(self, source: str, line: int) -> None:
        """Edit ``source``. Put the cursor at the start of ``line`` (from 0); the next layout scrolls it to
        the middle."""
        self.indent_type = "tabs" if _TABS.search(source) else "spaces"
        self.load_source(source)
        self.move_cursor((line, 0))
        self._is_opening = True

    def after_scrollbars(self) -> None:
        if self._is_opening:
            self._is_opening = False
            self.scroll_cursor_visible(center=True)

    @property
    def tab_text(self) -> str:
        """The name on the pane's tab."""
        return str(self.border_title or "")

    def action_finish(self) -> None:
        self.post_message(self.Done())


def substitution_maps(text: str) -> tuple[dict[int, str], dict[int, str]]:
    """Return two tables for ``str.translate``: from the unsafe characters of ``text`` to placeholders, and
    back. Keep line ends if ``text`` has only one kind of them."""
    ends_differ = _LONE_FEED.search(text) is not None or _LONE_RETURN.search(text) is not None
    kept = {"\n", "\t"} if ends_differ else {"\r", "\n", "\t"}
    strange = sorted(each for each in set(text) - kept if sanitize(each) != each or _is_stand_in(each))
    pairs = [(each, chr(_FIRST_STAND_IN + number)) for number, each in enumerate(strange)]
    return (
        {ord(each): stand_in for each, stand_in in pairs},
        {ord(stand_in): each for each, stand_in in pairs},
    )


def _is_stand_in(character: str) -> bool:
    return ord(character) >= _FIRST_STAND_IN


def _visible(character: str) -> str:
    if character == "\t":
        return character
    shown = sanitize(character)
    return shown if len(shown) == 1 else "\N{REPLACEMENT CHARACTER}"
