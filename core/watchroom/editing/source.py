"""What a buffer can be bound to: anything with a text and a version (EDIT-5.3)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from watchroom.errors import WatchroomError


class SourceText(NamedTuple):
    """The ``text`` of a source at ``version``; the empty text and version 0 if it does not exist yet.
    ``edit`` is the row of an edit made by hand whose text replaces that version's, 0 if there is none."""

    text: str
    version: int
    edit: int = 0


class DataSource(Protocol):
    """A private file, a shared file, a task's file, a whiteboard: written only from a known version."""

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
    """This agent may not write to the source, because of ``reason``."""

    def __init__(self, reason: str | WatchroomError) -> None:
        super().__init__(reason)
        self.reason = reason
