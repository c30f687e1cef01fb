"""A buffer that one agent has to itself (spec 4 §7.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from watchroom.editing.response import OperationResult, TextEditMetrics


class TextChange(NamedTuple):
    """What was done to a text: ``removed`` code points from ``at`` on gave way to ``text``."""

    at: int
    removed: int
    text: str

    def apply(self, content: str) -> str:
        """The text after it, of ``content`` before it."""
        return content[: self.at] + self.text + content[self.at + self.removed :]


class ContentChanged(NamedTuple):
    """The content is another one. ``timestamp`` is nanoseconds since the epoch; ``change`` is None where the
    whole content was replaced."""

    version: int
    timestamp: int
    metrics: TextEditMetrics
    change: TextChange | None = None


class ExclusiveBuffer(Protocol):
    """What others may do with a buffer: look at it, and ask that its content be replaced."""

    def snapshot(self) -> str:
        """The content as it is."""
        ...

    @property
    def version(self) -> int:
        """Grows by one with each change of the content, and with nothing else."""
        ...

    def try_update(self, content: str) -> OperationResult[bool]:
        """Replace the whole content, if the buffer agrees; where it does not, it says why and stays as it
        is. The value says whether anything changed."""
        ...

    def subscribe(self, listener: Callable[[ContentChanged], None]) -> Callable[[], None]:
        """Have ``listener`` told of each change. Returns the call that ends it."""
        ...
