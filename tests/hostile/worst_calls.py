"""The worst single calls known, and how long another agent waits for its writes meanwhile.

``python tests/hostile/worst_calls.py`` prints the longest wait beside each of them, as does
``python -m benchmarks stalls``; the tests count rows in place of seconds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import Final, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from calls import ok
from hostile.leftovers import deep_tree, emptied_after, small_files, sparse_files
from watchroom import Agent, Toolbox, Workspace
from watchroom.commit import AppendStatistics

SECONDS_BETWEEN_WRITES: Final = 0.05
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


class Waits(NamedTuple):
    """How long the other agent's writes took while the call was made, in seconds, and how long the call."""

    longest: float
    writes: int
    call: float


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
            return AppendStatistics(after.appends - before.appends, after.rows - before.rows, after.most_rows)


def measure_waits(call: str, *, same_process: bool) -> Waits:
    """Make one of `WORST_CALLS` in another thread or another process, and write every 50 ms until it is done."""
    with tempfile.TemporaryDirectory() as top, emptied_after(Path(top, "project")) as folder:
        root = Path(top, "team")
        prepare(root, folder)
        with Workspace.open(root, scan=False) as workspace:
            other = workspace.tools(OTHER)
            if same_process:
                thread = Thread(target=WORST_CALLS[call], args=(workspace.tools(AGENT),))
                thread.start()
                return _write_while(other, thread.is_alive)
            command = [sys.executable, str(Path(__file__).resolve()), str(root), call]
            with subprocess.Popen(command) as process:
                return _write_while(other, lambda: process.poll() is None)


def _write_while(other: Toolbox, goes_on: Callable[[], bool]) -> Waits:
    waits, begun = [0.0], time.perf_counter()
    while goes_on():
        start = time.perf_counter()
        ok(
            other,
            "collab_write",
            filepath="plan.md",
            content=f"{len(waits)}\n",
            message="m",
            expected_version=-1,
        )
        waits.append(time.perf_counter() - start)
        time.sleep(max(0.0, SECONDS_BETWEEN_WRITES - waits[-1]))
    return Waits(max(waits), len(waits) - 1, time.perf_counter() - begun)


def main(arguments: list[str]) -> None:
    if arguments:
        root, call = arguments
        with Workspace.open(root, scan=False) as workspace:
            WORST_CALLS[call](workspace.tools(AGENT))
        return
    for call in WORST_CALLS:
        for same_process in (False, True):
            waits = measure_waits(call, same_process=same_process)
            beside = "another thread" if same_process else "another process"
            print(f"{call}, in {beside}: {waits.longest:.3f} s of {waits.call:.1f} s, {waits.writes} writes")


if __name__ == "__main__":
    main(sys.argv[1:])
