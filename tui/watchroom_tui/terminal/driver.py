"""Textual's driver of a terminal, adapted so that the dashboard can be suspended and resumed at any
moment."""

from __future__ import annotations

import os
import signal
from asyncio import get_running_loop
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual.drivers.linux_driver import LinuxDriver

from watchroom_tui.terminal.input import SelectableEvent, read_input
from watchroom_tui.textual_compat import is_reading_keys, require, restarts_itself

if TYPE_CHECKING:
    from textual.app import App


require(LinuxDriver, "_sigtstp_application", "_sigcont_application")


class SuspendableDriver(LinuxDriver):
    """Driver that handles SIGTSTP and SIGCONT in the event loop. A signal handler could interrupt the holder
    of a lock that the handler needs."""

    encoding = "utf-8"
    """The encoding of the input from the terminal."""

    def __init__(self, app: App[Any], **given: Any) -> None:
        # Signal handlers, which use these fields, can run from here on.
        self._loop = get_running_loop()
        self._is_suspended = False
        self._dashboard = app
        super().__init__(app, **given)
        self.exit_event: SelectableEvent = SelectableEvent()

    def _sigtstp_application(self, *_: object) -> None:
        self._call_soon(self._stop)

    def _sigcont_application(self, *_: object) -> None:
        self._call_soon(self._resume)

    def _call_soon(self, act: Callable[[], None]) -> None:
        # The loop is closed when the dashboard has ended. The process then ends soon.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(act)

    def _stop(self) -> None:
        if is_reading_keys(self):
            super()._sigtstp_application()
        else:
            # The terminal needs no restoring now, and no setup later.
            os.kill(os.getpid(), signal.SIGSTOP)

    def _resume(self) -> None:
        if not restarts_itself(self):
            return
        if is_reading_keys(self):
            # SIGSTOP stopped the process without suspending the driver. If it is not suspended now, two
            # threads share the keys, and the terminal may be set up for another program.
            self.suspend_application_mode()
        # Both conditions are False if the driver has ended.
        if self._is_suspended:
            self.resume_application_mode()
            # The alternate screen was cleared, and Textual repaints nothing if the size is unchanged.
            self._dashboard.refresh(layout=True)

    def suspend_application_mode(self) -> None:
        """Restore the terminal until `start_application_mode` is called."""
        super().suspend_application_mode()
        self._is_suspended = True

    def start_application_mode(self) -> None:
        """Set the terminal up, and read keys."""
        self._is_suspended = False
        self.exit_event.close()
        self.exit_event = SelectableEvent()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def run_input_thread(self) -> None:
        """Read keys until the driver ends. Textual's own thread decodes strict UTF-8, so that one invalid
        byte would end the dashboard. It also polls for the end ten times a second."""
        read_input(self.fileno, self.encoding, self.exit_event, self.process_message)

    def close(self) -> None:
        """End the threads."""
        super().close()
        self.exit_event.close()
