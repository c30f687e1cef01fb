"""The rows of shared files: versions, and the tools whose rows record a read. Pure."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.kernel.zones import ZONES
from watchroom.model import Row

SharedFileZone: TypeAlias = Literal["collab"]
SHARED_FILE_ZONE: Final[SharedFileZone] = "collab"
READ_TOOL: Final = ZONES[SHARED_FILE_ZONE].read_tool
READ_OLD_TOOL: Final = ZONES[SHARED_FILE_ZONE].read_old_tool
"""The tool of rows that record a read of an earlier version. Such a read does not count as seeing the current
version."""


class FileVersion(NamedTuple):
    """A version of a file or board with its content. ``current``: the number of the current version."""

    row: Row
    content: str
    current: int
