"""Names of buffers, which are the beginning of their tools' names. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from watchroom import validation
from watchroom.editing import build_tool_name
from watchroom.editing.tool_visibility import EDIT_TOOLS, SYNC_TOOLS
from watchroom.zones.buffers.errors import InvalidBuffer

LONGEST_NAME: Final = 24
_NAME: Final = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{LONGEST_NAME - 1}}}", re.ASCII)
_NOT_OF_NAMES: Final = re.compile("[^a-z0-9_-]+")


def is_valid_name(given: str) -> bool:
    """Whether ``given`` can be a buffer's name, whatever tools there are."""
    return _NAME.fullmatch(given) is not None


def check_name(name: str, reserved: Collection[str]) -> None:
    """Raises `InvalidBuffer` for a ``name`` that a buffer cannot have, or that would give one of its tools a
    name among ``reserved``."""
    shown = validation.escape_unstorable(name, 100)
    if not is_valid_name(name):
        raise InvalidBuffer(given=shown, rule="buffer_characters")
    if _is_reserved(name, reserved):
        raise InvalidBuffer(given=shown, rule="reserved")


def _is_reserved(name: str, reserved: Collection[str]) -> bool:
    return any(build_tool_name(name, tool) in reserved for tool in (*EDIT_TOOLS, *SYNC_TOOLS))


def generate_name(path: str, taken: Collection[str], reserved: Collection[str]) -> str:
    """A name for a buffer, from that of its file at ``path``: not among those ``taken``, and none of its
    tools among ``reserved``."""
    stem = path.rpartition("/")[2].partition(".")[0].lower()
    stem = _NOT_OF_NAMES.sub("-", stem).strip("-_")[: LONGEST_NAME - 3].strip("-_") or "text"
    name, number = stem, 1
    while name in taken or _is_reserved(name, reserved):
        number += 1
        name = f"{stem}-{number}"
    return name
