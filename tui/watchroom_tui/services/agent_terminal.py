"""Jumps to the terminal of an agent's client: the tmux pane in which the client runs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from watchroom.agents.clients.tmux_pane import TmuxPane

from watchroom_tui.terminal.tmux import (
    TmuxError,
    attach_command,
    find_running_pane,
    find_server,
    list_panes,
    show_pane,
)

if TYPE_CHECKING:
    from watchroom.agents.clients.client_traces import ClientTrace
    from watchroom.workspace import Workspace


class Jump(NamedTuple):
    """The result of a jump.

    - ``key``: the text that says why the terminal is not shown, empty if it is shown.
    - ``values``: the values of the text. Not sanitized.
    """

    key: str = ""
    values: Mapping[str, str] = MappingProxyType({})


def jump_to_terminal(workspace: Workspace, session: str, environ: Mapping[str, str]) -> Jump:
    """Show the pane of the client of ``session`` in the terminal of this process.

    - ``session``: the path of the session, empty if the agent has none.
    - ``environ``: the environment of this process.

    Rows name the server of the pane. Whether the client runs in a pane is asked of tmux.
    """
    # Imported on first use, because these modules are slow to load.
    from watchroom.agents.clients.client_traces import ProcessView, find_terminal
    from watchroom.agents.clients.processes import ancestors_of

    trace = find_terminal(workspace, session) if session else None
    if trace is None:
        return Jump("no_client")
    if ProcessView(workspace).is_elsewhere(trace):
        return Jump("other_machine", {"machine": trace.machine})
    platform = workspace.platform
    if not platform.is_running(trace.pid, trace.started):
        return Jump("no_client")
    own = find_server(environ)
    socket = trace.pane.socket if trace.pane is not None else own
    if not socket:
        return Jump("no_tmux")
    try:
        pane = find_running_pane(list_panes(socket), ancestors_of(platform, trace.pid))
        if pane is None:
            return _explain_missing(trace)
        if socket != own:
            return Jump("elsewhere", {"command": attach_command(TmuxPane(socket, pane))})
        show_pane(TmuxPane(socket, pane))
    except (OSError, TmuxError) as error:
        return Jump("failed", {"reason": str(error)})
    return Jump()


def _explain_missing(trace: ClientTrace) -> Jump:
    """Return why no pane runs the client of ``trace``."""
    if trace.pane is None:
        return Jump("no_tmux")
    return Jump("gone", {"pane": trace.pane.id, "process": str(trace.pid)})
