"""A machine of a test: a process with a checkout of its own, on which agents write and say what was acknowledged.

Run as: ``python -m journal.machine ADDRESS CHECKOUT PAUSE AGENT…``. It ends when its standard input does.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

from watchroom import Workspace

_printing = Lock()
_FILES = 8


def work(workspace: Workspace, agent: str, pause: float, over: Event) -> None:
    """Let ``agent`` write what others write too, and what is its own, each ``pause`` seconds until it is
    ``over``."""
    tools = workspace.tools(agent)
    chance = random.Random(agent)
    number = 0
    while not over.wait(pause):
        number += 1
        shared = f"shared/{chance.randrange(_FILES)}.md"
        read = tools.dispatch_tool_call("collab_read", {"filepath": shared})
        version = read["version"] if read["success"] else 0
        line = f"{agent} {number}\n"
        text = str(read.get("content", "")) + line
        call = {"filepath": shared, "content": text, "message": line, "expected_version": version}
        say(agent, line, shared, tools.dispatch_tool_call("collab_write", call))
        name = f"{number % 4}.md"
        say(
            agent,
            line,
            name,
            tools.dispatch_tool_call("save_to_my_workspace", {"filename": name, "content": line}),
        )


def say(agent: str, line: str, path: str, result: Mapping[str, object]) -> None:
    if result["success"]:
        with _printing:
            print(json.dumps([agent, line, path, result["version"]]), flush=True)


def main(address: str, checkout: str, pause: str, *agents: str) -> None:
    over = Event()
    with Workspace.open(address, create=False, checkout=checkout) as workspace:
        workspace.journal.presence.hold("start the machine again")
        print("ready", flush=True)
        with ThreadPoolExecutor(len(agents)) as threads:
            running = [threads.submit(work, workspace, agent, float(pause), over) for agent in agents]
            sys.stdin.read()
            over.set()
            for each in running:
                each.result()
        workspace.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
