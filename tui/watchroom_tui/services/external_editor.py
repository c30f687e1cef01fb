"""Open a file in the editor of the person, in the terminal of the dashboard."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import Any, Final

from textual.app import App, SuspendNotSupported

from watchroom_tui.context import dashboard_of

_VARIABLES: Final = ("VISUAL", "EDITOR")
_DEFAULT: Final = "vi"


def edit_file(app: App[Any], path: str) -> None:
    """Run the editor that the environment names on the file at ``path``, and wait for its end. Nothing is
    shown meanwhile, because the editor has the terminal."""
    dashboard = dashboard_of(app)
    named = next((os.environ[each] for each in _VARIABLES if os.environ.get(each)), _DEFAULT)
    try:
        words = [*shlex.split(named), path]
        with app.suspend():
            subprocess.run(words, check=False)  # what the person has chosen
    except SuspendNotSupported:
        dashboard.show_message(dashboard.texts("changes.no_editor_here"), "warning")
    except (OSError, ValueError) as error:
        dashboard.show_message(dashboard.texts("changes.no_editor", editor=named, reason=str(error)), "error")
