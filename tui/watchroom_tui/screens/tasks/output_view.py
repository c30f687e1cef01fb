"""The output of a command. The view follows the end until the person scrolls up."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.styled_text import Line
from watchroom_tui.widgets.text_pane import TextPane

_FRAME = 8
"""The width in cells of the frame and the prompt in the title line."""


class OutputView(TextPane):
    _follows = True
    _command = ""
    _status_text = ""

    def show_output(self, subject: Hashable, lines: Sequence[Line], command: str, standing: str) -> None:
        """Show the output of a command so far. A new ``subject`` starts at its newest line.

        - ``command``: the text of the command, already sanitized.
        - ``standing``: the status of the command.
        """
        follows = self._follows or subject != self._subject
        self._command, self._status_text = command, standing
        self.show_notice(subject, lines, title=self._command_title())
        self._follows = follows
        self._keep_up()

    def say_standing(self, standing: str) -> None:
        """Show ``standing``, the status of the command, at the foot."""
        if standing != self._status_text:
            self._status_text = standing
            self._show_foot()

    def foot(self) -> str:
        return self._status_text

    def _command_title(self) -> str:
        return f"$ {fit(self._command, max(8, self.size.width - _FRAME)).rstrip()}"

    def _keep_up(self) -> None:
        if self._follows:
            # Forced, because the scrollbar appears only with the next layout.
            self.scroll_to(y=self.virtual_size.height, animate=False, immediate=True, force=True)

    def clear(self) -> None:
        self._command = self._status_text = ""
        super().clear()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._follows = new_value >= self.max_scroll_y

    def on_resize(self) -> None:
        # A view at its end stays there, because the new width may wrap lines differently.
        follows = self._follows
        super().on_resize()
        if self._command:
            self._entitle(self._command_title())
        self._follows = follows
        self._keep_up()
