"""What the runtime asks of a model, and what a model gives: an async generator of chunks (RUN)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Literal, TypeAlias

from pydantic import Field, JsonValue

from watchroom.runtime.messages import Frozen, Message


class Usage(Frozen):
    """Tokens, as the model's provider counts them."""

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)


class ModelPayload(Frozen):
    """One request to a model.

    ``tools`` are definitions in the ``openai`` dialect of the toolbox. An empty ``model`` leaves the choice
    to the model runtime. ``options`` go along as they are (temperature, max_tokens, …).
    """

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, JsonValue], ...] = ()
    model: str = ""
    options: Mapping[str, JsonValue] = {}


class FunctionDelta(Frozen):
    """A piece of a call's tool name and arguments."""

    name: str = ""
    arguments: str = ""


class ToolCallDelta(Frozen):
    """A tool call, or a piece of one: pieces with the same ``index`` belong together. Without an index it
    is whole."""

    index: int | None = None
    id: str = ""
    type: Literal["function"] = "function"
    function: FunctionDelta = FunctionDelta()


class ModelChunk(Frozen):
    """A piece of a model's answer. ``usage`` counts the whole answer; a later one replaces an earlier one."""

    content: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    usage: Usage | None = None
    finish_reason: str | None = None


ModelRuntime: TypeAlias = Callable[[ModelPayload], AsyncIterator[ModelChunk | Mapping[str, object]]]
"""Gives the chunks of one answer, as `ModelChunk` or as a mapping of its fields. It is closed (``aclose``)
when nobody waits for the rest, and must then let go of its connection."""
