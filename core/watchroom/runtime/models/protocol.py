"""What the runtime asks of a model, and what a model gives: an async generator of chunks (RUN)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Literal, TypeAlias

from pydantic import Field, JsonValue

from watchroom.rules.usage import PricedBy
from watchroom.runtime.messages import Frozen, Message


class Usage(Frozen):
    """Tokens, as the model's provider counts them: ``input_tokens`` are those sent that no cache had,
    ``cache_read_tokens`` were read from its cache, ``cache_write_tokens`` put there. ``model`` is whose they
    are, as the provider calls it. ``cost`` is in US dollars, None where nobody knows the price; ``priced_by``
    says who gave it."""

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
