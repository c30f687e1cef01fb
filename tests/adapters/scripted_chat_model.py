"""A chat model of LangChain that makes calls it was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class ScriptedChatModel(BaseChatModel):
    """Makes the ``calls``, each a tool and its arguments, and then says that it is done."""

    calls: list[tuple[str, dict[str, Any]]]

    seen: list[list[BaseMessage]] = []  # noqa: RUF012  # as pydantic has it: each has its own
    bound: list[Any] = []  # noqa: RUF012

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **given: Any) -> Any:
        self.bound.extend(tools)
        return self

    def _generate(self, messages: list[BaseMessage], *given: Any, **named: Any) -> ChatResult:
        self.seen.append(list(messages))
        number = len(self.seen) - 1
        said = AIMessage("Done.")
        if number < len(self.calls):
            tool, arguments = self.calls[number]
            said = AIMessage("", tool_calls=[{"id": str(number), "name": tool, "args": arguments}])
        return ChatResult(generations=[ChatGeneration(message=said)])
