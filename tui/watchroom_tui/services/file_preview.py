"""Show a version of a file with the lines that it changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from watchroom.journal import Journal
from watchroom.model import Row

from watchroom_tui.columns import size
from watchroom_tui.local_time import zoned_time
from watchroom_tui.sanitize import sanitize
from watchroom_tui.styled_text import Line, Span
from watchroom_tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from watchroom_tui.app import WatchroomApp


class _Contents(NamedTuple):
    content: str
    before: str


async def show_version(app: WatchroomApp, view: TextView, head: Row, path: str) -> None:
    """Show a version of a file; in words, where there is no text. ``path`` is what people call it."""
    texts = app.texts
    title = f"{sanitize(path)} v{head.version}"
    if head.deleted:
        said = texts("preview.deleted", who=sanitize(head.actor), time=zoned_time(head.time))
        view.show_notice(head.path, _notice(said), title=title)
        return
    if not _is_kept(head):
        amount = head.detail.get("size")
        said = texts("preview.not_kept", size=size(amount if isinstance(amount, int) else None))
        view.show_notice(head.path, _notice(said), title=title)
        return
    contents = await asyncio.to_thread(_read, app.journal, head)
    changed: frozenset[int] = frozenset()
    if contents.before:
        lines = await app.worker_process.diff(contents.before, contents.content)
        changed = frozenset(line.new - 1 for line in lines if line.kind == "added")
    view.show_text(head.path, contents.content, title=title, changed=changed)


def _notice(said: str) -> list[Line]:
    return [[], [Span(" "), Span(said, "dim")]]


def _is_kept(row: Row) -> bool:
    """Whether the journal has the text: of what is no text it has only the checksum."""
    return not (row.zone == "file" and "size" in row.detail)


def _read(journal: Journal, head: Row) -> _Contents:
    before = journal.version(head.zone, head.path, (head.version or 0) - 1)
    has_text = before is not None and not before.deleted and _is_kept(before)
    content = journal.content(head.seq) or ""
    return _Contents(content, (journal.content(before.seq) or "") if before and has_text else "")
