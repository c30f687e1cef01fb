"""One whiteboard, as an agent works at it: read, set up, brought on section by section, through tools alone.

Where somebody was faster the agent reads again and tries once more; a board that somebody else holds, or that
is not there, it leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from watchroom.model import Json
from watchroom.simulation.desk import AgentContext
from watchroom.simulation.page import ENTRY, SECTION, Part, joined, parts_of
from watchroom.simulation.pen import Change, Kind, Pen, kind_of
from watchroom.simulation.steps import Call, Now, Result, Script, number_in, succeeded, text_in

_TRIES: Final = 2
_NAMES: Final = ("{taskName}", "{任务名称}")

Bodies: TypeAlias = Mapping[Kind, str]
Changes: TypeAlias = Mapping[Kind, Change]


class Whiteboard:
    """The board of that ``name``, before an agent with its ``pen``."""

    def __init__(self, desk: AgentContext, pen: Pen, name: str) -> None:
        self.pen = pen
        self.name = name
        self._desk = desk
        self._version = 0

    def read(self, *, hold: bool = False) -> Script[list[Part] | None]:
        """The whole board by its sections, None: it cannot be had."""
        found = yield from self._call("whiteboard_read", **_held(hold))
        self._version = number_in(found, "version")
        return parts_of(text_in(found, "content"), SECTION) if succeeded(found) else None

    def read_section(self, kind: Kind, *, hold: bool = False) -> Script[str | None]:
        """What stands in a section, None: it cannot be had."""
        found = yield from self._call("whiteboard_read", section=self.pen.heading(kind), **_held(hold))
        return text_in(found, "content").partition("\n")[2].strip("\n") if succeeded(found) else None

    def set_up(self, parts: list[Part], changes: Changes) -> Script[None]:
        """Write a board that still is its template, whose ``parts`` were read."""
        filled = []
        for part in parts:
            kind = kind_of(part.title)
            change = changes.get(kind) if kind else None
            filled.append(part._replace(body=change(part.body).body) if change else part)
        text = joined(filled, SECTION)
        for name in _NAMES:
            text = text.replace(name, self.pen.phrases.name)
        yield from self._call(
            "whiteboard_write",
            content=f"{text}\n",
            message=self.pen.phrases.message,
            expected_version=self._version,
        )

    def bring_on(self, kind: Kind, change: Change, body: str | None) -> Script[str]:
        """Put there what follows from the ``body`` of a section, if it has one; gives what to log."""
        for attempt in range(_TRIES):
            if body is None:
                return ""
            written = change(body)
            if written.body == body:
                return written.note
            result = yield from self._put(kind, body, written.body, attempt)
            if result.get("is_conflict") is not True:
                return written.note if succeeded(result) else ""
            body = yield from self.read_section(kind)
        return ""

    def sign(self, entry: str) -> Script[None]:
        yield from self._call("whiteboard_append", content=entry)

    def _put(self, kind: Kind, before: str, after: str, attempt: int) -> Script[Result]:
        """What only adds to a section is appended to it: that collides with nobody."""
        section = self.pen.heading(kind)
        more = after.removeprefix(before)
        if before and len(more) < len(after) and more.startswith("\n"):
            return (yield from self._call("whiteboard_append", section=section, content=more.strip("\n")))
        return (yield from self._call("whiteboard_update_section", attempt, section=section, content=after))

    def _call(self, tool: str, attempt: int = 0, /, **arguments: Json) -> Script[Result]:
        yield self._desk.rhythm.pause()
        return (yield Call(tool, {"board": self.name, **arguments}, attempt))


def at(desk: AgentContext, name: str) -> Script[Whiteboard]:
    """Go to a board."""
    now = text_in((yield Now()), "time")
    leads = desk.agent.layer != "bottom"
    return Whiteboard(desk, Pen(desk.me, desk.author, now, leads=leads, chinese=desk.writes_chinese), name)


def bodies(parts: list[Part]) -> Bodies:
    kinds = ((kind_of(part.title), part.body) for part in parts)
    return {kind: body for kind, body in kinds if kind is not None}


def is_blank(parts: list[Part], kind: Kind) -> bool:
    """Whether a section still shows the entry that the template has as an example."""
    return any(entry.is_blank for entry in parts_of(bodies(parts).get(kind, ""), ENTRY))


def _held(hold: bool) -> dict[str, Json]:
    return {"hold": True} if hold else {}
