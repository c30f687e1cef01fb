"""The rows of realtime documents: version 1 holds the schema of a document, and each later version holds a
delta."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from watchroom.errors import DocumentDamaged
from watchroom.model import Json, Row, Zone

DOCUMENT_ZONE: Final[Zone] = "realtime"
CREATE: Final = "realtime_create_document"
EDIT_TEXT: Final = "realtime_edit_text"
MERGE: Final = "realtime_merge_state"
READ: Final = (
    "realtime_get_field",
    "realtime_get_document_snapshot",
    "realtime_edit_set",
)
"""The tools that show a field."""
BY: Final = "replica"
"""The key in a row's detail for the replica that wrote the delta. Deltas of remote replicas have none."""
AT: Final = "at"
ADDED: Final = "added"
REMOVED: Final = "removed"
"""Keys in the detail of an edit of a text: the position in the text as its writer saw it, and the numbers of
characters."""
SEEN: Final = "seen"
"""The key in the detail of an edit that deleted already deleted characters: the version that its writer saw.
A revert uses it to find those characters."""


class EditedRange(NamedTuple):
    """The range of characters that an edit replaced, in the text as its writer saw it. ``stop`` is
    excluded."""

    start: int
    stop: int

    def clamp(self, length: int) -> EditedRange:
        """Return this range in a text of ``length`` characters."""
        return EditedRange(min(self.start, length), min(self.stop, length))


def find_edited_range(row: Row) -> EditedRange | None:
    """Return the range that ``row`` replaced in a text, None if its detail has no range."""
    at, removed = row.detail.get(AT), row.detail.get(REMOVED)
    if not (isinstance(at, int) and isinstance(removed, int)):
        return None
    return EditedRange(at, at + removed) if min(at, removed) >= 0 else None


def changed_fields(row: Row) -> Iterator[str]:
    """Yield the names of the fields that the delta of ``row`` changes."""
    detail = row.detail
    several = detail.get("fields", [detail.get("field", "")])
    yield from map(str, several if isinstance(several, list) else [])


def parse_object(row: Row, content: str | None) -> Mapping[str, Json]:
    """Parse ``content``, the JSON object of ``row``. Raise `DocumentDamaged`."""
    try:
        found = json.loads(content or "")
    except (ValueError, RecursionError) as error:
        raise unreadable_version(row) from error
    if not isinstance(found, dict):
        raise unreadable_version(row)
    return found


def unreadable_version(row: Row) -> DocumentDamaged:
    """Return the error for a ``row`` that cannot be read."""
    return DocumentDamaged(version=row.version, document=row.path)
