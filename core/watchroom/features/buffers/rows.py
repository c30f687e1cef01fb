"""The rows of buffers (EDIT), without texts. Pure.

Each version of a buffer's path is one operation that changed its text, its open choice, or its base.
"""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from watchroom.errors import JournalDamaged
from watchroom.kernel.zones import ZONES, strip_owner
from watchroom.model import Json, Row, Zone

ZONE: Final = "buffer"
OPEN: Final = "open_buffer"
CLOSE: Final = "close_buffer"
RESPONSE: Final = "response"
"""The key in a row's detail for the response to the agent."""


class BufferRecord(NamedTuple):
    """A version of a buffer without its text.

    - ``zone``, ``path``: the place of its source's rows.
    - ``base``: the version of the source that it is based on.
    - ``edit``: the row of an external edit that replaced that version.
    - ``opened``: the version of the buffer that contains the text of the base, None if the source's row does.
    - ``edition``: the number of changes to the text.
    - ``pending``: the version with the replacement that waits for a choice.
    - ``lapsed``: True if a change of the text ended the last choice.
    - ``is_changed``: whether the text differs from its base.
    - ``marks``: `DataSourceBinding.markers`; None if they are the markers of the version before, moved by the
      change.
    - ``at``, ``removed``: the position at which the row's content was inserted, and the number of replaced
      characters. None if the content is the whole text (``is_whole``), or if the text did not change.
    """

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
        """The source as ``ZONE:PATH``. The path has the form that the agent uses."""
        return f"{self.zone}:{strip_owner(self.zone, self.path)}"

    def detail(self) -> dict[str, Json]:
        """Return the detail of the record's row."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self._asdict().items()
            if value is not None
        }


_TYPES: Final = {"zone": str, "path": str, "is_changed": bool, "is_whole": bool, "lapsed": bool}
"""The types of `BufferRecord` fields that are not integers, by name."""
_NEEDED: Final = frozenset(BufferRecord._fields) - frozenset(BufferRecord._field_defaults)


def parse_record(row: Row) -> BufferRecord | None:
    """Return the record in ``row``, None if the row is not a version, or closes the buffer. Raise
    `JournalDamaged`."""
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


def buffer_name(row: Row) -> str:
    """Return the name of the buffer of ``row``."""
    return row.path.rpartition("/")[2]
