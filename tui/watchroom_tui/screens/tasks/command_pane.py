"""Show the output of the selected command as it is printed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from watchroom.features.tasks.view import CommandView

from watchroom_tui.formatters import labels
from watchroom_tui.formatters.columns import format_age, format_duration
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.readers.output import OutputReader
from watchroom_tui.screens.tasks.output_view import OutputView

if TYPE_CHECKING:
    from watchroom_tui.base_screen import BaseScreen


class CommandPane:
    """Shows the output of a command in ``view``. One read runs at a time. A later change is read next."""

    def __init__(self, screen: BaseScreen, view: OutputView) -> None:
        self._screen = screen
        self._app = screen.dashboard
        self._view = view
        self._reader = OutputReader(self._app.journal, self._app.texts)
        self._wanted: CommandView | None = None
        self._shown: CommandView | None = None
        self._is_reading = False

    def show(self, command: CommandView | None) -> None:
        """Show the output of ``command`` so far. None clears the pane."""
        self._wanted = command
        if command is None:
            if self._shown is not None:
                self._shown = None
                self._view.clear()
        elif command != self._shown and not self._is_reading:
            self._is_reading = True
            self._screen.run_worker(self._read_on(), group="output")

    def follow_the_clock(self) -> None:
        """Update the running time of a running command."""
        if self._shown is not None and self._shown.ended is None:
            self._view.say_standing(self._status_text(self._shown))

    async def _read_on(self) -> None:
        try:
            while self._wanted is not None and self._wanted != self._shown:
                command = self._wanted
                lines = await asyncio.to_thread(self._reader.read, command)
                if self._is_wanted(command):
                    self._shown = command
                    text, standing = sanitize(command.begun.message), self._status_text(command)
                    self._view.show_output(command.path, lines, text, standing)
        finally:
            self._is_reading = False

    def _is_wanted(self, command: CommandView) -> bool:
        return self._wanted is not None and self._wanted.path == command.path

    def _status_text(self, command: CommandView) -> str:
        begun, ended = command.begun, command.ended
        if ended is None and command.is_lost:
            since = (command.printed or begun).time
            return f"{labels.STATUS_MARKS['lost'].text} {labels.lost_text(since, '', self._app.texts)}"
        outcome = labels.outcome_span(ended or begun, self._app.texts).text
        took = format_duration(begun.time, ended.time) if ended else format_age(begun.time, self._app.now())
        return f"{outcome} · {took}"
