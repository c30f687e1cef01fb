"""Models that a runtime can talk to: the protocol, and the clients that speak it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

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

_HOMES = {
    "OpenAICompatible": "openai",
    "RetryPolicy": "retry_policy",
    "Reply": "simulated",
    "SimulatedModel": "simulated",
    "Timeouts": "openai",
}


def __getattr__(name: str) -> object:
    # Looked up on first use: a simulated team has no use for a client.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
