"""The errors of whiteboards, in addition to the errors of the core."""

from __future__ import annotations

from typing import ClassVar

from watchroom.errors import PermissionDenied, WatchroomError
from watchroom.model import Outcome


class BoardError(WatchroomError):
    """Base of the whiteboards' own errors."""

    package: ClassVar[str] = "watchroom_whiteboards.texts"


class BoardNotFound(BoardError):
    """The board belongs to no agent of the team and was never written. Values: board, known."""

    code = "board_not_found"


class BoardDenied(PermissionDenied):
    """The agent's layer does not allow the call. Values: board, rule (why), own (the agent's board)."""

    texts = "board_denied"
    package: ClassVar[str] = "watchroom_whiteboards.texts"


class SectionNotFound(BoardError):
    """No section has this name. Values: section, board, known."""

    code = "section_not_found"


class SectionAmbiguous(BoardError):
    """Several headings have this title. Values: section, board, candidates."""

    code = "section_ambiguous"
    outcome: ClassVar[Outcome] = "denied"


class InvalidSection(BoardError):
    """The text would change more than its section. Values: section, rule (why)."""

    code = "invalid_section"
    outcome: ClassVar[Outcome] = "denied"
