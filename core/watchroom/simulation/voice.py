"""What an agent says while it works, in a few words: the task, what it is about to do, how it ended. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Final, TypeAlias

from pydantic import TypeAdapter

from watchroom.editing import parse_tool_name
from watchroom.model import UNCHECKED
from watchroom.simulation.material import load
from watchroom.simulation.roster import role_of
from watchroom.simulation.steps import Call, Result, Task, number_in, succeeded, text_in

_LONGEST: Final = 90
_WAITS: Final = frozenset({"collab_list", "check_my_handoffs"})

_Sentences: TypeAlias = Mapping[str, Mapping[str, tuple[str, ...]]]


@cache
def sentences() -> _Sentences:
    """The sentences by part and kind, read once."""
    return TypeAdapter[_Sentences](_Sentences).validate_python(load("voice.toml"))


class Voice:
    """How one agent talks. It has dice of its own: what an agent says changes nothing of what it does."""

    def __init__(self, me: str, seed: int) -> None:
        self.me = me
        self._rng = Random(f"{seed}:{me}:voice")
        self._language = "_zh" if role_of(me) == "translator" else ""

    def task(self, task: Task) -> str:
        """What the agent is told to do."""
        return self.say("task", task.kind, about=task.about)

    def before(self, call: Call, last: Call | None, result: Result) -> str:
        """What the agent says as it makes ``call``, after the call ``last`` had ``result``."""
        sentence = self.say("before", self._kind(call, last), **_slots(call, result))
        refused = result.get("success") is False and result.get("is_conflict") is not True
        if refused and last is not None and last.tool != "ask_person":
            return f"{self.say('refused', 'then', problem=_problem(result))} {sentence}"
        return sentence

    def after(self, last: Call | None, result: Result, *, gave_up: bool) -> str:
        """What the agent says when its task is over."""
        if last is None:
            return self.say("after", "other")
        if gave_up or result.get("is_conflict") is True:
            kind = "gave_up"
        elif not succeeded(result):
            kind = "refused"
        else:
            kind = f"{last.tool}_again" if last.tool == "collab_write" and last.attempt else last.tool
        return self.say("after", kind, **_slots(last, result), problem=_problem(result))

    def say(self, part: str, kind: str, **slots: object) -> str:
        """One of the sentences of that kind, with its slots filled."""
        known = sentences()[part]
        templates = known.get(kind + self._language) or known.get(kind) or known["other"]
        return self._rng.choice(templates).format_map(slots)

    def _kind(self, call: Call, last: Call | None) -> str:
        if call.tool == "collab_write":
            expected = call.arguments.get("expected_version")
            ending = {0: "_new", UNCHECKED: "_over"}.get(expected if isinstance(expected, int) else 1, "")
            return call.tool + ("_again" if call.attempt else ending)
        if call.tool.startswith("realtime_"):
            return _kind_of_edit(call)
        if call.tool.startswith("whiteboard_"):
            return _kind_at_board(call)
        if of_buffer := parse_tool_name(call.tool):
            return f"buffer_{of_buffer[1]}"
        if call.tool in _WAITS and last is not None and last.tool == call.tool:
            return f"{call.tool}_again"
        if call.arguments.get("agent_id", self.me) != self.me:
            return f"{call.tool}_other"
        return call.tool


def _kind_of_edit(call: Call) -> str:
    """A call on a realtime document, with what it does there."""
    operation = text_in(call.arguments, "operation")
    if call.tool == "realtime_set_field" and "key" in call.arguments:
        operation = "remove" if call.arguments.get("remove") is True else "key"
    return f"{call.tool}_{operation}" if operation else call.tool


def _kind_at_board(call: Call) -> str:
    """A call on a whiteboard, with what it is about there."""
    if call.tool == "whiteboard_update_section":
        return f"{call.tool}_again" if call.attempt else call.tool
    if call.arguments.get("hold") is True:
        return f"{call.tool}_hold"
    return f"{call.tool}_section" if "section" in call.arguments else call.tool


def _slots(call: Call, result: Result) -> dict[str, object]:
    given = call.arguments
    named = ("filepath", "filename", "board", "path", "buffer")
    of_buffer = None if call.tool.startswith("whiteboard_") else parse_tool_name(call.tool)
    path = next((text_in(given, name) for name in named if name in given), of_buffer[0] if of_buffer else "")
    edit = given.get("args")
    piece = text_in(edit, "text") if isinstance(edit, Mapping) else text_in(given, "element")
    piece = piece or text_in(given, "section") or _first_line(text_in(given, "new_text"))[:_LONGEST]
    message = text_in(given, "message") or _first_line(text_in(given, "content"))
    return {
        "tool": call.tool,
        "file": path.rsplit("/", 1)[-1],
        "message": message[:_LONGEST].rstrip(".。"),
        "agent": next((given[name] for name in ("to_agent", "from_agent", "agent_id") if name in given), ""),
        "piece": (piece or text_in(given, "key") or text_in(given, "value")).strip("\n- "),
        "target": given.get("to_version"),
        "base": given.get("expected_version"),
        "author": text_in(result, "current_author") or "the other one",
        "version": next(
            (
                number_in(result, name)
                for name in ("version", "new_version", "current_version")
                if result.get(name)
            ),
            0,
        ),
    }


def _first_line(text: str) -> str:
    return text.strip("\n- ").partition("\n")[0]


def _problem(result: Result) -> str:
    """What was wrong, as one sentence."""
    first = text_in(result, "message").split("\n", 1)[0]
    return first if len(first) <= _LONGEST * 2 else first[: _LONGEST * 2].rsplit(" ", 1)[0] + " …"
