"""The errors of the whiteboards, beside those of the core."""

from __future__ import annotations

from typing import ClassVar

from watchroom.errors import PermissionDenied, WatchroomError
from watchroom.model import Outcome


class BoardError(WatchroomError):
    """Base of the whiteboards' own errors."""

    package: ClassVar[str] = "watchroom_whiteboards.texts"


class BoardNotFound(BoardError):
    """A board that no agent of the team keeps and nobody ever wrote. Values: board, known."""

    code = "board_not_found"


class BoardDenied(PermissionDenied):
    """The agent's layer does not allow this; ``rule`` says why. Values: board, rule, own."""

    texts = "board_denied"
    package: ClassVar[str] = "watchroom_whiteboards.texts"


class SectionNotFound(BoardError):
    """No section of that name. Values: section, board, known."""

    code = "section_not_found"


class SectionAmbiguous(BoardError):
    """Several headings of that title. Values: section, board, candidates."""

    code = "section_ambiguous"
    outcome: ClassVar[Outcome] = "denied"


class InvalidSection(BoardError):
    """A text that would not stay within its section; ``rule`` names why. Values: section, rule."""

    code = "invalid_section"
    outcome: ClassVar[Outcome] = "denied"
