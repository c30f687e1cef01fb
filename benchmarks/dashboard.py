"""Open the dashboard, save files with markers, and find when a terminal showed them."""

from __future__ import annotations

import re
import sys
import time

from measure import kilobyte
from timed_terminal import NotSeen, Terminal
from watchroom import Toolbox, Workspace

_WATCHROOM = [sys.executable, "-c", "import sys; from watchroom_cli.main import main; sys.exit(main())"]
_MARKER = re.compile(rb"m\d{7}z")


def open_command(root: str) -> list[str]:
    return [*_WATCHROOM, "open", root]


def save_as(root: str, name: str) -> None:
    with Workspace.open(root, scan=False) as workspace:
        tools = workspace.tools(min(workspace.config.agents))
        tools.dispatch_tool_call("save_to_my_workspace", {"filename": f"{name}.md", "content": "…"})


def marker(n: int) -> str:
    """Return a file name that can be found in a terminal's bytes."""
    return f"m{n:07d}z"


def save(tools: Toolbox, n: int) -> float:
    """Save the n-th marked file. Return the time of its end."""
    arguments = {"filename": f"{marker(n)}.md", "content": kilobyte(n)}
    if not tools.dispatch_tool_call("save_to_my_workspace", arguments)["success"]:
        raise RuntimeError("a save failed")
    return time.monotonic()


def screen_delays(terminal: Terminal, since: int, saved: list[tuple[str, float]]) -> list[float]:
    """Return for each save the seconds until the screen showed it, or a later one. Raises `NotSeen`."""
    rank = {name.encode(): n for n, (name, _) in enumerate(saved)}
    delays: list[float] = []
    tail = b""
    for chunk in terminal.chunks(since):
        window = tail + chunk.data
        shown = max((rank.get(name, -1) for name in _MARKER.findall(window)), default=-1)
        delays.extend(chunk.at - saved[n][1] for n in range(len(delays), shown + 1))
        tail = window[-8:]
    if len(delays) < len(saved):
        raise NotSeen(f"{len(saved) - len(delays)} of {len(saved)} saves never reached the screen")
    return delays
