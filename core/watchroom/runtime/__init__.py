"""Agents that run step by step, each step an event that can be replayed, with people in the loop (RUN)."""

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
