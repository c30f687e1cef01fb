"""The runtime: it runs an agent step by step, records each step, and sends the agent's requests to people
(RUN).

An `AgentProgram` decides the next `Instruction`; `ChatAgent` is the usual program. `AgentRuntime` carries an
instruction out and returns events and a new `AgentState`. A `Session` commits each step as a row and obeys
people's instructions; `Sessions` begins and resumes sessions. `waiting` waits for people, and `approvals`
checks that a person gave an approval before its call runs. Start reading in `agent`, `runtime` and `session`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchroom.errors import IncompleteAnswer, InvalidTool, LimitReached
from watchroom.platform.deferred_imports import defer_imports

if TYPE_CHECKING:
    from watchroom.features.sessions.runtime.agent import (
        AgentProgram,
        AgentTool,
        CallLlm,
        CallOrigin,
        CallTool,
        Executor,
        Finish,
        Instruction,
        Limits,
        LiveTools,
        LiveToolsSnapshot,
        Policies,
        RequestHumanApprove,
        RequestHumanPrompt,
        RequestHumanSelect,
        RuntimeConfig,
        Tool,
    )
    from watchroom.features.sessions.runtime.chat_agent import ASK_PERSON, ChatAgent
    from watchroom.features.sessions.runtime.messages import (
        AssistantMessage,
        Function,
        Message,
        SystemMessage,
        ToolCall,
        ToolMessage,
        UserMessage,
    )
    from watchroom.features.sessions.runtime.models import ModelChunk, ModelPayload, ModelRuntime, Usage
    from watchroom.features.sessions.runtime.runtime import AgentRuntime
    from watchroom.features.sessions.runtime.session import Session
    from watchroom.features.sessions.runtime.sessions import SessionHead, Sessions
    from watchroom.features.sessions.runtime.state import AgentState, StepResult, create_initial_state
    from watchroom.features.sessions.runtime.tools import tool

__all__ = [
    "ASK_PERSON",
    "AgentProgram",
    "AgentRuntime",
    "AgentState",
    "AgentTool",
    "AssistantMessage",
    "CallLlm",
    "CallOrigin",
    "CallTool",
    "ChatAgent",
    "Executor",
    "Finish",
    "Function",
    "IncompleteAnswer",
    "Instruction",
    "InvalidTool",
    "LimitReached",
    "Limits",
    "LiveTools",
    "LiveToolsSnapshot",
    "Message",
    "ModelChunk",
    "ModelPayload",
    "ModelRuntime",
    "Policies",
    "RequestHumanApprove",
    "RequestHumanPrompt",
    "RequestHumanSelect",
    "RuntimeConfig",
    "Session",
    "SessionHead",
    "Sessions",
    "StepResult",
    "SystemMessage",
    "Tool",
    "ToolCall",
    "ToolMessage",
    "Usage",
    "UserMessage",
    "create_initial_state",
    "tool",
]

__getattr__ = defer_imports(
    __name__,
    {
        "agent": "AgentProgram AgentTool CallLlm CallOrigin CallTool Executor Finish Instruction Limits "
        "LiveTools LiveToolsSnapshot Policies RequestHumanApprove RequestHumanPrompt RequestHumanSelect "
        "RuntimeConfig Tool",
        "chat_agent": "ASK_PERSON ChatAgent",
        "messages": "AssistantMessage Function Message SystemMessage ToolCall ToolMessage UserMessage",
        "models": "ModelChunk ModelPayload ModelRuntime Usage",
        "runtime": "AgentRuntime",
        "session": "Session",
        "sessions": "SessionHead Sessions",
        "state": "AgentState StepResult create_initial_state",
        "tools": "tool",
    },
)
