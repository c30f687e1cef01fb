"""Processes that write to a workspace, say what was acknowledged, and wait to be killed.

``python writer.py ROOT PLATFORM``: reads seeds, one a line. For each it forks a writer, which prints its process id and
then one line of JSON for each acknowledged operation, for ever; once it is dead, prints ``dead``. Forking saves
every writer the start of an interpreter.

``python writer.py``: reads orders, one a line, each a JSON object with the fields of `Order`. For each it forks
a writer, prints its process id, and once it has ended the code that it ended with. The writer begins when it is
sent `GO`: whoever wants to trace it has attached by then. Its lines go out through writev, so that faults can be
injected into every write that is not one.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from threading import Lock, Thread
from typing import Any, Final, TypedDict

from watchroom import Toolbox, Workspace
from watchroom.errors import WatchroomError
from watchroom.model import Zone
from watchroom.platform import Platform, detect_platform

AGENTS: Final = ("alice", "bob", "charlie")
DEAD: Final = "dead"
NOT_OPENED: Final = 3
"""The exit code of a writer that was told that the workspace cannot be opened."""
GO: Final = signal.SIGUSR1
PR_SET_PTRACER: Final = 0x59616D61
LARGE: Final = 70 * 1024
"""More than fits into a row, so that the content stands in a table of its own."""


class Acknowledged(TypedDict):
    """One operation, as its writer was told of it. ``version`` None: it was refused, ``row`` says where it is kept.

    ``success`` is whether it was said to have been done. ``content`` None: the version is a deletion.
    """

    success: bool
    zone: Zone
    path: str
    version: int | None
    row: int | None
    content: str | None


class Order(TypedDict):
    """A writer of so many operations. ``told`` and ``complaints`` are the files that it writes to."""

    root: str
    seed: int
    operations: int
    told: str
    complaints: str


class Writer:
    """Calls tools at random as one agent, and reports each acknowledgement before the next call."""

    def __init__(self, toolbox: Toolbox, seed: int, report: Callable[[Acknowledged], None]) -> None:
        self._toolbox = toolbox
        self._random = random.Random(f"{seed} {toolbox.actor}")
        self._seed = seed
        self._report = report
        self._versions: dict[str, int] = {}

    def run(self, operations: int | None = None) -> None:
        """Work for that many operations, or for ever."""
        acts = (
            self._save,
            self._save,
            self._delete,
            self._hand_over,
            self._write,
            self._write,
            self._post,
            self._misread,
        )
        for n in count():
            if n == operations:
                return
            self._random.choice(acts)(f"{self._toolbox.actor}, seed {self._seed}, {n}. 写 ")

    def _content(self, text: str) -> str:
        size = LARGE if self._random.random() < 0.02 else self._random.randint(1, 300)
        return (text * (size // len(text) + 1))[:size] + text

    def _call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return dict(self._toolbox.dispatch_tool_call(tool, arguments))

    def _tell(
        self, result: dict[str, Any], zone: Zone, path: str, version: int | None, content: str | None
    ) -> None:
        self._report(
            Acknowledged(
                success=result["success"],
                zone=zone,
                path=path,
                version=version,
                row=result.get("conflict_id"),
                content=content,
            )
        )

    def _save(self, text: str) -> None:
        filename, content = f"folder/{self._random.randrange(4)}.md", self._content(text)
        result = self._call("save_to_my_workspace", filename=filename, content=content)
        if result["success"]:
            self._versions[filename] = result["version"]
        self._tell(result, "private", f"{self._toolbox.actor}/{filename}", result.get("version"), content)

    def _delete(self, text: str) -> None:
        if not self._versions:
            return
        filename, version = self._versions.popitem()
        result = self._call("delete_from_my_workspace", filename=filename)
        if not result["success"]:
            self._versions[filename] = version
        self._tell(result, "private", f"{self._toolbox.actor}/{filename}", version + 1, None)

    def _hand_over(self, text: str) -> None:
        receiver = self._random.choice([agent for agent in AGENTS if agent != self._toolbox.actor])
        content = self._content(text)
        result = self._call(
            "handoff_file", to_agent=receiver, filename="data.csv", content=content, message=text
        )
        path = f"{self._toolbox.actor}_to_{receiver}/data.csv"
        self._tell(result, "handoff", path, result.get("delivery"), content)

    def _write(self, text: str) -> None:
        path, content = f"plans/{self._random.randrange(3)}.md", self._content(text)
        expected = self._call("collab_read", filepath=path).get("version", 0) - (self._random.random() < 0.1)
        result = self._call(
            "collab_write", filepath=path, content=content, message=text, expected_version=max(0, expected)
        )
        version = result["version"] if result["success"] else None
        self._tell(result, "collab", path, version, content)

    def _post(self, text: str) -> None:
        board, content = f"bottom-layer-{self._toolbox.actor}", self._content(text)
        result = self._call(
            "whiteboard_write", board=board, content=content, message=text, expected_version=-1
        )
        self._tell(result, "board", board, result.get("version"), content)

    def _misread(self, text: str) -> None:
        self._call("read_from_workspace", agent_id="nobody", filename=text)


def write_until_killed(root: str, seed: int, platform: Platform) -> None:
    """All agents at once, each in a thread of its own, so that one commit carries several rows."""
    os.write(1, f"{os.getpid()}\n".encode())
    lock = Lock()

    def report(acknowledged: Acknowledged) -> None:
        with lock:
            os.write(1, json.dumps(acknowledged).encode() + b"\n")

    workspace = Workspace.open(root, scan=False, platform=platform)
    for agent in AGENTS:
        Thread(target=Writer(workspace.tools(agent), seed, report).run).start()


def write_some(root: str, seed: int, operations: int) -> None:
    def report(acknowledged: Acknowledged) -> None:
        os.writev(1, [json.dumps(acknowledged).encode(), b"\n"])

    try:
        workspace = Workspace.open(root, AGENTS, scan=False)
    except (WatchroomError, OSError):
        sys.exit(NOT_OPENED)
    with workspace:
        Writer(workspace.tools(AGENTS[0]), seed, report).run(operations)


def load_everything() -> None:
    """Work a little, so that what is only loaded when it is used is there before the forks."""
    with tempfile.TemporaryDirectory() as root, Workspace.open(root, AGENTS) as workspace:
        Writer(workspace.tools(AGENTS[0]), 1, lambda _: None).run(20)


def fork_writers(root: str, platform: Platform) -> None:
    load_everything()
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            write_until_killed(root, int(line), platform)
            return
        os.waitpid(process, 0)
        # Behind what it may have begun to tell.
        os.write(1, f"\n{DEAD}\n".encode())


def fork_traced() -> None:
    load_everything()
    signal.pthread_sigmask(signal.SIG_BLOCK, {GO})
    for line in sys.stdin:
        order: Order = json.loads(line)
        process = os.fork()
        if process == 0:
            _redirect(1, order["told"])
            _redirect(2, order["complaints"])
            # Where only an ancestor may trace (Yama), this lets any other process do it too.
            ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
            signal.sigwait({GO})
            write_some(order["root"], order["seed"], order["operations"])
            return
        os.write(1, f"{process}\n".encode())
        _, status = os.waitpid(process, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _redirect(descriptor: int, path: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, descriptor)
    os.close(file)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        fork_writers(sys.argv[1], Platform() if sys.argv[2] == "posix" else detect_platform())
    else:
        fork_traced()
