"""The rows of boards: the tools whose rows record a read, and the locks. Pure."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, Self, TypeAlias

from watchroom.errors import JournalError
from watchroom.kernel.zones import ZONES
from watchroom.model import Row

BoardZone: TypeAlias = Literal["board"]
BOARD_ZONE: Final[BoardZone] = "board"
BOARD_ARGUMENT: Final = "board"
"""The argument of tools that names a board."""
READ_TOOL: Final = ZONES[BOARD_ZONE].read_tool
READ_OLD_TOOL: Final = ZONES[BOARD_ZONE].read_old_tool
"""The tool of rows that record a read of an earlier version."""
WRITE_TOOL: Final = ZONES[BOARD_ZONE].write_tool
PARTIAL_TOOLS: Final = ("whiteboard_append", "whiteboard_update_section")
"""The tools that write a board without reading all of it."""
SECTION: Final = "section"
"""The key in the detail of a version: the section that was rewritten."""

HOLD: Final = "hold_board"
RELEASE: Final = "release_board"
EXPIRED: Final = "lease_expired"


class BoardLock(NamedTuple):
    """A lock on a board. Until it ends, only its holder may write the board.

    - ``acquired``, ``expires``: milliseconds since the epoch.
    - ``token``: a fencing token, which grows with each row of the lock.
    - ``ends_with_write``: whether the holder's next write releases the lock.
    """

    id: str
    board: str
    holder: str
    acquired: int
    expires: int
    token: int
    ends_with_write: bool = False

    @classmethod
    def from_row(cls, row: Row) -> Self | None:
        """Return the lock in ``row``; None if the row ended a lock. Raise `JournalError` if it is damaged."""
        if row.deleted or row.outcome != "ok":
            return None
        detail = row.detail
        return cls(
            id=str(detail["lease"]),
            board=row.path,
            holder=row.actor,
            acquired=_int_field(detail["taken"]),
            expires=_int_field(detail["until"]),
            token=row.version or 0,
            ends_with_write=bool(detail.get("ends_with_write")),
        )

    def is_valid_at(self, time_ns: int) -> bool:
        """Return whether the lock is held at ``time_ns``, nanoseconds since the epoch."""
        return self.expires * 1_000_000 > time_ns


def _int_field(value: object) -> int:
    if not isinstance(value, int):
        raise JournalError(reason=f"a lock without a time: {value!r}")
    return value
