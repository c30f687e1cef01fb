"""Have the person search everything, from any screen, and go to what was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from watchroom.history.search import open_index
from watchroom.model import Row, Zone

from watchroom_tui.context import Dashboard, RowTarget, SessionTarget
from watchroom_tui.dialogs.row import RowDialog
from watchroom_tui.dialogs.search import SearchDialog

_SCREENS: Final[Mapping[Zone, str]] = {
    "agent": "tasks",
    "board": "boards",
    "collab": "files",
    "command": "tasks",
    "file": "tasks",
    "handoff": "handoffs",
    "private": "agents",
    "realtime": "documents",
    "repo": "files",
    "request": "requests",
    "session": "agents",
    "task": "tasks",
}
"""Where what concerns a zone is shown; of any other one its row is."""
_EXACT: Final[frozenset[Zone]] = frozenset({"collab", "request"})
"""Of these the screen leads to the row itself."""


async def search_everything(app: Dashboard) -> None:
    """Ask for words, and go to the hit that is chosen. Await it in a worker."""
    root = app.root if app.workspace is None else app.workspace.root
    if root is None:
        app.show_message(app.texts("search.impossible"), "warning")
        return
    index = open_index(root) if app.workspace is None else app.workspace.search_index
    hit = await app.push_screen_wait(SearchDialog(index, None if app.is_live else app.model.seq))
    if hit is not None:
        await _go_to(app, hit.row)


async def _go_to(app: Dashboard, row: Row) -> None:
    """To the very place of ``row``; where its screen cannot show it, it lies above."""
    is_step = row.zone == "session" and row.version is not None
    screen = _SCREENS.get(row.zone)
    if screen is not None:
        target = SessionTarget(row.path, row.version or 0) if is_step else RowTarget(row)
        await app.navigator.go_to(screen, target)
    if row.zone not in _EXACT and not is_step:
        app.push_screen(RowDialog(row))
