"""What stands on the board that several agents share, and what one who stands before it knows of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, Literal, NamedTuple
from zlib import crc32

from pydantic import BaseModel, ConfigDict, Field

from watchroom.model import Json
from watchroom.simulation.material import load
from watchroom.simulation.steps import Result, names_in, number_in, text_in

_DIGITS: Final = re.compile(r"\d+")


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Section(_Data):
    """A part of the notes; each of its lines is given in the parts in which it is written."""

    heading: str
    most: int
    lines: tuple[tuple[str, ...], ...]
    language: Literal["en", "zh"] = "en"


class Board(_Data):
    """Everything in board.toml."""

    id: str
    titles: tuple[str, ...]
    areas: tuple[str, ...]
    areas_zh: tuple[str, ...]
    tasks_zh: tuple[str, ...]
    sections: tuple[Section, ...] = Field(alias="section")


@cache
def board() -> Board:
    return Board.model_validate(load("board.toml"))


class Line(NamedTuple):
    """A line of the notes, and where it stands in them."""

    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def is_finished(self) -> bool:
        """Whether its last part is written: no other ends with a full stop."""
        return self.text.endswith((".", "。"))

    def editor(self, team: Sequence[str]) -> str:
        """Who of a team begins lines with these words, and who corrects or removes this one once it is
        finished: always the same agent, whatever the numbers are. Two who changed one number at the same time
        would leave the digits of both."""
        return team[crc32(_DIGITS.sub("", self.text).encode()) % len(team)]


class Sheet:
    """The board as one who stands before it knows it."""

    def __init__(self, snapshot: Mapping[str, Json], version: int) -> None:
        self.title = text_in(snapshot, "title")
        self.notes = text_in(snapshot, "notes")
        self.tasks = set(names_in(snapshot, "tasks"))
        owners = snapshot.get("owners")
        self.owners = {key: str(who) for key, who in owners.items()} if isinstance(owners, Mapping) else {}
        self.version = version
        self.is_behind = False
        self.others_write = False
        self.line = ""
        self.rest: tuple[str, ...] = ()

    def wrote(self, result: Result) -> None:
        """An edit was taken: its version tells whether it was the only one."""
        version = number_in(result, "version")
        self.others_write = version > self.version + 1
        self.is_behind = self.is_behind or "notice" in result
        self.version = version

    def lines(self, section: Section) -> list[Line]:
        """What stands below a heading."""
        is_below = False
        found = []
        for line in self._all():
            if line.text.startswith("## "):
                is_below = line.text == section.heading
            elif is_below and line.text:
                found.append(line)
        return found

    def end_of(self, section: Section) -> int | None:
        """Where the next line of a section goes: below its last; None where its heading is gone."""
        heading = next((line for line in self._all() if line.text == section.heading), None)
        if heading is None:
            return None
        # Below, not at the end of the last line: somebody may be adding to that at the same time.
        return max((line.end for line in self.lines(section)), default=heading.end) + 1

    def unfinished(self) -> Line | None:
        """The line that its writer has begun, if it still stands as it was left."""
        return next((line for line in self._all() if self.line and line.text == self.line), None)

    def _all(self) -> Iterator[Line]:
        start = 0
        for text in self.notes.split("\n"):
            yield Line(start, text)
            start += len(text) + 1
