"""Open a file in the editor of the person, in the terminal of the dashboard or in a separate window."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
from typing import Final

from textual.app import SuspendNotSupported

from watchroom_tui.context import Dashboard
from watchroom_tui.presentation.sanitize import sanitize

_VARIABLES: Final = ("VISUAL", "EDITOR")
_DEFAULT: Final = "vi"
_WITH_WINDOWS: Final = (
    *("code", "code-insiders", "codium", "vscodium", "cursor", "windsurf", "zed", "zeditor", "subl", "atom"),
    *("gvim", "mvim", "neovide", "gedit", "gnome-text-editor", "kate", "kwrite", "mousepad", "pluma", "xed"),
    *("geany", "mate", "bbedit", "nova", "open", "xdg-open", "idea", "pycharm", "webstorm", "goland"),
)
"""Editors that open a window. All other editors run in the terminal."""
_DETACH: Final = 'exec "$@" < /dev/null > /dev/null 2>&1 &'


async def edit_file(app: Dashboard, path: str) -> None:
    """Open the file at ``path`` in the editor from ``VISUAL`` or ``EDITOR``, default: vi. An editor with a
    window runs in parallel with the dashboard. Any other editor runs in the terminal and suspends the
    dashboard until it exits."""
    named = next((os.environ[each] for each in _VARIABLES if os.environ.get(each)), _DEFAULT)
    try:
        words = [*shlex.split(named), path]
        if has_window(words[0]):
            await asyncio.to_thread(_run_beside, words)
            app.show_message(app.texts("changes.in_editor", editor=sanitize(named)))
        else:
            _run_in_terminal(app, words)
    except SuspendNotSupported:
        app.show_message(app.texts("changes.no_editor_here"), "warning")
    except (OSError, ValueError) as error:
        values = {"editor": sanitize(named), "reason": sanitize(str(error))}
        app.show_message(app.texts("changes.no_editor", **values), "error")


def has_window(program: str) -> bool:
    """Return whether the editor ``program`` is known to open a window."""
    return os.path.basename(program) in _WITH_WINDOWS


def _run_in_terminal(app: Dashboard, words: list[str]) -> None:
    """Run a program in the terminal of the dashboard. Raises SuspendNotSupported, OSError."""
    with app.suspend():
        # Blocking the event loop is fine, because nothing is drawn until the program exits.
        subprocess.run(words, check=False)


def _run_beside(words: list[str]) -> None:
    """Start a program that can outlive the dashboard. Raises OSError."""
    if shutil.which(words[0]) is None:
        raise FileNotFoundError(words[0])
    # The shell exits at once, so that no process must wait for the program.
    subprocess.run(["/bin/sh", "-c", _DETACH, "sh", *words], check=True, start_new_session=True)
