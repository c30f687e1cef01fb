"""Two agents write one plan at the same time, run by Watchroom itself.

    pip install watchroom
    OPENAI_BASE_URL=http://localhost:11434/v1 MODEL=qwen3 python plain_python.py

The write that comes second is refused, because it would remove the other agent's line. The refusal contains
the current text, so the agent adds its own line to that and writes again.
"""

import asyncio
import os

from watchroom import Workspace
from watchroom.features.calls.agent_tools import agent_tools
from watchroom.features.sessions.runtime import ChatAgent
from watchroom.features.sessions.runtime.models import OpenAICompatible

TASK = "Read plan.md. Add one line about {} at its end, keep all other lines, and write it to plan.md."
TEAM = {"alice": "the schedule", "bob": "the budget"}
PLAN = {"filepath": "plan.md", "content": "# Harbour study\n", "message": "Begin"}


async def work(workspace: Workspace, name: str, subject: str) -> None:
    toolbox = workspace.tools(name)
    base_url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
    key = os.environ.get("OPENAI_API_KEY")
    async with OpenAICompatible(base_url, os.environ.get("MODEL", "gpt-5"), api_key=key) as model:
        tools = agent_tools(toolbox, toolsets=["collab"])
        agent = ChatAgent(tools, model_runtime=model, system=toolbox.system_prompt(toolsets=["collab"]))
        messages = [{"role": "user", "content": TASK.format(subject)}]
        async with workspace.sessions.begin(name, agent, messages=messages) as session:
            state = await session.run()
    print(f"{name}: {state.status}")


async def main() -> None:
    with Workspace.open("team/", agents=["lead", *TEAM]) as workspace:
        workspace.tools("lead").dispatch_tool_call("collab_write", PLAN)
        await asyncio.gather(*(work(workspace, name, subject) for name, subject in TEAM.items()))
        refused = [row.actor for row in workspace.journal.rows(limit=1000) if row.outcome == "conflict"]
        print("refused once:", *refused)
        print(workspace.tools("lead").dispatch_tool_call("collab_read", {"filepath": "plan.md"})["content"])


asyncio.run(main())
