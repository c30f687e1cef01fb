"""Messages of a session: system, user, assistant and tool messages.

They are immutable, and have the JSON format of the chat completions API (RUN).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from watchroom.model import FrozenDict, frozen_json

FrozenObject: TypeAlias = Annotated[Mapping[str, JsonValue], AfterValidator(frozen_json)]
"""A JSON object that is immutable at every depth."""
FrozenValue: TypeAlias = Annotated[JsonValue, AfterValidator(frozen_json)]
"""A JSON value that is immutable at every depth."""
EMPTY_OBJECT: Final = cast("Mapping[str, JsonValue]", FrozenDict())


class Frozen(BaseModel):
    """Base of the runtime's models: immutable, without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Function(Frozen):
    """The name of a tool, and the arguments as the model wrote them, which may be invalid JSON."""

    name: str
    arguments: str


class ToolCall(Frozen):
    """A call of a tool by a model. ``id`` is unique in its session."""

    id: str
    type: Literal["function"] = "function"
    function: Function


class SystemMessage(Frozen):
    """Instructions to the model."""

    role: Literal["system"] = "system"
    content: str


class UserMessage(Frozen):
    """A message to the agent. ``author``: ``human:NAME`` or an agent's id, empty if unknown."""

    role: Literal["user"] = "user"
    content: str
    author: str = ""


class AssistantMessage(Frozen):
    """A model's answer with its tool calls."""

    role: Literal["assistant"] = "assistant"
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()


class ToolMessage(Frozen):
    """The result of a tool call. ``content`` is JSON."""

    role: Literal["tool"] = "tool"
    tool_call_id: str
    content: str


Message: TypeAlias = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]
