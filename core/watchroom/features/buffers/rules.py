"""Names of buffers. The names of a buffer's tools begin with its name. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from watchroom import validation
from watchroom.algorithms.editing import build_tool_name
from watchroom.algorithms.editing.tool_visibility import EDIT_TOOLS, SYNC_TOOLS
from watchroom.errors import InvalidBuffer

MAX_NAME: Final = 24
_NAME: Final = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{MAX_NAME - 1}}}", re.ASCII)
_NOT_OF_NAMES: Final = re.compile("[^a-z0-9_-]+")


def is_valid_name(given: str) -> bool:
    """Return whether ``given`` can be the name of a buffer."""
    return _NAME.fullmatch(given) is not None


def check_name(name: str, reserved: Collection[str]) -> None:
    """Raise `InvalidBuffer` if ``name`` is invalid, or if a tool of the buffer would have a name in
    ``reserved``."""
    shown = validation.escape_unstorable(name, 100)
    if not is_valid_name(name):
        raise InvalidBuffer(given=shown, rule="buffer_characters")
    if _is_reserved(name, reserved):
        raise InvalidBuffer(given=shown, rule="reserved")


def _is_reserved(name: str, reserved: Collection[str]) -> bool:
    return any(build_tool_name(name, tool) in reserved for tool in (*EDIT_TOOLS, *SYNC_TOOLS))


def generate_name(path: str, taken: Collection[str], reserved: Collection[str]) -> str:
    """Return a name for a buffer of the file at ``path``. The name is not in ``taken``, and no tool of the
    buffer has a name in ``reserved``."""
    stem = path.rpartition("/")[2].partition(".")[0].lower()
    stem = _NOT_OF_NAMES.sub("-", stem).strip("-_")[: MAX_NAME - 3].strip("-_") or "text"
    name, number = stem, 1
    while name in taken or _is_reserved(name, reserved):
        number += 1
        name = f"{stem}-{number}"
    return name
