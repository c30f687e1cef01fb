"""Messages of a session in the shape that chat models take: system, user, assistant and tool messages.

Everything here is frozen, and its JSON is that of the chat completions API (RUN)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from watchroom.model import FrozenDict, frozen_json

FrozenObject: TypeAlias = Annotated[Mapping[str, JsonValue], AfterValidator(frozen_json)]
"""A JSON object that nobody can change, at any depth."""
FrozenValue: TypeAlias = Annotated[JsonValue, AfterValidator(frozen_json)]
"""A JSON value that nobody can change, at any depth."""
EMPTY_OBJECT: Final = cast("Mapping[str, JsonValue]", FrozenDict())


class Frozen(BaseModel):
    """Base of the runtime's models: immutable, and unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Function(Frozen):
    """Which tool is called, and its arguments as the model wrote them: JSON text, perhaps broken."""

    name: str
    arguments: str


class ToolCall(Frozen):
    """A model's wish to call a tool. ``id`` is unique within its session."""

    id: str
    type: Literal["function"] = "function"
    function: Function


class SystemMessage(Frozen):
    """Instructions to the model."""

    role: Literal["system"] = "system"
    content: str


class UserMessage(Frozen):
    """``author`` says who wrote it (``human:NAME``, or an agent's id), empty if that is not known."""

    role: Literal["user"] = "user"
    content: str
    author: str = ""


class AssistantMessage(Frozen):
    """A model's answer, with the tools that it calls."""

    role: Literal["assistant"] = "assistant"
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()


class ToolMessage(Frozen):
    """What came of a tool call: ``content`` is the JSON of its result."""

    role: Literal["tool"] = "tool"
    tool_call_id: str
    content: str


Message: TypeAlias = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]
