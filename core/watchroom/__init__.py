"""Watchroom: a shared file system for teams of AI agents, in which nothing is overwritten unseen.

from watchroom import Workspace

with Workspace.open("team/", agents=["alice", "bob"]) as workspace:
    alice = workspace.tools("alice")
    alice.dispatch_tool_call("collab_write", {"filepath": "plan.md", "content": "…", "message": "…"})
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchroom.errors import WatchroomError
    from watchroom.features.calls.toolbox import Toolbox
    from watchroom.features.config.rows import Agent
    from watchroom.history.verify import Problem
    from watchroom.model import Json, Outcome, Row, Zone
    from watchroom.workspace import Workspace

__all__ = ["Agent", "Json", "Outcome", "Problem", "Row", "Toolbox", "WatchroomError", "Workspace", "Zone"]
__version__ = "0.3.0"

_ON_DISK = ("Problem", "Toolbox", "Workspace")

_HOMES = {
    "errors": "WatchroomError",
    "history.verify": "Problem",
    "model": "Json Outcome Row Zone",
    "features.config.rows": "Agent",
    "features.calls.toolbox": "Toolbox",
    "workspace": "Workspace",
}


def __getattr__(name: str) -> object:
    # Imported on first use, because status lines import one small module of this package.
    from watchroom.platform.deferred_imports import defer_imports

    if name in _ON_DISK:
        from watchroom.platform import check_platform

        check_platform()
    return defer_imports(__name__, _HOMES)(name)
