"""Errors of buffers."""

from __future__ import annotations

from typing import ClassVar

from watchroom.errors import InvalidName, WatchroomError
from watchroom.model import Outcome


class InvalidBuffer(InvalidName):
    """A name that a buffer cannot have. Values: given, rule."""

    code = "invalid_buffer"


class BufferNotFound(WatchroomError):
    """The agent has no open buffer of that name. Values: buffer, known."""

    code = "buffer_not_found"
    outcome: ClassVar[Outcome] = "denied"


class BufferTaken(WatchroomError):
    """The agent has that name, or that source, open already. Values: buffer, source."""

    code = "buffer_taken"
    outcome: ClassVar[Outcome] = "denied"


class BufferUnflushed(WatchroomError):
    """A buffer with unflushed changes is only closed with ``discard``. Values: buffer."""

    code = "buffer_unflushed"
    outcome: ClassVar[Outcome] = "denied"


class TooManyBuffers(WatchroomError):
    """The agent has as many buffers open as it may. Values: most, known."""

    code = "too_many_buffers"
    outcome: ClassVar[Outcome] = "denied"
