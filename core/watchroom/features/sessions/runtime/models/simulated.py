"""A simulated model: a function decides the answers, which are streamed."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from watchroom.features.sessions.runtime.messages import AssistantMessage, Message
from watchroom.features.sessions.runtime.models.protocol import (
    FunctionDelta,
    ModelChunk,
    ModelPayload,
    ToolCallDelta,
    Usage,
)
from watchroom.model import Json

_LEAST_APART: Final = 0.05
"""Minimum seconds between streamed pieces."""

_CHARACTERS_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: ``text``, then ``calls`` (tool and arguments).

    ``thinks``: seconds before the text. ``speaks``: seconds for the text.
    """

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Json]], ...] = ()
    thinks: float = 0.0
    speaks: float = 0.0


Decide: TypeAlias = Callable[[ModelPayload], "Reply | Awaitable[Reply]"]
"""Returns the answer to a request. An interrupted request is repeated."""


SIMULATED: Final = "simulated"
"""The name of the model."""
_INPUT_PRICE: Final = 3e-6
_CACHED_PRICE: Final = 0.3e-6
_OUTPUT_PRICE: Final = 15e-6
"""Realistic prices in US dollars per token, for input and output."""


class SimulatedModel:
    """A `ModelRuntime` that streams the answers of ``decide`` word by word, with estimated tokens and
    cost."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide

    async def __call__(self, payload: ModelPayload) -> AsyncGenerator[ModelChunk, None]:
        decided = self._decide(payload)
        reply = await decided if inspect.isawaitable(decided) else decided
        if reply.thinks > 0:
            await asyncio.sleep(reply.thinks)
        rest = reply.text
        if reply.speaks > 0:
            pieces = _split_into_pieces(reply.text, int(reply.speaks / _LEAST_APART) + 1)
            rest = ""
            for piece in pieces:
                yield ModelChunk(content=piece)
                await asyncio.sleep(reply.speaks / len(pieces))
        calls = [(name, json.dumps(arguments, ensure_ascii=False)) for name, arguments in reply.calls]
        yield ModelChunk(
            content=rest,
            tool_calls=tuple(
                ToolCallDelta(index=index, function=FunctionDelta(name=name, arguments=text))
                for index, (name, text) in enumerate(calls)
            ),
            usage=_usage(
                _estimate_tokens(sum(map(_message_length, payload.messages[:-1]))),
                _estimate_tokens(sum(map(_message_length, payload.messages[-1:]))),
                _estimate_tokens(len(reply.text) + sum(len(text) for _, text in calls)),
            ),
            finish_reason="tool_calls" if calls else "stop",
        )


def _usage(known: int, new: int, said: int) -> Usage:
    """Return the usage that a provider would report after caching the ``known`` tokens of the request."""
    cost = new * _INPUT_PRICE + known * _CACHED_PRICE + said * _OUTPUT_PRICE
    return Usage(
        input_tokens=new,
        output_tokens=said,
        cache_read_tokens=known,
        model=SIMULATED,
        cost=round(cost, 9),
        priced_by="client",
    )


def _split_into_pieces(text: str, most: int) -> Sequence[str]:
    """Split ``text`` into at most ``most`` pieces at spaces."""
    words = _split_words(text)
    size = -(-len(words) // most)
    return ["".join(words[at : at + size]) for at in range(0, len(words), size)]


def _split_words(text: str) -> list[str]:
    first, *others = text.split(" ")
    words = [first, *(f" {word}" for word in others)]
    # Chinese has no spaces between words. Most words have two characters.
    return [
        piece
        for word in words
        for piece in ([word] if word.isascii() else [word[at : at + 2] for at in range(0, len(word), 2)])
    ]


def _message_length(message: Message) -> int:
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return len(message.content) + sum(len(call.function.arguments) for call in calls)


def _estimate_tokens(characters: int) -> int:
    return -(-characters // _CHARACTERS_PER_TOKEN)
