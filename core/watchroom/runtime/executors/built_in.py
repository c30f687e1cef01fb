"""Which built-in executor carries out which kind of instruction; and the one that ends a session."""

from __future__ import annotations

from watchroom.runtime.agent import Agent, Executor, RuntimeConfig
from watchroom.runtime.executors.model_executor import ModelExecutor
from watchroom.runtime.executors.request_executor import RequestExecutor
from watchroom.runtime.executors.tool_executor import ToolExecutor
from watchroom.runtime.executors.tool_policies import ToolPolicies
from watchroom.runtime.instructions import Finish, Instruction
from watchroom.runtime.state import AgentState, Done, StepResult


def built_in_executors(agent: Agent, config: RuntimeConfig) -> dict[str, Executor]:
    """The executors for ``agent`` as ``config`` sets it up, by kind of instruction. Each raises TypeError for
    an instruction of another kind."""
    policies = ToolPolicies(agent, config)
    model = ModelExecutor(agent, config, policies)
    people = RequestExecutor(agent, config, policies)
    tools = ToolExecutor(agent, config, policies, people)
    return {
        "call_llm": model.call_llm,
        "call_tool": tools.call_tool,
        "finish": finish,
        "request_human_approve": people.request_human_approve,
        "request_human_prompt": people.request_human_prompt,
        "request_human_select": people.request_human_select,
    }


async def finish(instruction: Instruction, state: AgentState) -> StepResult:
    """Carry out ``instruction`` (`Finish`) in ``state``: end the session. A message to it starts it again."""
    if not isinstance(instruction, Finish):
        raise TypeError(instruction.type)
    ended = state.with_changes(status="done")
    done = Done(reason=instruction.reason, final_state=ended.with_changes(events=()))
    return StepResult(events=(done,), new_state=ended)
