"""Have an owner sign the settings that the config file says, after a look at what they change."""

from __future__ import annotations

import asyncio
import difflib
from typing import Final

from watchroom.features.config.rows import dump_settings
from watchroom.features.people.rules import SIGN_SETTINGS
from watchroom.workspace import Workspace

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.presentation.sanitize import sanitize

_MOST_LINES: Final = 12


async def offer_signing(app: Dashboard) -> None:
    """Show what the config file says otherwise than the settings that hold, and have it hold where the person
    says so. Await it in a worker."""
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
    shown = [sanitize(line) for line in changed[:_MOST_LINES]]
    if len(changed) > len(shown):
        shown.append(texts("settings_signing.more", count=len(changed) - len(shown)))
    question = "\n".join([*shown, "", texts("settings_signing.question")])
    if not await app.push_screen_wait(ConfirmDialog(texts("settings_signing.title"), question)):
        return
    answer = await app.act(SIGN_SETTINGS, {})
    if answer is None:
        return
    if answer["success"]:
        app.show_message(texts("settings_signing.done"))
    else:
        app.show_message(f"{answer['message']} {answer['suggestion']}", "error")


def _find_difference(workspace: Workspace) -> list[str]:
    holds, written = (
        dump_settings(config).splitlines() for config in (workspace.config, workspace.registry.written())
    )
    lines = difflib.unified_diff(holds, written, lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
