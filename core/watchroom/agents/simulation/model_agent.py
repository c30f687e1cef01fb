"""A simulated model: it answers each request with the next move of a script.

The next move depends only on the conversation so far. So another process can resume a session at the same
point. `developer` returns such models for tasks: an architect and programmers who write and test a small
program.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import Final, cast

from watchroom.agents.simulation.scenario import Scenario, WaitFor
from watchroom.agents.simulation.scenario_file import BUILT_IN, load
from watchroom.agents.simulation.script import Heard, Move, Play, Result, Script
from watchroom.features.config.rows import Agent
from watchroom.features.sessions.runtime import (
    AssistantMessage,
    Message,
    ModelPayload,
    ToolMessage,
    UserMessage,
)
from watchroom.features.sessions.runtime.models import Reply, SimulatedModel
from watchroom.features.tasks.rules import Member
from watchroom.model import USER, Json
from watchroom.texts import Language

_WORD_SECONDS: Final = 0.16
_THINKS: Final = 0.4
_SCENARIO: Final = BUILT_IN / "developers.toml"
_IDLE: Final = "idle"


class ScriptedModel:
    """Produces the `Reply` to each request, for a `SimulatedModel`.

    - ``start``: returns the script of a session, from its first text.
    - ``speed``: divides all pauses, default 0: no pauses.
    - ``wait``: waits for a `WaitFor` of the script, and returns whether it was met in time. Default: do not
      wait.
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
        """Return the answer to ``payload``. An interrupted answer is repeated."""
        opening, turns = _conversation(payload.messages)
        # Messages that arrived after an interrupted answer belong to the same turn, so replay the script.
        is_longer = 0 < len(turns) == self._turns and len(turns[-1].said) > self._said
        if self._script is None or len(turns) < self._turns or is_longer:
            self._script = self._start(opening)
            self._step = next(self._script)
            self._turns = 0
        while True:
            if isinstance(self._step, WaitFor):
                # Do not wait again for an event that has already happened.
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
    """Return the result of a call from the ``content`` of its message.

    ``edited`` is set if a person changed the arguments.
    """
    given = json.loads(content)
    if not isinstance(given, dict):
        return {"success": True, "result": given}
    if "success" in given or "result" not in given:
        return given
    # The result is wrapped if a person changed the arguments or left a note.
    result = given["result"]
    edited = {"edited": given["edited_arguments"]} if "edited_arguments" in given else {}
    return {**(result if isinstance(result, dict) else {}), **edited}


def _conversation(messages: Sequence[Message]) -> tuple[str, list[Heard]]:
    """Return the first text, and the messages after each answer of the model.

    Messages before the first answer are returned with those after it.
    """
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


@cache
def _scenario() -> Scenario:
    return load(_SCENARIO)


def developer(member: Member, language: Language, *, speed: float = 0.0) -> SimulatedModel:
    """Return the simulated model of a task's agent, who plays its role in the scenario ``developers``.

    - ``member``: the agent.
    - ``language``: the language of its texts.
    - ``speed``: divides all pauses, default 0: no pauses.
    """
    scenario = _scenario()
    role = member.role if member.role in scenario.routines else _IDLE
    agent = Agent(member.id, member.role, member.layer, member.parent or USER)
    play = Play(scenario, agent, (), language=language)
    return SimulatedModel(ScriptedModel(partial(play.script, role), speed=speed))
