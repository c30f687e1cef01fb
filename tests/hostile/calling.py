"""Calls that must be refused, and what a refusal leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from evidence import all_rows, snapshot
from watchroom import Json, Workspace
from watchroom.texts import Language

PATH_CALLS: Final[dict[str, Callable[[str], dict[str, Json]]]] = {
    "save_to_my_workspace": lambda path: {"filename": path, "content": "x"},
    "read_from_workspace": lambda path: {"agent_id": "bob", "filename": path},
    "delete_from_my_workspace": lambda path: {"filename": path},
    "handoff_file": lambda path: {"to_agent": "bob", "filename": path, "content": "x", "message": "m"},
    "read_handoff": lambda path: {"from_agent": "bob", "filename": path},
    "acknowledge_handoff": lambda path: {"from_agent": "bob", "filename": path},
    "collab_write": lambda path: {"filepath": path, "content": "x", "message": "m"},
    "collab_read": lambda path: {"filepath": path},
    "collab_history": lambda path: {"filepath": path},
    "collab_rollback": lambda path: {"filepath": path, "to_version": 1},
}


def refused_without_a_trace(
    workspace: Workspace, root: Path, tool: str, arguments: Any, language: Language = "en"
) -> dict[str, Any]:
    """Call as alice: the refusal says what it must, is the one new row, and the tree is as before."""
    before, seen = snapshot(root), workspace.journal.last_seq()
    toolbox = workspace.tools("alice", language=language)
    result: dict[str, Any] = toolbox.dispatch_tool_call(tool, arguments)
    assert result["success"] is False, result
    assert all(isinstance(result[key], str) and result[key] for key in ("error", "message", "suggestion"))
    json.dumps(result).encode()
    "".join(result[key] for key in ("error", "message", "suggestion")).encode()
    workspace.flush()
    (row,) = all_rows(workspace.journal, after=seen)
    assert (row.actor, row.error) == ("alice", result["error"])
    assert row.tool
    assert row.outcome in ("denied", "failed")
    assert row.version is None
    assert snapshot(root) == before
    return result
