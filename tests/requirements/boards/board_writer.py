"""A process that works on the global board. Run as: ``python board_writer.py ROOT AGENT TASK COUNT``.

It says ``ready``, waits for a line on its input, so that all processes start together, does its task, says
``done``, and with the task ``hold`` stays until it is killed.
"""

from __future__ import annotations

import sys

from watchroom import Toolbox, Workspace
from watchroom.kernel.call_context import CallContext
from watchroom_whiteboards import Whiteboards

BOARD = "global"


def append(tools: Toolbox, count: int) -> None:
    for number in range(count):
        content = f"Entry {number} of {tools.actor}, line one.\n\nAnd line two of {tools.actor} {number}."
        result = tools.dispatch_tool_call(
            "whiteboard_append", {"board": BOARD, "content": content, "wait_seconds": 60}
        )
        if not result["success"]:
            raise RuntimeError(result)


def write(tools: Toolbox, count: int) -> None:
    """Write the whole board, under a lock and from the version that was read."""
    for _ in range(count):
        tools.dispatch_tool_call("whiteboard_read", {"board": BOARD, "hold": True})
        text = f"# Content of {tools.actor}\n" + f"{tools.actor}\n" * 500
        result = tools.dispatch_tool_call(
            "whiteboard_write", {"board": BOARD, "content": text, "message": tools.actor, "wait_seconds": 60}
        )
        if not result["success"]:
            raise RuntimeError(result)


def main(root: str, agent: str, task: str, count: str) -> None:
    with Workspace.open(root, scan=False) as workspace:
        tools = workspace.tools(agent)
        print("ready", flush=True)
        sys.stdin.readline()
        if task == "hold":
            Whiteboards.of(workspace).hold(CallContext(agent), BOARD, seconds=float(count))
        else:
            {"append": append, "write": write}[task](tools, int(count))
        print("done", flush=True)
        if task == "hold":
            sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
