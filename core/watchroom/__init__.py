"""Watchroom: a shared file system for teams of AI agents, in which nothing is overwritten unseen.

from watchroom import Workspace

with Workspace.open("team/", agents=["alice", "bob"]) as workspace:
    alice = workspace.tools("alice")
    alice.dispatch_tool_call("collab_write", {"filepath": "plan.md", "content": "…", "message": "…"})
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchroom.errors import WatchroomError
    from watchroom.model import Json, Outcome, Row, Zone
    from watchroom.rules.config import Agent
    from watchroom.toolbox import Toolbox
    from watchroom.verify import Problem
    from watchroom.workspace import Workspace

__all__ = ["Agent", "Json", "Outcome", "Problem", "Row", "Toolbox", "WatchroomError", "Workspace", "Zone"]
__version__ = "0.2.0"

_HOMES = {
    "Agent": "rules.config",
    "Json": "model",
    "Outcome": "model",
    "Problem": "verify",
    "Row": "model",
    "Toolbox": "toolbox",
    "WatchroomError": "errors",
    "Workspace": "workspace",
    "Zone": "model",
}
_ON_DISK = ("Problem", "Toolbox", "Workspace")


def __getattr__(name: str) -> object:
    # Looked up on first use: the command line must not wait for what it does not need.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _ON_DISK:
        from watchroom.platforms import check_platform

        check_platform()
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
