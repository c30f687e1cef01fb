"""An agent's mind: its script, as answers to the requests that its model gets. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from watchroom.model import HUMAN_PREFIX, Json
from watchroom.runtime import ASK_PERSON, Message, ToolMessage, UserMessage
from watchroom.runtime.models import Reply
from watchroom.simulation.steps import (
    NOTHING,
    Call,
    Dropped,
    GaveUp,
    Now,
    Pause,
    Remark,
    Result,
    Script,
    Step,
    Task,
    Turn,
    text_in,
)
from watchroom.simulation.tally import Tally
from watchroom.simulation.turns import PATIENCE, Turns
from watchroom.simulation.voice import Voice

_LEAST_WAIT: Final = 0.01
"""Who waits for another agent must not keep it from running, not even at full speed."""

_WORD_SECONDS: Final = 0.16
_LONGEST: Final = 160
_REST: Final = 20.0
"""So long an agent does nothing when a person has ended its session."""

_BROKEN: Final = frozenset({"tool_failed", "tool_not_found"})
"""What no tool of the toolbox gives, whatever it is called with."""


class ToolBroke(Exception):
    """A tool did what none may do, and the agent cannot go on."""


class Mind:
    """Follows the ``script`` of ``agent``: `opens` gives the next task, `reply` what is said in its session.

    ``turns`` are None where nobody is asked. ``speed`` divides all pauses; 0 leaves them out. ``clock`` tells
    the time as the agent writes it down.
    """

    def __init__(
        self,
        agent: str,
        script: Script[None],
        voice: Voice,
        tally: Tally,
        *,
        clock: Callable[[], str],
        speed: float = 0.0,
        turns: Turns | None = None,
    ) -> None:
        self.call: Call | None = None
        self.patience = PATIENCE
        self._agent = agent
        self._script = script
        self._voice = voice
        self._tally = tally
        self._clock = clock
        self._speed = speed
        self._turns = turns
        self._next: Step = next(script)
        self._task = Task("")
        self._result: Result = NOTHING
        self._seconds = 0.0
        self._remark = ""
        self._gave_up = False
        self._asked = False
        self._said: list[Json] = []
        self._standing: Reply | None = None
        self._heard = 0
        self._noted = 0

    def opens(self) -> tuple[Task, str]:
        """Go on to the next task that calls a tool; gives it, and what the agent is told to do."""
        while not isinstance(self._next, Call):
            if isinstance(self._next, Task):
                self._task = self._next
            self._next = self._follow(NOTHING)
        self.call, self._result, self._gave_up, self._remark = None, NOTHING, False, ""
        self._standing, self._noted = None, 0
        return self._task, self._voice.task(self._task)

    def reply(self, messages: Sequence[Message]) -> Reply:
        """What the agent says to ``messages``. Where its answer was cut short, it says the same again."""
        heard = next((at for at in range(len(messages), 0, -1) if messages[at - 1].role == "assistant"), 0)
        if self._standing is None or heard != self._heard:
            self._heard = heard
            self._standing = self._decide(messages[heard:])
        told = self._note(messages, heard)
        if not told:
            return self._standing
        return replace(self._standing, text=f"{told} {self._standing.text}".strip())

    def drops(self) -> None:
        """A person ended the session: leave the task, and do nothing for a while."""
        if isinstance(self._next, Call):
            self._next = self._follow(NOTHING, Dropped())
        if self._speed:
            self._seconds += _REST / self._speed

    def _decide(self, new: Sequence[Message]) -> Reply:
        results = [message for message in new if isinstance(message, ToolMessage)]
        if results:
            self._result = result_of(results[-1].content)
            if self._result.get("error") in _BROKEN:
                raise ToolBroke(text_in(self._result, "message"))
            self._next = self._follow(self._result)
        elif self._heard:
            # It had said its last word already, and somebody wrote to it once more.
            return Reply("–")
        step, last = self._next, self.call
        remark, self._remark = self._remark, ""
        if isinstance(step, Call):
            self.call = step
            self._asked = self._asked or step.tool == ASK_PERSON or step.tool in self._task.asks
            return self._spoken(
                remark or self._voice.before(step, last, self._result), ((step.tool, step.arguments),)
            )
        return self._spoken(remark or self._voice.after(last, self._result, gave_up=self._gave_up), ())

    def _follow(self, result: Result, error: Exception | None = None) -> Call | Task:
        """The next call, or the next task."""
        step = self._script.send(result) if error is None else self._script.throw(error)
        while not isinstance(step, Call | Task):
            answer = NOTHING
            if isinstance(step, Pause):
                seconds = step.seconds / self._speed if self._speed else 0.0
                self._seconds += max(seconds, _LEAST_WAIT) if step.waiting else seconds
            elif isinstance(step, GaveUp):
                self._gave_up = True
                self._tally.gave_up()
            elif isinstance(step, Remark):
                self._remark = self._voice.say("people", step.kind, **step.slots)
            elif isinstance(step, Now):
                answer = {"time": self._clock()}
            else:
                answer = self._turn(step)
            step = self._script.send(answer)
        return step

    def _turn(self, turn: Turn) -> Result:
        said, self._said = self._said, []
        if self._turns is None:
            return {"said": said}
        self._turns.ends(self._agent, used=self._asked)
        self._asked = False
        chance = self._turns.take(self._agent, turn.kinds)
        if chance is None:
            return {"said": said}
        self.patience = chance.patience
        return {"said": said, "asks": chance.kind}

    def _spoken(self, text: str, calls: tuple[tuple[str, Mapping[str, Json]], ...]) -> Reply:
        """The words, over the time of the pauses that were due; before a long one the agent is silent. Its
        last words take time of the pause that comes after them."""
        words = max(text.count(" ") + 1, len(text) // 6)
        at_ease = words * _WORD_SECONDS / self._speed if self._speed else 0.0
        ahead = 0.0 if calls else at_ease / 2
        seconds, self._seconds = max(0.0, self._seconds + ahead), -ahead
        speaks = min(seconds, at_ease)
        return Reply(text, calls, thinks=seconds - speaks, speaks=speaks)

    def _note(self, messages: Sequence[Message], heard: int) -> str:
        """What people said since the agent spoke last is kept, and answered."""
        answers = []
        for at, message in enumerate(messages[heard:], heard):
            if isinstance(message, UserMessage) and message.author.startswith(HUMAN_PREFIX):
                text = " ".join(message.content.split())[:_LONGEST]
                who = message.author.removeprefix(HUMAN_PREFIX)
                answers.append(self._voice.say("people", "heard", who=who, text=text))
                if at >= self._noted:
                    self._noted = at + 1
                    self._said.append({"by": who, "text": text})
        return " ".join(answers)


def result_of(content: str) -> Result:
    """A call's result; of a call that a person changed, with ``edited`` set."""
    given = json.loads(content)
    if not isinstance(given, dict):
        return {"success": True, "result": given}
    if "edited_arguments" not in given:
        return given
    result = given["result"]
    return {**(result if isinstance(result, dict) else {}), "edited": given["edited_arguments"]}
