"""The boards' zone: versions of whiteboards, written by whoever nobody's lease holds off (BOARDS-5).

Who may read and write which board, and what its text means, is for the whiteboards' own package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from watchroom import validation
from watchroom.errors import VersionConflict, VersionNotFound
from watchroom.journal.topics import section_written_by
from watchroom.model import Row, Write
from watchroom.zones.collab import FileVersion
from watchroom.zones.leases import LEASE_WAIT_SECONDS, Leases
from watchroom.zones.store import Store

READ_TOOL = "whiteboard_read"
READ_OLD_TOOL = "whiteboard_read_version"
SECTION: Final = "section"
"""In the detail of a version's row: which section it rewrote."""
PARTIAL: Final = ("whiteboard_append", "whiteboard_update_section")
"""The tools that change a board without taking it for seen."""
_LONGEST_PLACE: Final = 200


class BoardZone:
    """The versions of whiteboards, in ``store``. ``leases`` say who is held off meanwhile."""

    def __init__(self, store: Store, leases: Leases) -> None:
        self._store = store
        self.leases = leases

    def heads(self) -> list[Row]:
        """The current version of every board that was ever written, by name."""
        return list(self._store.journal.heads("board"))

    def head(self, board: str) -> Row | None:
        """The row of the current version of ``board``, None where nothing was written yet. Raises
        `InvalidName`."""
        return self._store.journal.head("board", validation.check_board_name(board))

    def current(self, board: str) -> FileVersion | None:
        """``board`` as it is now, None where nothing was written yet. Leaves no row. Raises `InvalidName`."""
        head = self._store.journal.head("board", validation.check_board_name(board))
        return None if head is None else FileVersion(head, self._store.content(head), head.version or 0)

    def version(self, board: str, version: int) -> FileVersion:
        """``board`` as it was in ``version``. Leaves no row. Raises `InvalidName`, `VersionNotFound`."""
        head = self._store.journal.head("board", validation.check_board_name(board))
        row = self._store.journal.version("board", board, version)
        if row is None or head is None:
            current = head.version if head else 0
            raise VersionNotFound(path=board, version=version, current=current)
        return FileVersion(row, self._store.content(row), head.version or 0)

    def written_over(self, row: Row) -> Row | None:
        """The version that ``row`` replaced unchecked, None if it replaced none so."""
        return self._store.written_over(row)

    def note_reading(
        self, actor: str, board: str, version: int, *, section: str = "", is_current: bool
    ) -> None:
        """Remember that ``actor`` saw a ``version`` of ``board`` (0: that there is none), or one ``section``
        of it. Only a reading of the current version (``is_current``) brings the actor up to date."""
        tool = READ_TOOL if is_current else READ_OLD_TOOL
        self._store.note_reading(actor, tool, "board", _reading_path(board, section), version)

    def last_seen(self, actor: str, board: str) -> int:
        """The version of ``board`` that ``actor`` last read, or wrote whole, 0 if it never did: whoever adds
        an entry or rewrites a section has not seen what else there is."""
        return self._store.last_seen(actor, "board", board, READ_TOOL, partial=PARTIAL)

    def flush_readings(self) -> None:
        """Bring all readings into the journal."""
        self._store.commits.flush()

    def last_seen_section(self, actor: str, board: str, section: str) -> int:
        """The version in which ``actor`` last read ``section`` of ``board`` by itself, or rewrote it, 0 if it
        never did. May be called while a write is made: `write` has brought all readings into the journal by
        then."""
        note = self._store.journal.last_note("board", _reading_path(board, section), actor, READ_TOOL)
        read = (note.base or 0) if note else 0
        written = self._store.journal.topic(section_written_by(actor, board, section), limit=1)
        return max([read, *(row.version or 0 for row in written)])

    def write(
        self,
        actor: str,
        board: str,
        make: Callable[[FileVersion | None], Write],
        *,
        wait: float = LEASE_WAIT_SECONDS,
    ) -> Row:
        """Commit the draft that ``make`` makes of the current version of ``board``, once nobody but ``actor``
        holds it, for at most ``wait`` seconds. Returns the version's row.

        Raises `BoardLeased`, `VersionConflict` if the draft expects another version, `NotText`, and what
        ``make`` raises.
        """
        validation.check_board_name(board)
        self._store.commits.flush()

        def draft() -> Write:
            write = make(self.current(board))
            validation.encode_text(write.content or "")
            return write

        write, (row, head) = self.leases.write(actor, board, draft, wait)
        if row.outcome == "conflict":
            raise VersionConflict(row, head, self._store.content(head) if head else None, write.content)
        return row

    def history(self, board: str, *, limit: int | None = None) -> list[Row]:
        """All versions of ``board``, or the newest ``limit``, oldest first. Raises `InvalidName`."""
        head = self._store.journal.head("board", validation.check_board_name(board))
        after = 0 if limit is None or head is None else max(0, (head.version or 0) - limit)
        return self._store.journal.history("board", board, after_version=after)


def _reading_path(board: str, section: str) -> str:
    """The path of a reading's row."""
    if len(section) > _LONGEST_PLACE:
        section = f"{section[:_LONGEST_PLACE]}… {validation.sha256(section.encode())[:8]}"
    return f"{board} > {section}" if section else board
