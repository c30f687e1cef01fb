"""Models that a runtime can talk to: the protocol, and the clients that speak it."""

from watchroom.runtime.models.protocol import (
    FunctionDelta,
    ModelChunk,
    ModelPayload,
    ModelRuntime,
    ToolCallDelta,
    Usage,
)

__all__ = ["FunctionDelta", "ModelChunk", "ModelPayload", "ModelRuntime", "ToolCallDelta", "Usage"]
