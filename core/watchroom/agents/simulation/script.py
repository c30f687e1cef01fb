"""Plays routines as a generator of moves: an agent's texts and calls.

The moves depend only on the seed and on the messages to the agent. Pure: without clock, threads and files, a
session can be replayed from its messages.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeAlias

from watchroom.agents.simulation.scenario import Scenario, SessionPlan, Step, WaitFor
from watchroom.agents.simulation.template import Template, as_text
from watchroom.algorithms.editing import parse_tool_name
from watchroom.features.config.rows import Agent
from watchroom.model import HUMAN_PREFIX, SYSTEM, Json
from watchroom.texts import Language

Result: TypeAlias = Mapping[str, Json]

_MAX_MESSAGE: Final = 200
_MAX_ITEMS: Final = 50
_CLOSING: Final = "…"
"""The last answer if the scenario has no text for it, because an answer cannot be empty."""

_MAX_DEPTH: Final = 12
"""Maximum nesting of routines."""


@dataclass(frozen=True, slots=True)
class Move:
    """The next move of an agent.

    - ``say``: its text.
    - ``tool``, ``arguments``: its call. Without a tool, its turn ends.
    - ``pause``: seconds before it, at speed 1.
    """

    say: str
    tool: str = ""
    arguments: Mapping[str, Json] = field(default_factory=dict)
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class Heard:
    """The input for an agent after a move: the ``result`` of its call, and messages with their authors."""

    result: Result = field(default_factory=dict)
    said: Sequence[tuple[str, str]] = ()


Script: TypeAlias = Generator[Move | WaitFor, Heard, None]


class _Stopped(Exception):
    """The routine ends. ``say``: the last answer."""

    def __init__(self, say: str) -> None:
        super().__init__(say)
        self.say = say


@dataclass(frozen=True, slots=True)
class Play:
    """One session of an agent.

    - ``scenario``, ``agent``: the scenario, and the agent.
    - ``team``: all agents.
    - ``seed``: the seed of random choices.
    - ``number``: the number of the agent's session, which also seeds them.
    - ``language``: the language of its texts.
    - ``now``: the time that the agent writes into texts.
    """

    scenario: Scenario
    agent: Agent
    team: Sequence[Agent] = ()
    seed: int = 0
    number: int = 0
    language: Language = "en"
    now: str = ""

    def task(self, routine: str) -> str:
        """Return the first message of a session with ``routine``."""
        return _Session(self).task(routine)

    def script(self, routine: str, opening: str = "") -> Script:
        """Return the moves of a session with ``routine`` from its start. ``opening``: its first message."""
        return _Session(self).script(routine, opening)


class _Session:
    """The state of a session."""

    def __init__(self, play: Play) -> None:
        agent, scenario = play.agent, play.scenario
        self._scenario = scenario
        self._changes = scenario.changes_in(play.language)
        actor = scenario.actor_of(agent.id)
        self._pace = actor.pace if actor else (0.8, 2.5)
        copy = agent.id.removeprefix(actor.id) if actor else ""
        random = f"{play.seed}:{agent.id}:{play.number}"
        self._pauses = Random(f"{random}:pauses")
        values: dict[str, Json] = {
            "me": agent.id,
            "role": agent.role,
            "layer": agent.layer,
            "supervisor": agent.supervisor,
            "others": [each.id for each in play.team if each.id != agent.id],
            "team": [each._asdict() for each in play.team],
            "suffix": copy,
            "folder": f"team{copy}/" if copy else "",
            "n": play.number,
            "now": play.now,
        }
        texts = scenario.texts_in(play.language)
        self._template = Template(values, texts, scenario.file_texts(), Random(random))
        self._said: list[tuple[str, str]] = []
        self._due = 0.0

    def task(self, routine: str) -> str:
        return self._template.text(self._scenario.routines[routine].task) or routine

    def script(self, name: str, opening: str = "") -> Script:
        routine = self._scenario.routines[name]
        self._pace = routine.pace or self._pace
        self._template.values["opening"] = opening
        try:
            yield from self._steps(routine, 0)
            say = self._text("done", routine.done)
        except _Stopped as stopped:
            say = stopped.say or self._text("done", routine.done)
        while True:
            heard = yield Move(say or _CLOSING, pause=self._pause(None) / 2)
            yield from self._listen(heard)
            say = self._text("idle", ())

    def _steps(self, routine: SessionPlan, depth: int) -> Script:
        if depth > _MAX_DEPTH:
            raise _Stopped("")
        for step in routine.steps:
            times = (
                step.repeat if isinstance(step.repeat, int) else self._template.random.randint(*step.repeat)
            )
            for _ in range(times):
                if self._is_due(step):
                    yield from self._step(step, depth)

    def _is_due(self, step: Step) -> bool:
        if step.chance < 1 and self._template.random.random() >= step.chance:
            return False
        if step.when and not self._template.holds(step.when):
            return False
        return not (step.unless and self._template.holds(step.unless))

    def _step(self, step: Step, depth: int) -> Script:
        if step.call:
            yield from self._call(step, depth)
        elif step.play:
            yield from self._play(step, depth)
        elif step.wait:
            path = as_text(self._template.fill(step.wait.path))
            heard = yield step.wait.model_copy(update={"path": path})
            if heard.result.get("timed_out"):
                raise _Stopped(self._text("gave_up", step.say))
        elif step.hear:
            yield from self._hear(step)
        elif step.choose:
            self._bind(step.result, self._chosen(step))
        elif step.set:
            for name, value in step.set.items():
                self._bind(name, self._template.fill(value))
        elif step.stop:
            raise _Stopped(self._template.text(step.say))
        elif step.pause:
            self._due += self._pauses.uniform(*step.pause)

    def _call(self, step: Step, depth: int) -> Script:
        result: Result = {}
        again = False
        for _ in range(step.tries + 1 if step.retry else 1):
            move = self._move(step, again)
            heard = yield move
            result = heard.result
            if result.get("error") in step.again_on:
                repeated = yield self._move(step, True)
                result, heard = repeated.result, Heard({}, (*heard.said, *repeated.said))
            self._bind(step.result, dict(result))
            yield from self._listen(heard)
            if result.get("is_conflict") is not True or not step.retry:
                break
            current = {"content": result.get("current_content"), "version": result.get("current_version")}
            author = {"author": result.get("current_author")}
            self._bind(step.retry, {**current, **author})
            again = True
        if result.get("success") is not True:
            yield from self._failed(step, result, depth)

    def _move(self, step: Step, again: bool) -> Move:
        tool = as_text(self._template.fill(step.call))
        filled = self._template.fill(dict(step.args))
        given = filled if isinstance(filled, Mapping) else {}
        arguments = {name: each for name, each in given.items() if each is not None}
        self._template.values["message"] = arguments.get("message") or arguments.get("question") or ""
        buffer_tool = parse_tool_name(tool)
        kind = f"call.{buffer_tool[1]}" if buffer_tool else f"call.{tool}"
        say = self._text("again" if again else kind, () if again else step.say)
        if not say:
            say = self._text("call", ())
        return Move(say, tool, arguments, self._pause(step))

    def _failed(self, step: Step, result: Result, depth: int) -> Script:
        code = as_text(result.get("error"))
        self._template.values["problem"] = as_text(result.get("message")).split("\n", 1)[0][:_MAX_MESSAGE]
        if isinstance(step.on_error, Mapping) and code in step.on_error:
            yield from self._steps(self._scenario.routines[step.on_error[code]], depth + 1)
            return
        if step.on_error != "continue":
            kind = "gave_up" if result.get("is_conflict") is True else code if code in _ANSWERS else "refused"
            raise _Stopped(self._text(kind, ()))

    def _play(self, step: Step, depth: int) -> Script:
        routine = self._scenario.routines[step.play]
        items = self._template.fill(step.each) if step.each else [None]
        for item in (items if isinstance(items, list) else [])[:_MAX_ITEMS]:
            self._template.values["item"] = item
            given = {name: self._template.fill(value) for name, value in step.given.items()}
            self._template.values.update(given)
            try:
                yield from self._steps(routine, depth + 1)
            except _Stopped as stopped:
                if stopped.say:
                    raise

    def _hear(self, step: Step) -> Script:
        """Wait until each of the agents has sent a message or is reported as ended."""
        wanted = [as_text(self._template.fill(each)) for each in step.hear]
        reports: dict[str, str] = {}
        gone: list[str] = []
        while True:
            for author, text in self._said:
                if author in wanted:
                    reports[author] = text
                elif author == SYSTEM:
                    gone += [each for each in wanted if text.startswith(f"{each} ") and each not in reports]
            self._said.clear()
            if all(each in reports or each in gone for each in wanted):
                break
            heard = yield Move(self._text("waits", step.say) or _CLOSING)
            yield from self._listen(heard)
        texts: list[Json] = [reports.get(each, "") for each in wanted]
        missing = next((each for each in wanted if each not in reports), "")
        self._bind(step.result, {"texts": texts, "text": texts[-1], "missing": missing})

    def _listen(self, heard: Heard) -> Script:
        """Collect messages. Play the routine ``on_message`` for messages of people."""
        self._said += heard.said
        for author, text in heard.said:
            if author.startswith(HUMAN_PREFIX) and self._scenario.on_message:
                line = " ".join(text.split())[:_MAX_MESSAGE]
                self._template.values |= {"who": author.removeprefix(HUMAN_PREFIX), "said": line}
                with suppress(_Stopped):
                    yield from self._steps(self._scenario.routines[self._scenario.on_message], _MAX_DEPTH)

    def _chosen(self, step: Step) -> Json:
        """Choose a change that fits the text: old passage, new passage and message. Empty if none fits."""
        text = as_text(self._template.fill(step.among))
        fitting: list[Json] = []
        for change in self._changes.get(step.choose, ()):
            for at, option in enumerate(change.options):
                if option in text:
                    new = (at + 1) % len(change.options)
                    message = self._template.text(change.messages[new])
                    fitting.append({"old": option, "new": change.options[new], "message": message})
                    break
        return self._template.random.choice(fitting) if fitting else ""

    def _bind(self, name: str, value: Json) -> None:
        if name:
            self._template.values[as_text(self._template.fill(name))] = value

    def _text(self, name: str, own: str | Sequence[str]) -> str:
        """Return ``own``, or a random text of several. If ``own`` is empty, return the scenario's text
        ``name``."""
        return self._template.text(own) if own else as_text(self._template.fill("${text." + name + "}"))

    def _pause(self, step: Step | None) -> float:
        due, self._due = self._due, 0.0
        return due + self._pauses.uniform(*(step.pause if step and step.pause else self._pace))


_ANSWERS: Final = frozenset({"no_answer", "rejected"})
