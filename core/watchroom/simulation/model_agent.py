"""A simulated model: answers each question by the moves of a script, which it follows through the
conversation.

Whatever was said so far decides what comes next, and nothing else: a session that is taken up by another
process goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, cast

from watchroom.model import Json
from watchroom.runtime import AssistantMessage, Message, ModelPayload, ToolMessage, UserMessage
from watchroom.runtime.models import Reply
from watchroom.simulation.scenario import WaitFor
from watchroom.simulation.script import Heard, Move, Result, Script

_WORD_SECONDS: Final = 0.16
_THINKS: Final = 0.4


class ScriptedModel:
    """Gives the `Reply` to each request for a `SimulatedModel`.

    ``start`` gives the script of a session from the first text in it. ``speed`` divides its pauses, 0
    leaves them out. ``wait`` waits for what a script waits for, and says whether it came; None: nothing is
    waited for.
    """

    def __init__(
        self,
        start: Callable[[str], Script],
        *,
        speed: float = 0.0,
        wait: Callable[[WaitFor], Awaitable[bool]] | None = None,
    ) -> None:
        self._start = start
        self._speed = speed
        self._wait = wait
        self._script: Script | None = None
        self._step: Move | WaitFor | None = None
        self._turns = 0
        self._said = 0

    async def __call__(self, payload: ModelPayload) -> Reply:
        """The answer to ``payload``. Where an answer was cut short, the same is said again."""
        opening, turns = _conversation(payload.messages)
        # What was said since to an answer that was cut short is heard with what came before it.
        is_longer = 0 < len(turns) == self._turns and len(turns[-1].said) > self._said
        if self._script is None or len(turns) < self._turns or is_longer:
            self._script = self._start(opening)
            self._step = next(self._script)
            self._turns = 0
        while True:
            if isinstance(self._step, WaitFor):
                # What is past need not be waited for once more.
                came = len(turns) > self._turns or self._wait is None or await self._wait(self._step)
                self._step = self._script.send(Heard({} if came else {"timed_out": True}))
            elif self._turns < len(turns):
                heard, self._turns = turns[self._turns], self._turns + 1
                self._said = len(heard.said)
                self._step = self._script.send(heard)
            else:
                return self._reply(cast("Move", self._step))

    def _reply(self, move: Move) -> Reply:
        calls: tuple[tuple[str, Mapping[str, Json]], ...] = (
            ((move.tool, move.arguments),) if move.tool else ()
        )
        if not self._speed:
            return Reply(move.say, calls)
        words = max(move.say.count(" ") + 1, len(move.say) // 6) * _WORD_SECONDS
        speaks = min(words, max(move.pause - _THINKS, 0.0))
        return Reply(move.say, calls, (move.pause - speaks) / self._speed, speaks / self._speed)


def result_of(content: str) -> Result:
    """The result of a call, from the ``content`` of its message; with ``edited`` set if a person changed
    it."""
    given = json.loads(content)
    if not isinstance(given, dict):
        return {"success": True, "result": given}
    if "success" in given or "result" not in given:
        return given
    # What a person changed or said stands around the result.
    result = given["result"]
    edited = {"edited": given["edited_arguments"]} if "edited_arguments" in given else {}
    return {**(result if isinstance(result, dict) else {}), **edited}


def _conversation(messages: Sequence[Message]) -> tuple[str, list[Heard]]:
    """What was said first, and what came after each word of the model. What came before its first word is
    heard after it."""
    at = next((n for n, each in enumerate(messages) if isinstance(each, UserMessage)), len(messages))
    first = messages[at].content if at < len(messages) else ""
    groups: list[list[Message]] = []
    early: list[Message] = []
    for message in messages[at + 1 :]:
        if isinstance(message, AssistantMessage):
            groups.append([])
        else:
            (groups[-1] if groups else early).append(message)
    if groups:
        groups[0] = [*early, *groups[0]]
    return first, [_heard(group) for group in groups]


def _heard(group: Sequence[Message]) -> Heard:
    results = [each.content for each in group if isinstance(each, ToolMessage)]
    said = tuple((each.author, each.content) for each in group if isinstance(each, UserMessage))
    return Heard(result_of(results[-1]) if results else {}, said)
