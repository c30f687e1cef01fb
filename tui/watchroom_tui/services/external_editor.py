"""Open a file in the editor of the person, in the terminal of the dashboard or in a separate window.

Files are found by their rows. A file that is not on this machine is not opened, nor a file whose edits would
not count.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
from typing import Final

from textual.app import SuspendNotSupported
from watchroom.features.overview.client_files import ClientFile
from watchroom.features.trees.rows import REPO, split_repo_path
from watchroom.model import Row

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


async def edit_version(app: Dashboard, row: Row) -> None:
    """Open the file whose version is ``row``, or show why it cannot be opened."""
    if row.zone in (REPO, "file"):
        model = app.model
        folders = {each.id: each.folder for each in (model.trees if row.zone == REPO else model.tasks)}
        owner, name = split_repo_path(row.path)
        await _edit_present(app, os.path.join(folders.get(owner, ""), name), name)
    elif (workspace := await app.wait_for_workspace()) is None:
        app.explain_read_only()
    else:
        found = await asyncio.to_thread(workspace.find_edited_file, row.zone, row.path)
        await _edit_present(app, found, row.path)


async def edit_client_file(app: Dashboard, file: ClientFile) -> None:
    """Open ``file``, or show why it cannot be opened."""
    await _edit_present(app, os.path.join(file.folder, file.path), file.path)


async def _edit_present(app: Dashboard, path: str | None, name: str) -> None:
    """Open the file at ``path``, None if it cannot be edited here. ``name``: its name for messages."""
    if path is None:
        app.show_message(app.texts("changes.not_edited", path=sanitize(name)), "warning")
    elif not os.path.isabs(path) or not await asyncio.to_thread(os.path.isfile, path):
        app.show_message(app.texts("changes.not_here", path=sanitize(path)), "warning")
    else:
        await edit_file(app, path)


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
    """Return whether ``program`` is known as an editor with a window of its own."""
    return os.path.basename(program) in _WITH_WINDOWS


def _run_in_terminal(app: Dashboard, words: list[str]) -> None:
    """Run a program in the terminal of the dashboard. Raise SuspendNotSupported, OSError."""
    with app.suspend():
        # Blocking the event loop is fine, because nothing is drawn until the program exits.
        subprocess.run(words, check=False)


def _run_beside(words: list[str]) -> None:
    """Start a program that can outlive the dashboard. Raise OSError."""
    if shutil.which(words[0]) is None:
        raise FileNotFoundError(words[0])
    # The shell exits at once, so that no process must wait for the program.
    subprocess.run(["/bin/sh", "-c", _DETACH, "sh", *words], check=True, start_new_session=True)
