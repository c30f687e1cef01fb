"""Plug-ins in the dashboard: the keys of their screens, and notices about those that are left out."""

from __future__ import annotations

import logging

from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.platform.plugins import LOGGER, PluginProblem

from watchroom_tui.context import Dashboard
from watchroom_tui.readers.plugin_screens import plugin_screens


class PluginNotices(logging.Handler):
    """Shows plug-ins that are left out as notices of ``app``, in whichever thread they are loaded."""

    def __init__(self, app: Dashboard) -> None:
        super().__init__(logging.WARNING)
        self._app = app
        self._logger = logging.getLogger(LOGGER)

    def start(self) -> None:
        self._logger.addHandler(self)

    def stop(self) -> None:
        self._logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        problem = PluginProblem(*record.args) if isinstance(record.args, tuple) else None  # type: ignore[arg-type]
        if problem is not None:
            text = self._app.texts("plugin.left_out", **problem._asdict())
            self._app.call_later(self._app.show_message, text, "warning")


async def bind_screens(app: Dashboard) -> None:
    """Load the screens of other packages, and give them their keys. A key in the person's keymap stays the
    person's."""
    screens = await run_in_thread(plugin_screens)
    own = {key for keys in app.keymap.values() for key in keys}
    for name, screen in screens.found.items():
        if screen.key and screen.key not in own:
            app.bind(screen.key, f"plugin_screen('{name}')", show=False)
