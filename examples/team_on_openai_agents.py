"""Two agents of the OpenAI Agents SDK write one plan at the same time.

    pip install watchroom openai-agents
    OPENAI_API_KEY=... python team_on_openai_agents.py

The write that comes second is refused, because it would remove the other agent's line. The refusal contains
the current text, so the agent adds its own line to that and writes again.
"""

import asyncio
import json
import os
from typing import Any

from agents import Agent, FunctionTool, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI
from watchroom import Toolbox, Workspace

TASK = "Read plan.md. Add one line about {} at its end, keep all other lines, and write it to plan.md."
TEAM = {"alice": "the schedule", "bob": "the budget"}
PLAN = {"filepath": "plan.md", "content": "# Harbour study\n", "message": "Begin"}


def make_tool(toolbox: Toolbox, name: str, description: str, parameters: dict[str, Any]) -> FunctionTool:
    async def call(context: object, arguments: str) -> str:
        return json.dumps(await asyncio.to_thread(toolbox.dispatch_tool_call, name, arguments))

    return FunctionTool(name, description, parameters, call, strict_json_schema=False)


async def work(workspace: Workspace, name: str, subject: str) -> None:
    toolbox = workspace.tools(name)
    model = OpenAIChatCompletionsModel(os.environ.get("MODEL", "gpt-5"), AsyncOpenAI())
    tools = [make_tool(toolbox, **each) for each in toolbox.get_tool_definitions(toolsets=["collab"])]
    agent = Agent(name, instructions=toolbox.system_prompt(toolsets=["collab"]), tools=tools, model=model)
    await Runner.run(agent, TASK.format(subject))
    print(f"{name}: done")


async def main() -> None:
    with Workspace.open("team/", agents=["lead", *TEAM]) as workspace:
        workspace.tools("lead").dispatch_tool_call("collab_write", PLAN)
        await asyncio.gather(*(work(workspace, name, subject) for name, subject in TEAM.items()))
        refused = [row.actor for row in workspace.journal.rows(limit=1000) if row.outcome == "conflict"]
        print("refused once:", *refused)
        print(workspace.tools("lead").dispatch_tool_call("collab_read", {"filepath": "plan.md"})["content"])


set_tracing_disabled(True)  # Traces would go to OpenAI.
asyncio.run(main())
