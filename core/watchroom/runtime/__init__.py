"""Agents that run step by step, each step an event that can be replayed, with people in the loop (RUN)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchroom.deferred_imports import defer_imports

if TYPE_CHECKING:
    from watchroom.runtime.agent import (
        AgentProgram,
        AgentTool,
        CallOrigin,
        Executor,
        Limits,
        LiveTools,
        LiveToolsSnapshot,
        Policies,
        RuntimeConfig,
        Tool,
    )
    from watchroom.runtime.chat_agent import ASK_PERSON, ChatAgent
    from watchroom.runtime.errors import IncompleteAnswer, InvalidTool, LimitReached
    from watchroom.runtime.instructions import (
        CallLlm,
        CallTool,
        Finish,
        Instruction,
        RequestHumanApprove,
        RequestHumanPrompt,
        RequestHumanSelect,
    )
    from watchroom.runtime.messages import (
        AssistantMessage,
        Function,
        Message,
        SystemMessage,
        ToolCall,
        ToolMessage,
        UserMessage,
    )
    from watchroom.runtime.models import ModelChunk, ModelPayload, ModelRuntime, Usage
    from watchroom.runtime.runtime import AgentRuntime
    from watchroom.runtime.session import Session
    from watchroom.runtime.sessions import SessionHead, Sessions
    from watchroom.runtime.state import AgentState, StepResult, create_initial_state
    from watchroom.runtime.tools import tool

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
        "agent": "AgentProgram AgentTool CallOrigin Executor Limits LiveTools LiveToolsSnapshot Policies "
        "RuntimeConfig Tool",
        "chat_agent": "ASK_PERSON ChatAgent",
        "errors": "IncompleteAnswer InvalidTool LimitReached",
        "instructions": "CallLlm CallTool Finish Instruction RequestHumanApprove RequestHumanPrompt "
        "RequestHumanSelect",
        "messages": "AssistantMessage Function Message SystemMessage ToolCall ToolMessage UserMessage",
        "models": "ModelChunk ModelPayload ModelRuntime Usage",
        "runtime": "AgentRuntime",
        "session": "Session",
        "sessions": "SessionHead Sessions",
        "state": "AgentState StepResult create_initial_state",
        "tools": "tool",
    },
)
