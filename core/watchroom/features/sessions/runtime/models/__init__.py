"""Models for the runtime: the protocol of a model, a client for chat completions, and a simulated model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchroom.features.sessions.runtime.models.answer_accumulator import (
    AnswerAccumulator,
    ModelAnswer,
    to_chunk,
)
from watchroom.features.sessions.runtime.models.protocol import (
    FunctionDelta,
    ModelChunk,
    ModelPayload,
    ModelRuntime,
    ToolCallDelta,
    Usage,
)
from watchroom.platform.deferred_imports import defer_imports

if TYPE_CHECKING:
    from watchroom.features.sessions.runtime.models.openai import OpenAICompatible, Timeouts
    from watchroom.features.sessions.runtime.models.retry_policy import RetryPolicy
    from watchroom.features.sessions.runtime.models.simulated import Reply, SimulatedModel

__all__ = [
    "AnswerAccumulator",
    "FunctionDelta",
    "ModelAnswer",
    "ModelChunk",
    "ModelPayload",
    "ModelRuntime",
    "OpenAICompatible",
    "Reply",
    "RetryPolicy",
    "SimulatedModel",
    "Timeouts",
    "ToolCallDelta",
    "Usage",
    "to_chunk",
]

# A simulated team needs no HTTP client.
__getattr__ = defer_imports(
    __name__,
    {
        "openai": "OpenAICompatible Timeouts",
        "retry_policy": "RetryPolicy",
        "simulated": "Reply SimulatedModel",
    },
)
