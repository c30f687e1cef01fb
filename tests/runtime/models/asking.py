"""Asks a model, and insists on the failure that comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from runtime.models.server import answering, said
from watchroom.errors import ModelFailed
from watchroom.features.sessions.runtime.messages import UserMessage
from watchroom.features.sessions.runtime.models import ModelPayload, OpenAICompatible

ASK = ModelPayload(messages=(UserMessage(content="Hi", author="human:ana"),))


KEY = "sk-very-secret-0123456789"


HELLO = answering(said("Hello", " world"))


async def text(runtime: OpenAICompatible, payload: ModelPayload = ASK) -> str:
    return "".join([chunk.content async for chunk in runtime(payload)])


@contextmanager
def failing(rule: str) -> Iterator[dict[str, Any]]:
    """Expects a failure by this rule, and that no key is told; gives its values."""
    values: dict[str, Any] = {}
    with pytest.raises(ModelFailed) as failed:
        yield values
    values |= failed.value.values
    assert values["rule"] == rule, values
    seen: BaseException | None = failed.value
    while seen is not None:
        assert KEY not in f"{seen!r} {seen}"
        seen = seen.__cause__
