"""``python buffer_writer.py ROOT``: reads seeds, one a line. For each it forks a writer, which prints its process
id and then the number of each line that it was told stands in its buffer, until it is killed; then it prints
``dead``."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from itertools import count
from typing import Final

from watchroom import Toolbox, Workspace
from watchroom.kernel.call_context import CallContext

AGENT: Final = "alice"
SOURCE: Final = "draft.md"
DEAD: Final = "dead"


def call(toolbox: Toolbox, tool: str, **arguments: str) -> bool:
    """Whether it did what was wanted."""
    return toolbox.dispatch_tool_call(tool, arguments)["success"] is True


def line(number: int) -> str:
    return f"line {number}\n"


def opened(workspace: Workspace) -> tuple[Toolbox, int]:
    """The writer's toolbox, and how many lines stand in its buffer."""
    toolbox = workspace.tools(AGENT)
    call(toolbox, "open_buffer", source="collab", path=SOURCE)
    return toolbox, workspace.buffers.find(CallContext(AGENT), "draft").text.count("\n")


def write_until_killed(root: str, seed: int) -> None:
    """Lines with numbers that follow on each other; now and then a choice is opened, and all is flushed."""
    chance = random.Random(seed)
    os.write(1, f"{os.getpid()}\n".encode())
    toolbox, lines = opened(Workspace.open(root, scan=False))
    for number in count(lines):
        if not call(toolbox, "draft_append", text=line(number)):
            sys.exit("an append was refused")
        os.write(1, f"{number}\n".encode())
        if number and chance.random() < 0.3:
            # It stands there more than once, so that nothing is replaced.
            call(toolbox, "draft_replace", old_text="line", new_text="row")
        if chance.random() < 0.3:
            call(toolbox, "draft_flush")


def fork_writers(root: str) -> None:
    with tempfile.TemporaryDirectory() as elsewhere, Workspace.open(elsewhere, [AGENT]) as workspace:
        toolbox, _ = opened(workspace)
        call(toolbox, "draft_append", text="Everything is loaded before the forks.")
        call(toolbox, "draft_flush")
    for seed in sys.stdin:
        process = os.fork()
        if process == 0:
            write_until_killed(root, int(seed))
            return
        os.waitpid(process, 0)
        # Behind what it may have begun to tell.
        os.write(1, f"\n{DEAD}\n".encode())


if __name__ == "__main__":
    fork_writers(sys.argv[1])
