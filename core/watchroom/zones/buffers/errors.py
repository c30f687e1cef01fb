"""Errors of buffers."""

from __future__ import annotations

from watchroom.errors import DeniedError, InvalidName


class InvalidBuffer(InvalidName):
    """A name that a buffer cannot have. Values: given, rule."""

    code = "invalid_buffer"


class BufferNotFound(DeniedError):
    """The agent has no open buffer of that name. Values: buffer, known."""

    code = "buffer_not_found"


class BufferTaken(DeniedError):
    """The agent has that name, or that source, open already. Values: buffer, source."""

    code = "buffer_taken"


class BufferUnflushed(DeniedError):
    """A buffer with unflushed changes is only closed with ``discard``. Values: buffer."""

    code = "buffer_unflushed"


class TooManyBuffers(DeniedError):
    """The agent has as many buffers open as it may. Values: most, known."""

    code = "too_many_buffers"
