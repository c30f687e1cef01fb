"""Drafts of the rows that record external edits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from watchroom import validation
from watchroom.errors import NotText, TooLarge
from watchroom.model import MAX_TEXT_BYTES, OUTSIDE, Json, Note, Outcome, Zone

EDIT_TOOL: Final = "outside_edit"
"""The tool in rows of external edits that were found on disk."""
OVERWRITTEN_TOOL: Final = "overwritten_edit"
"""The tool in rows of external edits that were found when a newer version replaced them."""


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
    """Return the draft that records an external edit. For binary and large files, it has only their checksum
    and size.

    Args:
        zone: The zone of the file.
        path: Its path.
        data: Its bytes, None if it was removed.
        tool: The row's tool.
        outcome: The row's outcome.
        error: The row's error, default: ``outside_edit``, or the code of the reason why there is no text.
        base: The edited version.
        message: The row's message.
        detail: The row's detail.
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
