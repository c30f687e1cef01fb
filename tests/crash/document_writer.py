"""Processes that edit a document, say what was acknowledged, and wait to be killed.

Run in the folder of the tests as: ``python -m crash.document_writer ROOT``. It reads seeds, one a line. For
each it forks a process, which prints its process id and edits as all agents at once, for ever: a line of JSON
before each edit and one for each acknowledgement. Once it is dead, prints ``dead``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from threading import Thread
from typing import Final, TypedDict

from marked import DOC_ID, SCHEMA, Editor
from watchroom import Workspace

AGENTS: Final = ("alice", "bob")
DEAD: Final = "dead"
CHARACTERS: Final = 3000
"""So many different ones each process has for each agent."""
READ_EVERY: Final = 10


class Told(TypedDict):
    """An edit that is about to be made (``version`` 0), or that was acknowledged as that version."""

    actor: str
    version: int
    deleted: str
    inserted: str


def edit_until_killed(root: str, seed: int) -> None:
    _tell(str(os.getpid()))
    workspace = Workspace.open(root, scan=False)
    for number, agent in enumerate(AGENTS):
        editor = Editor(workspace.tools(agent), number, seed, first=seed * CHARACTERS)
        Thread(target=_edit, args=(agent, editor)).start()


def _edit(agent: str, editor: Editor) -> None:
    turn = 0
    while turn := turn + 1:
        plan = editor.plan()
        told = Told(actor=agent, version=0, deleted=plan.deleted, inserted=plan.inserted)
        _tell(json.dumps(told))
        _tell(json.dumps({**told, "version": editor.make(plan).version}))
        if turn % READ_EVERY == 0:
            editor.read()


def _tell(line: str) -> None:
    """Print a line at one stroke: who is killed leaves no half one."""
    os.write(1, f"{line}\n".encode())


def load_everything() -> None:
    """Edit a little, so that what is only loaded when it is used is there before the forks."""
    with tempfile.TemporaryDirectory() as root, Workspace.open(root, AGENTS) as workspace:
        toolbox = workspace.tools(AGENTS[0])
        toolbox.dispatch_tool_call("realtime_create_document", {"doc_id": DOC_ID, "schema": SCHEMA})
        editor = Editor(toolbox, 0, 0)
        editor.make(editor.plan())


def fork_writers(root: str) -> None:
    load_everything()
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            edit_until_killed(root, int(line))
            return
        os.waitpid(process, 0)
        # Behind what it may have begun to tell.
        _tell(f"\n{DEAD}")


if __name__ == "__main__":
    fork_writers(sys.argv[1])
