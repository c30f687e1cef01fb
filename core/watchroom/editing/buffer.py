"""A buffer that one agent edits exclusively (EDIT-7.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from watchroom.editing.response import OperationResult, TextEditMetrics


class TextChange(NamedTuple):
    """A change of a text: ``removed`` code points from ``at`` on were replaced by ``text``."""

    at: int
    removed: int
    text: str

    def apply(self, content: str) -> str:
        """``content`` after the change."""
        return content[: self.at] + self.text + content[self.at + self.removed :]


class ContentChanged(NamedTuple):
    """The content has changed: its new ``version``, when (``timestamp``, nanoseconds since the epoch), its
    ``metrics``, and the ``change``, None where the whole content was replaced."""

    version: int
    timestamp: int
    metrics: TextEditMetrics
    change: TextChange | None = None


class ExclusiveBuffer(Protocol):
    """What others may do with a buffer: read it, and ask that its content be replaced."""

    def snapshot(self) -> str:
        """The content."""
        ...

    @property
    def version(self) -> int:
        """Grows by one with each change of the content."""
        ...

    def try_update(self, content: str) -> OperationResult[bool]:
        """Replace the whole content by ``content``, unless the buffer refuses: then the result says why, and
        nothing has changed. The value says whether the content changed. The message of a success is guidance,
        empty if there is none."""
        ...

    def subscribe(self, listener: Callable[[ContentChanged], None]) -> Callable[[], None]:
        """Call ``listener`` with each change. Returns a function that ends the subscription."""
        ...
