"""Show a version of a file, with its changed lines highlighted."""

from __future__ import annotations

import asyncio

from watchroom.features.overview.reads import read_preview
from watchroom.model import Row

from watchroom_tui.context import Dashboard
from watchroom_tui.formatters.columns import size
from watchroom_tui.formatters.local_time import zoned_time
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.text_pane import TextPane
from watchroom_tui.widgets.version_timeline import version_name


async def show_version(app: Dashboard, view: TextPane, head: Row, path: str) -> None:
    """Show the version ``head`` of a file in ``view``, or the reason why its text is unavailable. ``path``:
    the displayed path."""
    name = version_name(head)
    title = f"{sanitize(path)} {name} · {sanitize(head.actor)}"
    preview = await asyncio.to_thread(read_preview, app.journal, head)
    if preview.text is None:
        if head.deleted or head.sha256 is None:
            said = app.texts("preview.deleted", who=sanitize(head.actor), time=zoned_time(head.time))
        elif preview.size is None:
            said = app.texts("files.unreadable", version=name)
        else:
            said = app.texts("preview.not_kept", size=size(preview.size))
        view.show_notice(head.path, [[], [Span(" "), Span(said, "dim")]], title=title)
        return
    changed: frozenset[int] = frozenset()
    if preview.before:
        lines = await app.worker_process.diff(preview.before, preview.text)
        changed = frozenset(line.new - 1 for line in lines if line.kind == "added")
    view.show_text(head.path, preview.text, title=title, changed=changed)
