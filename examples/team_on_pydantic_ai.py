"""Two agents of Pydantic AI write one plan at the same time.

    pip install 'watchroom[pydantic-ai]' 'pydantic-ai-slim[openai]'
    OPENAI_API_KEY=... python team_on_pydantic_ai.py

The write that comes second is refused, because it would remove the other agent's line. The refusal contains
the current text, so the agent adds its own line to that and writes again.
"""

import asyncio
import os

from pydantic_ai import Agent
from watchroom import Workspace
from watchroom.agents.adapters.pydantic_ai import pydantic_ai_tools

TASK = "Read plan.md. Add one line about {} at its end, keep all other lines, and write it to plan.md."
TEAM = {"alice": "the schedule", "bob": "the budget"}
PLAN = {"filepath": "plan.md", "content": "# Harbour study\n", "message": "Begin"}


async def work(workspace: Workspace, name: str, subject: str) -> None:
    toolbox = workspace.tools(name)
    agent = Agent(
        f"openai-chat:{os.environ.get('MODEL', 'gpt-5')}",
        instructions=toolbox.system_prompt(toolsets=["collab"]),
        tools=pydantic_ai_tools(toolbox, toolsets=["collab"]),
    )
    await agent.run(TASK.format(subject))
    print(f"{name}: done")


async def main() -> None:
    with Workspace.open("team/", agents=["lead", *TEAM]) as workspace:
        workspace.tools("lead").dispatch_tool_call("collab_write", PLAN)
        await asyncio.gather(*(work(workspace, name, subject) for name, subject in TEAM.items()))
        refused = [row.actor for row in workspace.journal.rows(limit=1000) if row.outcome == "conflict"]
        print("refused once:", *refused)
        print(workspace.tools("lead").dispatch_tool_call("collab_read", {"filepath": "plan.md"})["content"])


asyncio.run(main())
