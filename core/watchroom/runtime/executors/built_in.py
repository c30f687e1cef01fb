"""Which built-in executor carries out which kind of instruction; and the one that ends a session."""

from __future__ import annotations

from watchroom.runtime.agent import Agent, Executor, RuntimeConfig
from watchroom.runtime.events import Done
from watchroom.runtime.executors.asking_model import ModelAsker
from watchroom.runtime.executors.asking_people import PeopleAsker
from watchroom.runtime.executors.policies import ToolPolicies
from watchroom.runtime.executors.running_tools import ToolRunner
from watchroom.runtime.instructions import Finish, Instruction
from watchroom.runtime.state import AgentState, StepResult


def built_in_executors(agent: Agent, config: RuntimeConfig) -> dict[str, Executor]:
    """The executors for ``agent`` as ``config`` sets it up, by kind of instruction. Each raises TypeError
    when it gets an instruction of another kind."""
    policies = ToolPolicies(agent, config)
    model = ModelAsker(agent, config, policies)
    people = PeopleAsker(agent, config, policies)
    tools = ToolRunner(agent, config, policies, people)
    return {
        "call_llm": model.call_llm,
        "call_tool": tools.call_tool,
        "finish": finish,
        "request_human_approve": people.request_human_approve,
        "request_human_prompt": people.request_human_prompt,
        "request_human_select": people.request_human_select,
    }


async def finish(instruction: Instruction, state: AgentState) -> StepResult:
    """End the session; a message to it begins it again."""
    if not isinstance(instruction, Finish):
        raise TypeError(instruction.type)
    ended = state.but(status="done")
    done = Done(reason=instruction.reason, final_state=ended.but(events=()))
    return StepResult(events=(done,), new_state=ended)
