"""Two nodes of a LangGraph graph write one plan at the same time.

    pip install 'watchroom[langchain]' langgraph langchain-openai
    OPENAI_API_KEY=... python team_on_langgraph.py

The write that comes second is refused, because it would remove the other agent's line. The refusal contains
the current text, so the agent adds its own line to that and writes again.
"""

import os
from collections.abc import Callable
from operator import add
from typing import Annotated, Any, TypedDict

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from watchroom import Toolbox, Workspace
from watchroom.agents.adapters.langchain import langchain_tools

TASK = "Read plan.md. Add one line about {} at its end, keep all other lines, and write it to plan.md."
TEAM = {"alice": "the schedule", "bob": "the budget"}
PLAN = {"filepath": "plan.md", "content": "# Harbour study\n", "message": "Begin"}


class State(TypedDict):
    done: Annotated[list[str], add]


def agent_node(toolbox: Toolbox, subject: str) -> Callable[[State], dict[str, Any]]:
    tools = {tool.name: tool for tool in langchain_tools(toolbox, toolsets=["collab"])}
    model = ChatOpenAI(model=os.environ.get("MODEL", "gpt-5")).bind_tools(list(tools.values()))
    prompt = toolbox.system_prompt(toolsets=["collab"])

    def run(state: State) -> dict[str, Any]:
        messages: list[Any] = [SystemMessage(prompt), HumanMessage(TASK.format(subject))]
        messages.append(model.invoke(messages))
        while calls := messages[-1].tool_calls:
            messages += [tools[call["name"]].invoke(call) for call in calls]
            messages.append(model.invoke(messages))
        return {"done": [f"{toolbox.actor}: done"]}

    return run


with Workspace.open("team/", agents=["lead", *TEAM]) as workspace:
    workspace.tools("lead").dispatch_tool_call("collab_write", PLAN)
    graph = StateGraph(State)
    for name, subject in TEAM.items():
        graph.add_node(name, agent_node(workspace.tools(name), subject))
        graph.add_edge(START, name).add_edge(name, END)
    print(*graph.compile().invoke({"done": []})["done"], sep="\n")
    print(
        "refused once:",
        *(row.actor for row in workspace.journal.rows(limit=1000) if row.outcome == "conflict"),
    )
    print(workspace.tools("lead").dispatch_tool_call("collab_read", {"filepath": "plan.md"})["content"])
