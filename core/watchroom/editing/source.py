"""What a buffer is bound to: anything that has a text and a version (spec 4 §5.3)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from watchroom.errors import WatchroomError


class SourceText(NamedTuple):
    """The text of a source, at a version. Of what is not there yet: the empty text, version 0. ``edit`` is
    the row of an edit made by hand whose text stands in place of that version's, 0 if none does."""

    text: str
    version: int
    edit: int = 0


class DataSource(Protocol):
    """A private file, a collaborative file, a whiteboard: written only from the version that was known."""

    def version(self) -> int:
        """The current version, as cheaply as it can be found out."""
        ...

    def edit(self) -> int:
        """The row of an edit made by hand that replaces the current version, 0 if there is none. Raises
        `WatchroomError` where that cannot be found out."""
        ...

    def read(self) -> SourceText:
        """The current text. Raises `WatchroomError` where it cannot be read."""
        ...

    def write(self, text: str, expected: int, message: str = "", *, edit: int = 0) -> int:
        """Write ``text`` as the next version, if ``expected`` is still the current one and ``edit`` equals
        `edit`; returns the new version. ``message`` describes it, where versions have messages. Otherwise
        nothing has changed, and it raises `StaleSourceError`, `ReadOnlySourceError` where this agent may not
        write, or any other `WatchroomError` where it cannot be written."""
        ...


class StaleSourceError(Exception):
    """The source has another version than was expected, or was edited by hand."""


class ReadOnlySourceError(Exception):
    """This agent may not write to the source; ``reason`` says why."""

    def __init__(self, reason: str | WatchroomError) -> None:
        super().__init__(reason)
        self.reason = reason
