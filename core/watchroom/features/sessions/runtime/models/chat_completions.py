"""The format of the chat completions API: bodies of requests and answers. No I/O.

Servers deviate from the API in many ways. Most deviations are accepted; the others raise `ModelFailed`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from watchroom import validation
from watchroom.errors import ModelFailed
from watchroom.features.sessions.runtime.models.answer_accumulator import (
    SurrogateJoiner,
    describe_validation_error,
)
from watchroom.features.sessions.runtime.models.protocol import (
    FunctionDelta,
    ModelChunk,
    ModelPayload,
    ToolCallDelta,
    Usage,
)
from watchroom.features.sessions.runtime.models.sse import EventParser, ServerSentEvent
from watchroom.model import actor_kind

_BLANK: Final = b"\xef\xbb\xbf \t\r\n"
_DONE: Final = "[DONE]"


def request_body(payload: ModelPayload, model: str, *, include_usage: bool) -> bytes:
    """Return the JSON body of a request.

    - ``model``: the model if the payload does not name one.
    - ``include_usage``: whether to ask for token counts.

    A message of another agent begins with its id in brackets, so that no agent can impersonate a person.
    """
    given = payload.model_dump()
    for message in given["messages"]:
        author = message.pop("author", "")
        if author and actor_kind(author) != "human":
            message["content"] = f"[{author}] {message['content']}"
        if not message.get("tool_calls", True):
            del message["tool_calls"]
    body = {
        **given["options"],
        "model": given["model"] or model,
        "messages": given["messages"],
        "stream": True,
    }
    if include_usage:
        body["stream_options"] = {"include_usage": True}
    if given["tools"]:
        body["tools"] = given["tools"]
    try:
        return to_json(body, inf_nan_mode="null")
    except PydanticSerializationError:
        whole = validation.replace_lone_surrogates(json.dumps(body, ensure_ascii=False))
        return to_json(from_json(whole), inf_nan_mode="null")


class AnswerReader:
    """Reads the body of one answer, a stream of events or plain JSON.

    Call `feed` with all bytes in order, and `end` at the end. A body above ``max_bytes`` raises
    `ModelFailed`. No error contains any of ``secrets``.
    """

    def __init__(self, max_bytes: int, secrets: Sequence[str] = ()) -> None:
        self.whole = False
        """Whether the answer is complete. Its usage may still follow."""
        self.done = False
        """Whether the stream has ended."""
        self._max = max_bytes
        self._room = max_bytes
        self._secrets = secrets
        self._begun = False
        self._json: bytearray | None = None
        self._events = EventParser()
        self._understood = False
        self._joiner = SurrogateJoiner()

    def feed(self, data: bytes) -> Iterator[ModelChunk]:
        """Yield the chunks that end in ``data``. Raise `ModelFailed`."""
        fits = len(data) <= self._room
        if not fits:
            data = data[: self._room]
        self._room -= len(data)
        if not self._begun:
            data = self._begin(data)
        if self._json is None:
            yield from self._read_events(self._events.feed(data))
        else:
            self._json += data
        if not fits and not self.done:
            raise ModelFailed(rule="too_long", limit=self._max)

    def end(self, content_type: str = "") -> Iterator[ModelChunk]:
        """Yield the remaining chunks. Raise `ModelFailed` if the answer is incomplete.

        ``content_type``: the header of the response.
        """
        if self._json is not None:
            yield from self._read_json(self._json)
        else:
            yield from self._read_events(self._events.close())
        yield from self._read_rest()
        if not self._understood and "event-stream" not in content_type:
            raise ModelFailed(rule="not_an_answer", problem=sanitize_message(content_type, self._secrets))
        if not self.whole:
            raise ModelFailed(rule="cut_short")

    def _begin(self, data: bytes) -> bytes:
        """Return ``data`` without leading blanks, and detect JSON by its first character, because servers
        send wrong content types."""
        data = data.lstrip(_BLANK)
        if data:
            self._begun = True
            self._json = bytearray() if data.startswith(b"{") else None
        return data

    def _read_events(self, events: Iterable[ServerSentEvent]) -> Iterator[ModelChunk]:
        for event in events:
            if self.done:
                return
            if event.data == _DONE:
                self.done = self.whole = self._understood = True
                yield from self._read_rest()
                return
            if event.name == "error":
                raise self._reported_error(event.data)
            chunk = self._parse_chunk(event.data)
            if chunk is not None:
                self.whole = self.whole or chunk.finish_reason is not None
                yield chunk

    def _read_json(self, body: bytearray) -> Iterator[ModelChunk]:
        chunk = self._parse_chunk(body.decode("utf-8", "replace"))
        self.done = self.whole = self._understood
        if chunk is not None:
            yield chunk

    def _parse_chunk(self, text: str) -> ModelChunk | None:
        try:
            piece = _parse_piece(text)
        except ValidationError as error:
            raise ModelFailed(rule="broken", problem=describe_validation_error(error)) from error
        if piece.is_error:
            raise self._reported_error(text)
        self._understood = self._understood or bool(piece.choices)
        chunk = piece.chunk()
        joined = None if chunk is None else self._joiner.join(chunk)
        return None if joined == _NOTHING else joined

    def _read_rest(self) -> Iterator[ModelChunk]:
        left = self._joiner.rest()
        if left is not None:
            yield left

    def _reported_error(self, text: str) -> ModelFailed:
        return ModelFailed(rule="reported", problem=sanitize_message(extract_message(text), self._secrets))


def extract_message(body: str) -> str:
    """Return the error message in the JSON of ``body``, else the whole text."""
    try:
        return _find_message(from_json(body))
    except ValueError:
        return body


def sanitize_message(text: str, secrets: Iterable[str] = ()) -> str:
    """Return ``text`` of a server as one short line without ``secrets``, for an error."""
    for secret in secrets:
        text = text.replace(secret, "[…]")
    return validation.escape_unstorable(" ".join(text.split()), 300) or "–"


def _find_message(found: object) -> str:
    """Return the message in ``error``, ``message``, ``detail`` or ``msg``, at any depth."""
    if isinstance(found, str):
        return found
    if isinstance(found, list) and found:
        return _find_message(found[0])
    if isinstance(found, dict):
        for key in ("error", "message", "detail", "msg"):
            if found.get(key):
                return _find_message(found[key])
    return to_json(found).decode()


class _Wire(BaseModel):
    model_config = ConfigDict(defer_build=True, hide_input_in_errors=True)


class _Function(_Wire):
    name: str | None = None
    arguments: str | dict[str, JsonValue] | None = None

    def delta(self) -> FunctionDelta:
        arguments = self.arguments or ""
        text = arguments if isinstance(arguments, str) else to_json(arguments).decode()
        return FunctionDelta(name=self.name or "", arguments=text)


class _Call(_Wire):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None

    def delta(self) -> ToolCallDelta:
        function = self.function.delta() if self.function else FunctionDelta()
        return ToolCallDelta(index=self.index, id=self.id or "", function=function)


class _Part(_Wire):
    type: str = "text"
    text: str = ""


class _Message(_Wire):
    """The text of the model. A refusal has its own field, and reasoning is ignored."""

    content: str | list[_Part] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None

    def text(self) -> str:
        content = self.content or ""
        if not isinstance(content, str):
            content = "".join(part.text for part in content if part.type == "text")
        return content + (self.refusal or "")


class _Choice(_Wire):
    index: int | None = None
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None


_LONGEST_NAME: Final = 100
"""Maximum characters of a model's name."""


class _PromptTokens(_Wire):
    cached_tokens: int | None = None


class _Usage(_Wire):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptTokens | None = None
    cache_creation_input_tokens: int | None = None
    """Sent by proxies for models of other providers. OpenAI's own servers do not send it."""

    def counted(self, model: str) -> Usage:
        """Return the usage of ``model``. The API counts cached tokens as prompt tokens; they are subtracted
        here."""
        details = self.prompt_tokens_details
        sent = max(0, self.prompt_tokens or 0)
        cached = min(sent, max(0, (details.cached_tokens if details else None) or 0))
        stored = min(sent - cached, max(0, self.cache_creation_input_tokens or 0))
        return Usage(
            input_tokens=sent - cached - stored,
            output_tokens=max(0, self.completion_tokens or 0),
            cache_read_tokens=cached,
            cache_write_tokens=stored,
            model=model,
        )


class _Piece(_Wire):
    """An event of a stream (with ``delta`` in its choices), or a whole answer (with ``message``)."""

    object: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: JsonValue = None

    @property
    def is_error(self) -> bool:
        return bool(self.error) or self.object == "error"

    def chunk(self) -> ModelChunk | None:
        """Return the chunk; None if it is empty. If there are several choices, only the first counts."""
        choice = next((choice for choice in self.choices or () if not choice.index), _NO_CHOICE)
        message = choice.delta or choice.message or _NO_MESSAGE
        content, calls = message.text(), message.tool_calls or ()
        if not (content or calls or self.usage or choice.finish_reason):
            return None
        return ModelChunk(
            content=content,
            tool_calls=tuple([call.delta() for call in calls]),
            usage=self.usage.counted((self.model or "")[:_LONGEST_NAME]) if self.usage else None,
            finish_reason=choice.finish_reason or None,
        )


_NOTHING: Final = ModelChunk()
_NO_MESSAGE: Final = _Message()
_NO_CHOICE: Final = _Choice()


def _parse_piece(text: str) -> _Piece:
    try:
        return _Piece.model_validate_json(text)
    except ValidationError as error:
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            raise error from None
        # Only the stricter parser refuses surrogate halves. They are kept, because the other half may follow
        # with the next piece.
        return _Piece.model_validate(given)
