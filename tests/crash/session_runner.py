"""Processes that run an agent's sessions, say what happens, and wait to be killed.

``python session_runner.py ROOT``: reads orders, one a line. For ``work`` it forks a process that takes up the
sessions that were left, begins new ones when they have ended, for ever, and prints its process id and then the
type of each event, one a line; for ``finish`` one that ends when those that were left have ended. Once it is
dead, prints ``dead``.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from itertools import count
from pathlib import Path
from typing import Final

from watchroom import Workspace
from watchroom.features.calls.agent_tools import agent_tools
from watchroom.features.sessions.runtime import (
    AgentTool,
    ChatAgent,
    ModelPayload,
    Policies,
    RuntimeConfig,
    tool,
)

DEAD: Final = "dead"
LANES: Final = 3
"""So many sessions run at once."""
TURNS: Final = 4
EFFECTS: Final = "effects.txt"
WRITING: Final = ("save_to_my_workspace", "collab_write", "handoff_file")
PLAIN: Final = ("append_line", "append_with_leave")


def wanted(turn: int) -> dict[str, dict[str, str]]:
    """What the model calls in its turn of that number: by tool, the arguments."""
    name = f"turn-{turn}"
    return {
        "save_to_my_workspace": {"filename": f"{{session}}/{name}.md", "content": name},
        "append_line": {"line": f"{{session}} {name}"},
        "collab_write": {"filepath": f"{{session}}/{name}.md", "content": name, "message": name},
        "append_with_leave": {"line": f"{{session}} {name} with leave"},
        "handoff_file": {
            "to_agent": "bob",
            "filename": f"{{session}}/{name}.md",
            "content": name,
            "message": name,
        },
    }


async def model(payload: ModelPayload) -> AsyncIterator[Mapping[str, object]]:
    """Calls all tools in each of its turns, and then has nothing more to say."""
    session = next(message.content for message in payload.messages if message.role == "user")
    turn = sum(message.role == "assistant" for message in payload.messages)
    yield {"content": f"Turn {turn}. "}
    await asyncio.sleep(0)
    if turn == TURNS:
        yield {"content": "That was all."}
        return
    for place, (name, arguments) in enumerate(wanted(turn).items()):
        text = json.dumps(arguments).replace("{session}", session)
        function = {"name": name, "arguments": text}
        yield {"tool_calls": [{"index": place, "id": f"call_{place}", "function": function}]}


def appending(file: Path, name: str) -> AgentTool:
    """A tool whose work nobody can look up afterwards: it adds a line to ``file``."""

    @tool(name=name)
    def append(line: str) -> str:
        """Add a line to a file of which no journal knows."""
        with file.open("a") as lines:
            lines.write(f"{line}\n")
        return "appended"

    return append


def agent(workspace: Workspace) -> ChatAgent:
    file = Path(workspace.root).parent / EFFECTS
    tools = [each for each in agent_tools(workspace.tools("alice")) if each.name in WRITING]
    tools += [appending(file, name) for name in PLAIN]
    return ChatAgent(tools, model_runtime=model, policies=Policies(tools={"append_with_leave": "ask"}))


async def lane(workspace: Workspace, number: int, config: RuntimeConfig, finishing: bool) -> None:
    left = {head.id: head.status for head in workspace.sessions.list("alice")}
    for n in count():
        name = f"lane-{number}-{n}"
        if name in left:
            if left[name] != "done":
                async with workspace.sessions.resume("alice", name, agent(workspace), config) as session:
                    await session.run()
        elif finishing:
            return
        else:
            said = [{"role": "user", "content": name}]
            async with workspace.sessions.begin(
                "alice", agent(workspace), config, session_id=name, messages=said
            ) as session:
                await session.run()


async def work(root: str, *, finishing: bool) -> None:
    config = RuntimeConfig(on_event=lambda event: tell(event.type))
    with Workspace.open(root, scan=False) as workspace:
        await asyncio.gather(*(lane(workspace, number, config, finishing) for number in range(LANES)))


def load_everything() -> None:
    """Make an agent, so that what is only loaded when it is used is there before the forks."""
    with tempfile.TemporaryDirectory() as root, Workspace.open(root, agents=("alice", "bob")) as workspace:
        agent(workspace)


def fork_runners(root: str) -> None:
    load_everything()
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            tell(str(os.getpid()))
            asyncio.run(work(root, finishing=line.strip() == "finish"))
            return
        os.waitpid(process, 0)
        tell(DEAD)


def tell(line: str) -> None:
    """Print a line at one stroke: who is killed leaves no half one."""
    os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    fork_runners(sys.argv[1])
