"""The unsaved text of a board: what it started from and what it is now. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from watchroom.features.overview.model import Model
from watchroom.model import Json
from watchroom_whiteboards.sections import BoardSection, parse_sections, section_name

WHOLE: Final = 256 * 1024
"""Boards up to so many bytes are edited whole; of longer ones the section that is looked at: an editor takes
too long for each key with more."""


class BoardDraft(NamedTuple):
    """A text on its way to the board ``name``, or to a section of it. ``version`` is the one it started from,
    ``before`` the text there."""

    name: str
    version: int
    section: str
    before: str
    text: str

    @property
    def is_changed(self) -> bool:
        return self.text != self.before

    def is_unsaved(self, model: Model) -> bool:
        """Whether something would be lost if this were dropped."""
        return self.is_changed

    @property
    def label(self) -> str:
        """The board's name."""
        return self.name

    def call(self, message: str) -> tuple[str, dict[str, Json]]:
        """The tool that saves it, and its arguments."""
        where: dict[str, Json] = {"board": self.name, "expected_version": self.version}
        if self.section:
            return "whiteboard_update_section", {**where, "section": self.section, "content": self.text}
        return "whiteboard_write", {**where, "content": self.text, "message": message}


def begun(name: str, version: int, data: bytes, at: int) -> BoardDraft | None:
    """A draft of the whole board (UTF-8), or of a section at or after byte ``at`` where the board is long;
    None where no section there is short enough."""
    if len(data) <= WHOLE:
        text = data.decode()
        return BoardDraft(name, version, "", text, text)
    found = parse_sections(data)
    section = _short(found, at)
    if section is None:
        return None
    text = data[section.heading.body : section.end].decode()
    return BoardDraft(name, version, section_name(data, section, found), text, text)


def _short(found: Sequence[BoardSection], at: int) -> BoardSection | None:
    """The section in which byte ``at`` stands; where that is long, the first below that is not."""
    around = [number for number, each in enumerate(found) if each.heading.start <= at < each.end]
    below = found[around[-1] if around else 0 :]
    return next((each for each in below if each.end - each.heading.start <= WHOLE), None)
