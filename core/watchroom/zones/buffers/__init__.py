"""Buffers: texts that one agent has to itself until it flushes them (spec 4), each with its rows."""

from watchroom.zones.buffers.buffers import Buffers, OpenedBuffer, Operation
from watchroom.zones.buffers.errors import BufferNotFound, BufferTaken, BufferUnflushed, TooManyBuffers
from watchroom.zones.buffers.record import BufferRecord, record_of
from watchroom.zones.buffers.sources import Bound, Places

__all__ = [
    "Bound",
    "BufferNotFound",
    "BufferRecord",
    "BufferTaken",
    "BufferUnflushed",
    "Buffers",
    "OpenedBuffer",
    "Operation",
    "Places",
    "TooManyBuffers",
    "record_of",
]
