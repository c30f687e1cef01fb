"""Answers to lines on standard input that the MCP library cannot parse.

A call whose arguments have a lone surrogate or are nested too deeply is refused like any other call. Other
lines get a JSON-RPC error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from anyio import EndOfStream
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from watchroom import validation
from watchroom.features.requests.rows import MAX_NESTING
from watchroom.model import Json
from watchroom.texts import Catalogue

_CALL: Final = "tools/call"
_PROBLEM_ARGUMENT: Final = "\ufffd"
"""The argument in which the parser's error is passed if a call's arguments are malformed."""
_MAX_DIGITS: Final = 1000
_MAX_CHARACTERS: Final = 200
# An unterminated string extends to the end of the line, so that scanning a line takes linear time.
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{\]}]', re.DOTALL)


def parse_problem(arguments: Mapping[str, Json]) -> str | None:
    """Return the problem in ``arguments`` that could not be parsed; None if they were parsed."""
    problem = arguments.get(_PROBLEM_ARGUMENT)
    return problem[:_MAX_CHARACTERS] if isinstance(problem, str) and len(arguments) == 1 else None


class MalformedMessageFilter:
    """A stream of the messages from ``receive_stream``. Lines that cannot be parsed are answered through
    ``send_stream``.

    A call whose arguments could not be parsed is passed on with their problem (`parse_problem`). ``texts``:
    the catalogue of the error texts.
    """

    def __init__(self, receive_stream: Any, send_stream: Any, texts: Catalogue) -> None:
        self._receive_stream = receive_stream
        self._send_stream = send_stream
        self._texts = texts

    @property
    def last_context(self) -> Any:
        """The context of the newest message. The MCP library reads it from its streams."""
        return self._receive_stream.last_context

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message, or an error of the stream. Raise `anyio.EndOfStream`."""
        while True:
            item: SessionMessage | Exception = await self._receive_stream.receive()
            message = await self._handle_invalid(item) if isinstance(item, ValidationError) else item
            if message is not None:
                return message

    async def aclose(self) -> None:
        """Close the stream of incoming messages."""
        await self._receive_stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _handle_invalid(self, error: ValidationError) -> SessionMessage | None:
        """Answer a line that could not be parsed, or return a message to pass on in its place."""
        first, *others = error.errors(include_url=False, include_context=False)
        line, reason = first["input"], validation.escape_unstorable(first["msg"], _MAX_CHARACTERS)
        if first["type"] != "json_invalid":
            # The error has one entry for each kind of message that the line could be.
            known = (_id_of(each["input"]) for each in (first, *others))
            request = next((each for each in known if each is not None), None)
            await self._send_error(request, INVALID_REQUEST, "Invalid request")
        elif line.strip():
            outline = _parse_outline(line)
            if outline is None:
                await self._send_error(None, PARSE_ERROR, f"Parse error: {reason}")
            else:
                return await self._handle_outline(outline, self._problem(line, outline, reason))
        return None

    async def _handle_outline(self, outline: Json, problem: str) -> SessionMessage | None:
        """Handle a line by its ``outline``, as `_handle_invalid` does."""
        request = _id_of(outline)
        if not isinstance(outline, dict) or "method" not in outline:
            await self._send_error(request, INVALID_REQUEST, f"Invalid request: {problem}")
            return None
        params = outline.get("params")
        if outline["method"] != _CALL or request is None or not isinstance(params, dict):
            # A message without an id is a notification, which has no answer.
            if "id" in outline:
                await self._send_error(request, INVALID_PARAMS, f"Invalid parameters: {problem}")
            return None
        call: Json = {**outline, "params": {**params, "arguments": {_PROBLEM_ARGUMENT: problem}}}
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(_to_json(call), by_name=False))
        except ValidationError:
            await self._send_error(request, INVALID_REQUEST, f"Invalid request: {problem}")
            return None

    def _problem(self, line: str, outline: Json, reason: str) -> str:
        if _prune(line) != line:
            return self._texts("arguments.too_deep", most=MAX_NESTING)
        text = json.dumps(outline, ensure_ascii=False)
        if not validation.is_unicode(text):
            return self._texts("arguments.string_unicode")
        return self._texts("arguments.not_json", problem=reason)

    async def _send_error(self, request: RequestId | None, code: int, message: str) -> None:
        error = JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=message))
        await self._send_stream.send(SessionMessage(error))


def _id_of(message: object) -> RequestId | None:
    """Return the id of a request; None if it has no id that can be sent back."""
    found = message.get("id") if isinstance(message, dict) else None
    if isinstance(found, str):
        return found if validation.is_unicode(found) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _parse_outline(line: str) -> Json:
    """Return the JSON of a line without values that are nested too deeply; None if the line is not JSON."""
    try:
        found: Json = json.loads(_prune(line), parse_int=_parse_integer)
    except ValueError:
        return None
    return found


def _parse_integer(digits: str) -> int | None:
    # Python limits the digits of a number. A truncated number would be the id of another request.
    return int(digits) if len(digits) <= _MAX_DIGITS else None


def _to_json(message: Json) -> str:
    """Return ``message`` as JSON without lone surrogates, which parsers refuse."""
    return validation.replace_lone_surrogates(json.dumps(message, ensure_ascii=False))


def _prune(line: str) -> str:
    """Return the line with null in place of values that are nested too deeply; empty if it ends within such a
    value."""
    kept: list[str] = []
    depth = start = 0
    for token in _TOKENS.finditer(line):
        if token[0] in ("[", "{"):
            depth += 1
            if depth == MAX_NESTING + 1:
                kept += [line[start : token.start()], "null"]
        elif token[0] in ("]", "}"):
            if depth == MAX_NESTING + 1:
                start = token.end()
            depth -= 1
    return "" if depth > MAX_NESTING else "".join([*kept, line[start:]])
