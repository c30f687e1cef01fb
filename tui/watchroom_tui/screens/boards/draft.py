"""The unsaved text of a board, and the text that it is based on. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from watchroom.features.overview.model import Model
from watchroom.model import Json
from watchroom_whiteboards.sections import BoardSection, parse_sections, section_name

WHOLE: Final = 256 * 1024
"""Maximum bytes of a text in the editor, which handles each key too slowly in longer texts. Only a section of
a longer board is edited."""


class BoardDraft(NamedTuple):
    """An unsaved text for the board ``name``, or for a section of it.

    - ``version``: the version that the draft is based on.
    - ``section``: the name of the section, empty for the whole board.
    - ``before``: the board's or section's text in that version.
    """

    name: str
    version: int
    section: str
    before: str
    text: str

    @property
    def is_changed(self) -> bool:
        return self.text != self.before

    def is_unsaved(self, model: Model) -> bool:
        """Return whether dropping the draft would lose work."""
        return self.is_changed

    @property
    def label(self) -> str:
        """The board's name."""
        return self.name

    def call(self, message: str) -> tuple[str, dict[str, Json]]:
        """Return the tool that saves the draft, and its arguments."""
        arguments: dict[str, Json] = {
            "board": self.name,
            "expected_version": self.version,
            "content": self.text,
            "message": message,
        }
        if self.section:
            return "whiteboard_update_section", {**arguments, "section": self.section}
        return "whiteboard_write", arguments


def begun(name: str, version: int, data: bytes, at: int) -> BoardDraft | None:
    """Return a new draft of the whole board, or of a section if the board is too long.

    - ``data``: the board's text as UTF-8.
    - ``at``: a byte that is in the section or before it.

    None if no section there is short enough.
    """
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
    """Return the innermost section that contains byte ``at``, or the next section that is short enough. None
    if all are too long."""
    around = [number for number, each in enumerate(found) if each.heading.start <= at < each.end]
    below = found[around[-1] if around else 0 :]
    return next((each for each in below if each.end - each.heading.start <= WHOLE), None)
