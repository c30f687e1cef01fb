"""Assembles a model's answer from its chunks, with the deviations of real servers."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import ValidationError

from watchroom import validation
from watchroom.errors import ModelFailed
from watchroom.features.sessions.runtime.messages import Frozen, Function, ToolCall
from watchroom.features.sessions.runtime.models.protocol import (
    FunctionDelta,
    ModelChunk,
    ToolCallDelta,
    Usage,
)

_MAX_DESCRIPTION: Final = 500
"""Maximum characters of a description of invalid data."""
_DEEPEST: Final = 4
"""Maximum nesting levels of a chunk: a chunk, its calls, a call, its function."""


class ModelAnswer(Frozen):
    """A model's complete answer to one request."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    finish_reason: str | None = None


class AnswerAccumulator:
    """Assembles one answer: `add` each chunk, then call `whole`.

    A tool call keeps the id of its model if the id is unique in the session. Other calls get the ids
    ``{prefix}_0``, ``{prefix}_1``, … by their position. ``taken``: the ids of the session.
    """

    def __init__(self, prefix: str, taken: Container[str] = frozenset()) -> None:
        self._prefix = prefix
        self._taken = taken
        self._content: list[str] = []
        self._calls: list[_Call] = []
        self._open: dict[int | None, _Call] = {}
        self._usage: Usage | None = None
        self._finish_reason: str | None = None

    def add(self, chunk: ModelChunk) -> None:
        """Append ``chunk``."""
        self._content.append(chunk.content)
        for piece in chunk.tool_calls:
            self._add_piece(piece)
        self._usage = chunk.usage or self._usage
        self._finish_reason = chunk.finish_reason or self._finish_reason

    def _add_piece(self, piece: ToolCallDelta) -> None:
        call = self._open.get(piece.index)
        if call is None or call.is_followed_by(piece):
            call = _Call(piece.index)
            self._calls.append(call)
            self._open[piece.index] = call
        call.id = call.id or piece.id
        call.name = call.name or piece.function.name
        call.arguments.append(piece.function.arguments)

    def whole(self) -> ModelAnswer:
        """Return the complete answer. Raise `ModelFailed` if a call names no tool."""
        return ModelAnswer(
            content="".join(self._content),
            tool_calls=self._tool_calls(),
            usage=self._usage,
            finish_reason=self._finish_reason,
        )

    def _tool_calls(self) -> tuple[ToolCall, ...]:
        calls = sorted(self._calls, key=_Call.place)
        others = {call.id for call in calls}
        used: set[str] = set()
        free = 0
        whole = []
        for place, call in enumerate(calls):
            if not call.name:
                raise ModelFailed(rule="nameless_call")
            call_id = call.id
            if not call_id or call_id in used or call_id in self._taken:
                free = self._next_free_number(max(place, free), others)
                call_id = f"{self._prefix}_{free}"
                others.add(call_id)
            used.add(call_id)
            # Some models leave the arguments empty if a tool needs none.
            arguments = "".join(call.arguments)
            function = Function(name=call.name, arguments=arguments if arguments.strip() else "{}")
            whole.append(ToolCall(id=call_id, function=function))
        return tuple(whole)

    def _next_free_number(self, number: int, others: Container[str]) -> int:
        while (made := f"{self._prefix}_{number}") in others or made in self._taken:
            number += 1
        return number


@dataclass(slots=True)
class _Call:
    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def is_followed_by(self, piece: ToolCallDelta) -> bool:
        """Return whether ``piece`` begins another call with the same index, or both have no index.

        Some servers give all calls of an answer the index 0. Then another name, or a name with another id,
        begins another call. A new id without a name does not, because some servers send a new id with every
        piece.
        """
        name, another_id = piece.function.name, bool(piece.id) and piece.id != self.id
        if piece.index is None:
            return bool(name) or another_id
        return bool(name and self.name) and (name != self.name or bool(another_id and self.id))

    def place(self) -> float:
        return float("inf") if self.index is None else self.index


class SurrogateJoiner:
    """Joins surrogate halves that arrive in two chunks of one answer. A lone half becomes U+FFFD."""

    def __init__(self) -> None:
        self._content = ""
        self._arguments: dict[int, str] = {}

    def join(self, chunk: ModelChunk) -> ModelChunk:
        """Return ``chunk`` with the pending half of the previous chunk in front. A half at its end is kept
        back."""
        is_text = all(validation.is_unicode(text) for text in _texts(chunk))
        if is_text and not (self._content or self._arguments):
            return chunk
        content, self._content = _split_half(self._content + chunk.content)
        pieces = tuple(map(self._join_piece, chunk.tool_calls))
        return replace_surrogates_in_chunk(
            chunk.model_copy(update={"content": content, "tool_calls": pieces})
        )

    def rest(self) -> ModelChunk | None:
        """Return the remaining lone halves; None if no half remains."""
        if not (self._content or self._arguments):
            return None
        pieces = [
            ToolCallDelta(index=index, function=FunctionDelta(arguments=half))
            for index, half in self._arguments.items()
        ]
        left = ModelChunk(content=self._content, tool_calls=tuple(pieces))
        self._content, self._arguments = "", {}
        return replace_surrogates_in_chunk(left)

    def _join_piece(self, piece: ToolCallDelta) -> ToolCallDelta:
        if piece.index is None:
            return piece
        before = self._arguments.pop(piece.index, "")
        arguments, half = _split_half(before + piece.function.arguments)
        if half:
            self._arguments[piece.index] = half
        function = piece.function.model_copy(update={"arguments": arguments})
        return piece.model_copy(update={"function": function})


def _split_half(text: str) -> tuple[str, str]:
    """Return the text without a surrogate half at its end, and the half."""
    return (text[:-1], text[-1]) if "\ud800" <= text[-1:] <= "\udbff" else (text, "")


def to_chunk(given: ModelChunk | Mapping[str, object]) -> ModelChunk:
    """Return ``given``, yielded by a model runtime, as a `ModelChunk`. Fields that are None are left out.

    The chunk may have surrogate halves (`SurrogateJoiner`). Raise `ModelFailed` with the name of an invalid
    field.
    """
    if isinstance(given, ModelChunk):
        return given
    try:
        return ModelChunk.model_validate(_drop_nones(given, _DEEPEST))
    except ValidationError as error:
        raise ModelFailed(rule="broken", problem=describe_validation_error(error)) from error


def replace_surrogates_in_chunk(chunk: ModelChunk) -> ModelChunk:
    """Return ``chunk`` with surrogate pairs joined, and U+FFFD for lone halves."""
    if all(validation.is_unicode(text) for text in _texts(chunk)):
        return chunk
    text = json.dumps(chunk.model_dump(), ensure_ascii=False)
    return ModelChunk.model_validate_json(validation.replace_lone_surrogates(text))


def _texts(chunk: ModelChunk) -> Iterator[str]:
    yield chunk.content
    yield chunk.finish_reason or ""
    for piece in chunk.tool_calls:
        yield from (piece.id, piece.function.name, piece.function.arguments)


def _drop_nones(given: object, depth: int) -> object:
    if depth and isinstance(given, Mapping):
        return {key: _drop_nones(value, depth - 1) for key, value in given.items() if value is not None}
    if depth and isinstance(given, list | tuple):
        return [_drop_nones(value, depth - 1) for value in given]
    return given


def describe_validation_error(error: ValidationError, most: int = 1) -> str:
    """Return the first problems in ``error`` without the invalid values. ``most``: maximum number of
    problems, default 1."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)[:most]
    texts = [": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"]))) for each in problems]
    return validation.escape_unstorable("; ".join(texts), _MAX_DESCRIPTION)
