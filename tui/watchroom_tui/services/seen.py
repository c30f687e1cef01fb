"""Mark a need as seen, after a question."""

from __future__ import annotations

from watchroom.features.overview.model import Need
from watchroom.model import SEEN

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.formatters import labels
from watchroom_tui.presentation.sanitize import sanitize


async def mark_as_seen(app: Dashboard, need: Need | None) -> None:
    """Ask whether ``need`` was looked at and is fine, and note it. Awaits the answer: run it in a worker."""
    texts = app.texts
    if not app.can_act:
        app.explain_read_only()
        return
    if need is None or not need.is_acknowledgeable:
        app.show_message(texts("seen.nothing" if need is None else "seen.settle"), "warning")
        return
    subject = sanitize(labels.need_subject(need, texts))
    question = texts("seen.question", subject=subject, what=labels.need_text(need, texts))
    if not await app.push_screen_wait(ConfirmDialog(texts("seen.title"), question)):
        return
    answer = await app.act(SEEN, {"row": need.row.seq})
    if answer is None:
        return
    if answer["success"]:
        app.show_message(texts("seen.done", subject=subject))
    else:
        app.show_message(f"{answer['message']} {answer['suggestion']}", "error")
