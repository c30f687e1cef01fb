"""Actions on needs from any screen: mark a need as seen, and sign changed settings."""

from __future__ import annotations

import asyncio
from typing import Final

from watchroom.features.config.rows import dump_settings
from watchroom.features.overview.model import Need
from watchroom.features.people.rules import SIGN_SETTINGS
from watchroom.model import SEEN
from watchroom.workspace import Workspace

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.formatters.need_texts import need_subject, need_text
from watchroom_tui.presentation.sanitize import sanitize

_MAX_LINES: Final = 12
"""Maximum number of changed lines in the question."""


async def mark_as_seen(app: Dashboard, need: Need | None) -> None:
    """Mark ``need`` as seen, after a confirmation. Await this in a worker."""
    texts = app.texts
    if not app.can_act:
        app.explain_read_only()
        return
    if need is None or not need.is_acknowledgeable:
        app.show_message(texts("seen.nothing" if need is None else "seen.settle"), "warning")
        return
    subject = sanitize(need_subject(need, texts))
    question = texts("seen.question", subject=subject, what=need_text(need, texts))
    if await app.push_screen_wait(ConfirmDialog(texts("seen.title"), question)):
        await app.carry_out(SEEN, {"row": need.row.seq}, texts("seen.done", subject=subject))


async def sign_settings(app: Dashboard) -> None:
    """Show the difference between the config file and the settings in effect. Sign the file if the person
    confirms. Await this in a worker."""
    if not app.can_act:
        app.explain_read_only()
        return
    workspace = await app.wait_for_workspace()
    if workspace is None:
        return
    texts = app.texts
    changed = await asyncio.to_thread(_find_difference, workspace)
    if not changed:
        app.show_message(texts("settings_signing.none"))
        return
    shown = [sanitize(line) for line in changed[:_MAX_LINES]]
    if len(changed) > len(shown):
        shown.append(texts("settings_signing.more", count=len(changed) - len(shown)))
    question = "\n".join([*shown, "", texts("settings_signing.question")])
    if await app.push_screen_wait(ConfirmDialog(texts("settings_signing.title"), question)):
        await app.carry_out(SIGN_SETTINGS, {}, texts("settings_signing.done"))


def _find_difference(workspace: Workspace) -> list[str]:
    # Imported on first use, because the module is slow to load and seldom needed.
    import difflib

    holds, written = (
        dump_settings(config).splitlines() for config in (workspace.config, workspace.registry.written())
    )
    lines = difflib.unified_diff(holds, written, lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
