"""The messages of a session as its model is sent them, with earlier results of live tools in short form."""

from __future__ import annotations

from watchroom.runtime.agent import LiveTools
from watchroom.runtime.messages import AssistantMessage, Message, ToolMessage
from watchroom.runtime.state import AgentState


class MessageCondenser:
    """Condenses results of the tools of ``live``; the state keeps them whole. It caches what it did for the
    session that it was asked about last, so that a turn costs no more in a long session."""

    def __init__(self, live: LiveTools) -> None:
        self._live = live
        self._seen: tuple[Message, ...] = ()
        self._sent: list[Message] = []
        self._tools: dict[str, str] = {}

    def messages(self, state: AgentState) -> tuple[Message, ...]:
        """All messages of ``state``, condensed up to the model's last answer."""
        known = len(self._seen)
        if state.messages[:known] != self._seen:
            known, self._sent, self._tools = 0, [], {}
        places = range(len(state.messages), 0, -1)
        newest = next((at for at in places if isinstance(state.messages[at - 1], AssistantMessage)), 0)
        for message in state.messages[known:newest]:
            self._sent.append(self._condense(message, is_newest=False))
        self._seen = state.messages[: max(known, newest)]
        return (*self._sent, *(self._condense(each, is_newest=True) for each in state.messages[newest:]))

    def _condense(self, message: Message, *, is_newest: bool) -> Message:
        if isinstance(message, AssistantMessage):
            self._tools.update((call.id, call.function.name) for call in message.tool_calls)
        if not isinstance(message, ToolMessage):
            return message
        tool = self._tools.get(message.tool_call_id, "")
        content = self._live.condense(tool, message.content, is_newest=is_newest)
        return message if content == message.content else message.model_copy(update={"content": content})
