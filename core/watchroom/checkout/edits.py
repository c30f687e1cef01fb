"""The rows that keep what somebody wrote by hand, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from watchroom import validation
from watchroom.errors import NotText, TooLarge
from watchroom.model import MAX_TEXT_BYTES, OUTSIDE, Json, Note, Outcome, Zone

EDIT_TOOL: Final = "outside_edit"
"""The tool of an edit that was found on disk."""
OVERWRITTEN_TOOL: Final = "overwritten_edit"
"""The tool of an edit that was found when a newer version replaced it."""


def edit_note(
    zone: Zone,
    path: str,
    data: bytes | None,
    *,
    tool: str = EDIT_TOOL,
    outcome: Outcome = "conflict",
    error: str = "",
    base: int | None = None,
    message: str = "",
    detail: Mapping[str, Json] | None = None,
) -> Note:
    """The row of ``data``, which stood in the file of ``path`` in ``zone`` (None: the file was gone).

    The text is kept with it; what is no text, or too large, by its checksum and size alone. ``tool``,
    ``outcome``, ``message`` and ``detail`` are the row's, ``error`` too (default: ``outside_edit``, or why
    there is no text); ``base`` is the version that should have stood there.
    """
    content: str | None = None
    refusal = "outside_edit"
    if data is not None:
        try:
            content = validation.decode_text(data[: MAX_TEXT_BYTES + 1])
        except (NotText, TooLarge) as found:
            refusal = found.code
    return Note(
        actor=OUTSIDE,
        tool=tool,
        zone=zone,
        path=validation.escape_unstorable(path, validation.MAX_PATH_BYTES),
        outcome=outcome,
        error=error or refusal,
        content=content,
        base=base,
        message=message,
        sha256=None if data is None else validation.sha256(data),
        size=None if data is None else len(data),
        detail=detail,
    )
