"""Processes that work in a workspace, report acknowledged work, and wait to be killed.

``python -m reliability.torturing.workers ADDRESS FOLDER CLOCK [CHECKOUT]`` reads orders ``KIND NUMBER``, one
per line. For each it forks a worker, which writes its reports to the file NUMBER in FOLDER: first the call,
then its answer. Its wall clock is that of CLOCK. It prints ``NUMBER PID``. Forking saves each worker the
start of an interpreter.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Final, NotRequired, TypedDict

from watchroom import Agent, Json, Toolbox, Workspace
from watchroom.model import Zone
from watchroom.platform.files import write_all
from watchroom.platform.sandbox.probe import SandboxProbe

from reliability.torturing.clock import SteppedClock

AGENTS: Final = ("alice", "bob", "charlie", "dana", "erin", "frank", "gina", "hugo")
DOCUMENT: Final = "minutes"
FIELD: Final = "body"
COMMANDED: Final = "jack"
"""The agent that runs commands, in the folder of a task."""
LOG: Final = "log.txt"
"""The file to which these commands append."""


class Told(TypedDict):
    """One call. Without ``success`` it is about to be made.

    - ``token``: occurs only in the text of this call.
    - ``version``: the path's new version. None with ``row``: the call was refused, and the row keeps the
      text.
    - ``moment``: the length of the disk's log at that time, if it is recorded.
    """

    kind: str
    token: str
    zone: Zone
    path: str
    success: NotRequired[bool]
    version: NotRequired[int | None]
    row: NotRequired[int | None]
    error: NotRequired[str | None]
    moment: NotRequired[int]


class Worker:
    """Makes random tool calls as one agent, and reports each call before and after."""

    def __init__(self, toolbox: Toolbox, number: int, tell: Callable[[Told], None]) -> None:
        self._toolbox = toolbox
        self._number = number
        self._random = random.Random(number)
        self._tell = tell

    def run(self, kind: str) -> None:
        """Make calls of ``kind`` (see `KINDS`) until the process is killed."""
        act = KINDS[kind]
        for n in count():
            act(self, f"<{self._number}.{n}>")

    def write(self, token: str) -> None:
        """Write in one of four zones, sometimes with a stale version."""
        chance = self._random.random()
        text = self._text(token)
        if chance < 0.3:
            filename = f"folder/{self._random.randrange(4)}.md"
            path = f"{self._toolbox.actor}/{filename}"
            self._do("save_to_my_workspace", token, "private", path, filename=filename, content=text)
        elif chance < 0.4:
            receiver = self._random.choice([each for each in AGENTS if each != self._toolbox.actor])
            path = f"{self._toolbox.actor}_to_{receiver}/data.csv"
            values: dict[str, Json] = {"to_agent": receiver, "filename": "data.csv", "message": token}
            self._do("handoff_file", token, "handoff", path, content=text, **values)
        elif chance < 0.5:
            board = f"bottom-layer-{self._toolbox.actor}"
            values = {"board": board, "content": text, "message": token, "expected_version": -1}
            self._do("whiteboard_write", token, "board", board, **values)
        else:
            path = f"plans/{self._random.randrange(5)}.md"
            known = self._toolbox.dispatch_tool_call("collab_read", {"filepath": path}).get("version", 0)
            stale = isinstance(known, int) and self._random.random() < 0.1
            expected = known - 1 if stale and isinstance(known, int) and known else known
            values = {"filepath": path, "content": text, "message": token, "expected_version": expected}
            self._do("collab_write", token, "collab", path, **values)

    def edit(self, token: str) -> None:
        """Insert the token into a realtime document that all agents edit."""
        self._do(
            "realtime_edit_text",
            token,
            "realtime",
            DOCUMENT,
            doc_id=DOCUMENT,
            field_name=FIELD,
            operation="insert",
            args={"position": 0, "text": token},
        )

    def draft(self, token: str) -> None:
        """Append a line to a buffer, and sometimes flush it."""
        open_draft(self._toolbox)
        self._do("draft_append", token, "buffer", f"{self._toolbox.actor}/draft", text=f"{token}\n")
        if self._random.random() < 0.2:
            self._toolbox.dispatch_tool_call("draft_flush", {})

    def command(self, token: str) -> None:
        """Append a line to a file, with a command in the sandbox."""
        line = f"echo '{token}' >> {LOG}"
        self._do("run_command", token, "command", LOG, command=line, timeoutMs=20_000)

    def _do(self, tool: str, token: str, zone: Zone, path: str, **arguments: Json) -> None:
        about = Told(kind=tool, token=token, zone=zone, path=path)
        self._tell(about)
        result: Mapping[str, Json] = self._toolbox.dispatch_tool_call(tool, arguments)
        version = result.get("version", result.get("delivery"))
        row, error = result.get("conflict_id"), result.get("error")
        self._tell(
            Told(
                **about,
                success=result["success"] is True,
                version=version if result["success"] is True and isinstance(version, int) else None,
                row=row if isinstance(row, int) else None,
                error=str(error) if error else None,
            )
        )

    def _text(self, token: str) -> str:
        # Some are too large for a row, so that the content is in another table.
        size = 70 * 1024 if self._random.random() < 0.02 else self._random.randint(1, 300)
        return f"{token} " + "word 写 " * (size // 7)


KINDS: Final[Mapping[str, Callable[[Worker, str], None]]] = {
    "write": Worker.write,
    "edit": Worker.edit,
    "draft": Worker.draft,
    "command": Worker.command,
}


def telling(folder: str, number: int) -> Callable[[Told], None]:
    """Return a function that writes the reports of the worker ``number`` into ``folder``."""
    lines = os.open(os.path.join(folder, str(number)), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    return lambda told: write_all(lines, json.dumps(told).encode() + b"\n")


def work_until_killed(
    address: str, checkout: str | None, folder: str, sandbox: SandboxProbe, kind: str, number: int
) -> None:
    """Act as the worker ``number``."""
    tell = telling(folder, number)
    os.write(1, f"{number} {os.getpid()}\n".encode())
    workspace = Workspace.open(address, scan=False, checkout=checkout, sandbox=sandbox)
    agent = COMMANDED if kind == "command" else AGENTS[number % len(AGENTS)]
    Worker(workspace.tools(agent), number, tell).run(kind)


def load_everything() -> None:
    """Work a little, so that modules imported on use are there before the forks."""
    with tempfile.TemporaryDirectory() as root, Workspace.open(root, AGENTS) as workspace:
        create_document(workspace)
        for kind in KINDS.values():
            # Commands are refused here, because there is no task.
            kind(Worker(workspace.tools(AGENTS[0]), 0, lambda _: None), "<>")


def open_draft(toolbox: Toolbox) -> None:
    """Open the buffer ``draft``."""
    path = f"{toolbox.actor}/draft.md"
    toolbox.dispatch_tool_call("open_buffer", {"source": "collab", "path": path})


def create_document(workspace: Workspace) -> None:
    """Create the document that workers edit."""
    workspace.tools(AGENTS[0]).dispatch_tool_call(
        "realtime_create_document", {"doc_id": DOCUMENT, "schema": {FIELD: "rga"}}
    )


def create_task(workspace: Workspace, folder: str) -> None:
    """Create the task in whose ``folder`` commands run."""
    task = workspace.tasks.submit("human:dana", "Keep a log.", folder)
    workspace.register([Agent(COMMANDED, task=task.id)])


def fork_workers(address: str, folder: str, clock: Path, checkout: str | None) -> None:
    """Fork a worker for each order, until the input ends."""
    load_everything()
    sandbox = SandboxProbe.run()
    SteppedClock(clock).follow()
    # Children are not waited for, because the killer watches the process.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        kind, number = line.split()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            work_until_killed(address, checkout, folder, sandbox, kind, int(number))
            return


if __name__ == "__main__":
    fork_workers(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else None)
