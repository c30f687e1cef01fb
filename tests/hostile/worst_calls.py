"""The worst single calls known, and for how many rows each holds the workspace's lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from calls import ok
from hostile.leftovers import deep_tree, emptied_after, small_files, sparse_files
from watchroom import Agent, Toolbox, Workspace
from watchroom.kernel.commit import AppendStatistics

PASTE_BYTES: Final = 10_000_000
AGENT: Final = "mallory"
OTHER: Final = "bob"
DOCUMENT: Final = "board"


def _write_deep_path(toolbox: Toolbox) -> None:
    path = "a/" * 200 + "b"
    toolbox.dispatch_tool_call("collab_write", {"filepath": path, "content": "x", "message": "m"})


def _leave_deep_tree(toolbox: Toolbox) -> None:
    ok(toolbox, "run_command", command=deep_tree())


def leave_files(toolbox: Toolbox, count: int = 20_000) -> None:
    ok(toolbox, "run_command", command=small_files(count))


def _leave_sparse_files(toolbox: Toolbox) -> None:
    ok(toolbox, "run_command", command=sparse_files())


def _paste(toolbox: Toolbox) -> None:
    text = "A line of a text that somebody pastes whole.\n" * (PASTE_BYTES // 45)
    args = {"position": 0, "text": text}
    ok(toolbox, "realtime_edit_text", doc_id=DOCUMENT, field_name="body", operation="insert", args=args)
    ok(toolbox, "realtime_get_field", doc_id=DOCUMENT, field_name="body")


WORST_CALLS: Final[Mapping[str, Callable[[Toolbox], None]]] = {
    "a path of 200 parts": _write_deep_path,
    "a tree 1,100 folders deep": _leave_deep_tree,
    "20,000 files": leave_files,
    "8 sparse files of 1 GB": _leave_sparse_files,
    "10 MB pasted": _paste,
}


def prepare(root: Path, folder: Path) -> None:
    """A workspace with two agents, of whom one has a task in ``folder``, and a document."""
    with Workspace.open(root, agents=[OTHER]) as workspace:
        task = workspace.tasks.submit("human:eve", "Build something.", folder)
        workspace.register([Agent(AGENT, task=task.id)])
        ok(workspace.tools(OTHER), "realtime_create_document", doc_id=DOCUMENT, schema={"body": "rga"})


def count_rows(call: Callable[[Toolbox], None], top: Path) -> AppendStatistics:
    """Make a call alone: how often it held the workspace's lock, and for how many rows."""
    with emptied_after(top / "project") as folder:
        prepare(top / "team", folder)
        with Workspace.open(top / "team", scan=False) as workspace:
            before = workspace.append_statistics
            call(workspace.tools(AGENT))
            workspace.flush()
            after = workspace.append_statistics
            return AppendStatistics(after.appends - before.appends, after.rows - before.rows, after.max_rows)
