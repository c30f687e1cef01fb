"""Show the terminal in which an agent's client runs, if that is a pane of tmux."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from watchroom_tui.context import Dashboard
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.terminal.tmux import TmuxPane, find_pane, is_in_server, select_pane

if TYPE_CHECKING:
    from watchroom.workspace import Workspace


async def show_terminal(app: Dashboard, agent: str) -> None:
    """Select the pane of tmux in which the client of ``agent`` runs, or say why there is none. Await it in a
    worker."""
    texts, name = app.texts, sanitize(agent)
    view = app.model.agent(agent)
    workspace = await app.wait_for_workspace()
    if workspace is None:
        app.explain_read_only()
    elif view is None or view.session is None:
        app.show_message(texts("terminal.no_client", agent=name), "warning")
    else:
        environment = await asyncio.to_thread(_read_environment, workspace, view.session.path)
        pane = None if environment is None else find_pane(environment)
        if pane is None:
            key = "terminal.no_client" if environment is None else "terminal.no_tmux"
            app.show_message(texts(key, agent=name), "warning")
        else:
            await _select(app, pane, name)


async def _select(app: Dashboard, pane: TmuxPane, name: str) -> None:
    reason = await asyncio.to_thread(select_pane, pane, os.environ)
    if reason is not None:
        app.show_message(app.texts("terminal.failed", agent=name, reason=sanitize(reason)), "error")
    elif not is_in_server(pane, os.environ):
        command = sanitize(f"tmux -S {pane.socket} attach")
        app.show_message(app.texts("terminal.elsewhere", agent=name, command=command))


def _read_environment(workspace: Workspace, session: str) -> dict[str, str] | None:
    """Return the environment of the client of ``session``, None if it does not run on this machine."""
    from watchroom.agents.clients.client_traces import find_process

    process = find_process(workspace, session)
    if process is None or not process.is_alive:
        return None
    return workspace.platform.environment(process.pid)
