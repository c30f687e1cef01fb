"""What the rows of a buffer say (EDIT), without its text. Pure.

Each version of a buffer's path is one operation that changed something: its text, an open choice, or its
base."""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from watchroom.errors import JournalDamaged
from watchroom.model import ZONES, Json, Row, Zone

ZONE: Final = "buffer"
OPEN: Final = "open_buffer"
CLOSE: Final = "close_buffer"
RESPONSE: Final = "response"
"""In a row's detail: what the agent was answered."""


class BufferRecord(NamedTuple):
    """A version of a buffer without its text.

    ``zone`` and ``path`` are where its source has its rows, ``base`` the version of the source that it is
    based on, or ``edit`` the row of an edit made by hand that replaced it; ``opened`` the version of the
    buffer that contains the text of the base, None where the source's own row does. ``edition`` counts the
    changes of the text. ``pending`` is the version with the replacement for which a choice is open.
    ``lapsed`` is True if a change of the text ended the last choice. ``is_changed``: it differs from its
    base. ``marks`` are `DataSourceBinding.markers`, None where they are
    those of the version before, moved by the change. ``at`` and ``removed`` say where the row's content was
    inserted, and in place of how many characters; None where the content is the whole text (``is_whole``), or
    the text did not change."""

    zone: Zone
    path: str
    base: int
    length: int
    edition: int
    is_changed: bool
    is_whole: bool
    edit: int | None = None
    opened: int | None = None
    pending: int | None = None
    lapsed: bool | None = None
    marks: tuple[int, ...] | None = None
    at: int | None = None
    removed: int | None = None

    @property
    def source(self) -> str:
        """``ZONE:PATH`` with the path as its agent knows it."""
        return f"{self.zone}:{agent_path(self.zone, self.path)}"

    def detail(self) -> dict[str, Json]:
        """The detail of its row."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self._asdict().items()
            if value is not None
        }


_TYPES: Final = {"zone": str, "path": str, "is_changed": bool, "is_whole": bool, "lapsed": bool}
"""By name, the type of a field of `BufferRecord` that is no integer."""
_NEEDED: Final = frozenset(BufferRecord._fields) - frozenset(BufferRecord._field_defaults)


def parse_record(row: Row) -> BufferRecord | None:
    """The record in ``row``; None if the row is no version, or closes the buffer. Raises `JournalDamaged`."""
    if row.version is None or row.deleted:
        return None
    detail = row.detail
    known = {name: detail[name] for name in BufferRecord._fields if detail.get(name) is not None}
    marks = known.pop("marks", None)
    of_types = all(type(value) is _TYPES.get(name, int) for name, value in known.items())
    if not of_types or not _NEEDED.issubset(known) or known["zone"] not in ZONES:
        raise JournalDamaged
    record = BufferRecord(**known)  # type: ignore[arg-type]
    if marks is None:
        return record
    if not isinstance(marks, list) or not all(type(mark) is int for mark in marks):
        raise JournalDamaged
    return record._replace(marks=tuple(cast("list[int]", marks)))


def agent_path(zone: Zone, path: str) -> str:
    """The path by which its agent knows a source that has its rows at ``path`` of ``zone``."""
    return path.partition("/")[2] if zone in ("private", "file") else path


def buffer_name(row: Row) -> str:
    """The name of the buffer that ``row`` is about."""
    return row.path.rpartition("/")[2]
