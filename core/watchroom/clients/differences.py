"""What a call of a client's own tool would change in a file, for the person who is asked about it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final

from watchroom import validation
from watchroom.clients.json_fields import text_of
from watchroom.merge import unified_diff
from watchroom.model import Json

MAX_CHARACTERS: Final = 100_000
"""Of a difference that is kept."""
_MAX_BYTES: Final = 1_000_000
"""Of a file that is compared, and of the text that it would become."""
_MOST_EDITED: Final = 10 * _MAX_BYTES
"""Characters that edits may make of a text on the way."""


def call_difference(arguments: Mapping[str, Json], folder: str) -> str:
    """What a call with these ``arguments`` would change, as a unified difference: a whole text (``content``),
    or passages in place of others (``old_string`` and ``new_string``, one or a list of ``edits``), of the
    file ``file_path``, which is beneath ``folder`` where it is relative. Empty where the call changes no
    text, or the file cannot be compared. It reads the file."""
    path = text_of(arguments, "file_path")
    if not path:
        return ""
    before = _read(validation.replace_non_path_characters(os.path.join(folder, path)))
    if before is None:
        return ""
    given = arguments.get("content")
    after = given if isinstance(given, str) else _edited(before, arguments)
    if after is None or len(after) > _MAX_BYTES:
        return ""
    return unified_diff(before, after, path, path)[:MAX_CHARACTERS]


def _edited(text: str, arguments: Mapping[str, Json]) -> str | None:
    """The text after the edits, None where they would make too much of it."""
    edits = arguments.get("edits")
    listed = edits if isinstance(edits, Sequence) and not isinstance(edits, str) else [arguments]
    for edit in listed:
        if isinstance(edit, Mapping) and (old := text_of(edit, "old_string")):
            new = text_of(edit, "new_string")
            count = text.count(old) if edit.get("replace_all") is True else 1
            if len(text) + count * len(new) > _MOST_EDITED:
                return None
            text = text.replace(old, new, count)
    return text


def _read(path: str) -> str | None:
    """The text of the file, empty where there is none; None where it is none, or too large."""
    if os.path.exists(path) and not os.path.isfile(path):
        # A pipe would be waited for.
        return None
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError:
        return None
    return None if len(content) > _MAX_BYTES else content.decode(errors="replace")
