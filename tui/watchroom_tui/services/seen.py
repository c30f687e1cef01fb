"""Mark a need as seen, after a question."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from watchroom.model import SEEN
from watchroom.projections import Need

from watchroom_tui import describe
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.sanitize import sanitize

if TYPE_CHECKING:
    from watchroom_tui.app import WatchroomApp


async def mark_as_seen(app: WatchroomApp, need: Need | None) -> None:
    """Ask whether ``need`` was looked at and is fine, and note it. Awaits the answer: run it in a worker."""
    texts, workspace = app.texts, app.workspace
    if workspace is None:
        app.explain_read_only()
        return
    if need is None or not need.is_acknowledgeable:
        app.show_message(texts("seen.nothing" if need is None else "seen.settle"), "warning")
        return
    subject = sanitize(describe.need_subject(need, texts))
    question = texts("seen.question", subject=subject, what=describe.need_text(need, texts))
    if not await app.push_screen_wait(ConfirmDialog(texts("seen.title"), question)):
        return
    tools = workspace.tools_for_human(app.person)
    answer = await asyncio.to_thread(tools.dispatch_tool_call, SEEN, {"row": need.row.seq})
    if answer["success"]:
        app.show_message(texts("seen.done", subject=subject))
    else:
        app.show_message(f"{answer['message']} {answer['suggestion']}", "error")
