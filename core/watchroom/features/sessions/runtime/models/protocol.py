"""The protocol of a model: a request, and an async generator of chunks (RUN)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Literal, TypeAlias

from pydantic import Field, JsonValue

from watchroom.features.budgets.rows import PricedBy
from watchroom.features.sessions.runtime.messages import Frozen, Message


class Usage(Frozen):
    """Token counts as reported by the provider of a model.

    - ``input_tokens``: without tokens read from or written to a cache.
    - ``model``: the provider's name of the model.
    - ``cost``: US dollars, None if the price is unknown.
    - ``priced_by``: the source of the cost.
    """

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cache_read_tokens: int = Field(default=0, ge=0)
    cache_write_tokens: int = Field(default=0, ge=0)
    model: str = ""
    cost: float | None = Field(default=None, ge=0)
    priced_by: PricedBy = ""

    @property
    def tokens(self) -> int:
        """All tokens together."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


class ModelPayload(Frozen):
    """One request to a model.

    - ``tools``: definitions in the ``openai`` dialect of the toolbox.
    - ``model``: empty for the default of the model runtime.
    - ``options``: passed on unchanged (temperature, max_tokens, …).
    """

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, JsonValue], ...] = ()
    model: str = ""
    options: Mapping[str, JsonValue] = {}


class FunctionDelta(Frozen):
    """A piece of the tool name and the arguments of a call."""

    name: str = ""
    arguments: str = ""


class ToolCallDelta(Frozen):
    """A piece of a tool call. Pieces with the same ``index`` belong together. Without an index the call is
    complete."""

    index: int | None = None
    id: str = ""
    type: Literal["function"] = "function"
    function: FunctionDelta = FunctionDelta()


class ModelChunk(Frozen):
    """A piece of a model's answer. ``usage`` covers the whole answer, and replaces earlier values."""

    content: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    usage: Usage | None = None
    finish_reason: str | None = None


ModelRuntime: TypeAlias = Callable[[ModelPayload], AsyncIterator[ModelChunk | Mapping[str, object]]]
"""Yields the chunks of one answer, as `ModelChunk` or as a mapping of its fields. The runtime closes the
generator (``aclose``) when it needs no more chunks. The generator must then release its connection."""
