"""Which built-in executor carries out which kind of instruction; and the one that ends a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from watchroom.runtime.agent import AgentProgram, Executor, RuntimeConfig
from watchroom.runtime.executors.model_executor import ModelExecutor
from watchroom.runtime.executors.request_executor import RequestExecutor
from watchroom.runtime.executors.tool_executor import ToolExecutor
from watchroom.runtime.executors.tool_policies import ToolPolicies
from watchroom.runtime.instructions import (
    CallLlm,
    CallTool,
    Finish,
    Instruction,
    RequestHumanApprove,
    RequestHumanPrompt,
    RequestHumanSelect,
)
from watchroom.runtime.state import AgentState, Done, StepResult

K = TypeVar("K", CallLlm, CallTool, Finish, RequestHumanApprove, RequestHumanPrompt, RequestHumanSelect)


def built_in_executors(agent: AgentProgram, config: RuntimeConfig) -> dict[str, Executor]:
    """The executors for ``agent`` as ``config`` sets it up, by kind of instruction. Each raises TypeError for
    an instruction of another kind."""
    policies = ToolPolicies(agent, config)
    model = ModelExecutor(agent, config, policies)
    people = RequestExecutor(agent, config, policies)
    tools = ToolExecutor(agent, config, policies, people)
    return {
        "call_llm": _for_instruction(CallLlm, model.call_llm),
        "call_tool": _for_instruction(CallTool, tools.call_tool),
        "finish": _for_instruction(Finish, finish),
        "request_human_approve": _for_instruction(RequestHumanApprove, tools.request_human_approve),
        "request_human_prompt": _for_instruction(RequestHumanPrompt, people.request_human_prompt),
        "request_human_select": _for_instruction(RequestHumanSelect, people.request_human_select),
    }


def _for_instruction(kind: type[K], execute: Callable[[K, AgentState], Awaitable[StepResult]]) -> Executor:
    def run(instruction: Instruction, state: AgentState) -> Awaitable[StepResult]:
        if not isinstance(instruction, kind):
            raise TypeError(instruction.type)
        return execute(instruction, state)

    return run


async def finish(instruction: Finish, state: AgentState) -> StepResult:
    """Carry out ``instruction`` (`Finish`) in ``state``: end the session. A message to it starts it again."""
    ended = state.with_changes(status="done")
    done = Done(reason=instruction.reason, final_state=ended.with_changes(events=()))
    return StepResult(events=(done,), new_state=ended)
