"""Lines on standard input that the protocol's library cannot parse: each is answered, none is ignored.

A call whose arguments hold a lone surrogate, or are nested too deeply, is refused as any other call is; what
is no request gets an error of JSON-RPC.
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
from watchroom.model import Json
from watchroom.rules.requests import MAX_NESTING
from watchroom.texts import Catalogue

_CALL: Final = "tools/call"
_PROBLEM_ARGUMENT: Final = "\ufffd"
"""The one argument of a call whose arguments could not be parsed: what is wrong with them."""
_MAX_DIGITS: Final = 1000
_MAX_CHARACTERS: Final = 200
# A string that does not end goes to the end of the line, so that a line is looked through once.
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{\]}]', re.DOTALL)


def parse_problem(arguments: Mapping[str, Json]) -> str | None:
    """Return what is wrong with the ``arguments`` of a call, if they could not be parsed, else None."""
    problem = arguments.get(_PROBLEM_ARGUMENT)
    return problem[:_MAX_CHARACTERS] if isinstance(problem, str) and len(arguments) == 1 else None


class MalformedMessageFilter:
    """A stream of the messages of ``receive_stream``; what could not be parsed is answered through
    ``send_stream``, in the words of ``texts``.

    A call that could not be parsed comes with arguments of which `parse_problem` says what is wrong.
    """

    def __init__(self, receive_stream: Any, send_stream: Any, texts: Catalogue) -> None:
        self._receive_stream = receive_stream
        self._send_stream = send_stream
        self._texts = texts

    @property
    def last_context(self) -> Any:
        """The context that the newest message was sent in, as the library's streams have it."""
        return self._receive_stream.last_context

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message, or an error of the stream. Raises `anyio.EndOfStream`."""
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
        """The message to go on with in place of what could not be read; None where that was answered."""
        first, *others = error.errors(include_url=False, include_context=False)
        line, reason = first["input"], validation.escape_unstorable(first["msg"], _MAX_CHARACTERS)
        if first["type"] != "json_invalid":
            # Of the kinds of messages that it could have been, one lacks something of the whole.
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
        """As `_handle_invalid`, for a line whose outline could be read."""
        request = _id_of(outline)
        if not isinstance(outline, dict) or "method" not in outline:
            await self._send_error(request, INVALID_REQUEST, f"Invalid request: {problem}")
            return None
        params = outline.get("params")
        if outline["method"] != _CALL or request is None or not isinstance(params, dict):
            # What has no id is told something, and wants no answer.
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
    """The id by which a request is answered, if it has one that can be sent back."""
    found = message.get("id") if isinstance(message, dict) else None
    if isinstance(found, str):
        return found if validation.is_unicode(found) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _parse_outline(line: str) -> Json:
    """The JSON of the line without what is nested too deeply; None if it is no JSON."""
    try:
        found: Json = json.loads(_prune(line), parse_int=_parse_integer)
    except ValueError:
        return None
    return found


def _parse_integer(digits: str) -> int | None:
    # Python reads no number of any length, and a part of one would be the id of another request.
    return int(digits) if len(digits) <= _MAX_DIGITS else None


def _to_json(message: Json) -> str:
    """The message as JSON that everybody can read."""
    return validation.replace_lone_surrogates(json.dumps(message, ensure_ascii=False))


def _prune(line: str) -> str:
    """The line with null in place of what lies too deep; nothing of one that ends in there."""
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
