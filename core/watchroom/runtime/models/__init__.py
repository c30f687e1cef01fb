"""Models that a runtime can talk to: the protocol, and the clients that speak it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchroom.deferred_imports import defer_imports
from watchroom.runtime.models.answer_accumulator import AnswerAccumulator, ModelAnswer, to_chunk
from watchroom.runtime.models.protocol import (
    FunctionDelta,
    ModelChunk,
    ModelPayload,
    ModelRuntime,
    ToolCallDelta,
    Usage,
)

if TYPE_CHECKING:
    from watchroom.runtime.models.openai import OpenAICompatible, Timeouts
    from watchroom.runtime.models.retry_policy import RetryPolicy
    from watchroom.runtime.models.simulated import Reply, SimulatedModel

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

# A simulated team has no use for a client.
__getattr__ = defer_imports(
    __name__,
    {
        "openai": "OpenAICompatible Timeouts",
        "retry_policy": "RetryPolicy",
        "simulated": "Reply SimulatedModel",
    },
)
