"""`Boards`: the versions of whiteboards, written under the boards' locks (BOARDS-5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from watchroom import validation
from watchroom.errors import VersionConflict, VersionNotFound
from watchroom.features.boards.locks import LOCK_TIMEOUT, BoardLocks
from watchroom.features.boards.rows import BOARD_ZONE, PARTIAL_TOOLS, READ_OLD_TOOL, READ_TOOL, WRITE_TOOL
from watchroom.features.config.store import Store
from watchroom.features.files.rows import FileVersion
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal.topics import section_written_by
from watchroom.kernel.zones import ZONES
from watchroom.model import UNCHECKED, Row, Write

_MAX_SECTION_CHARACTERS: Final = 200
"""Maximum characters of a section's name in the paths of reads. A longer name is cut."""


class Boards:
    """The versions of whiteboards. ``store``: the journal.

    ``locks`` (attribute): the locks on boards.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.locks = BoardLocks(store)

    def heads(self) -> list[Row]:
        """Return the current version of every board that was ever written, sorted by name."""
        return list(self._store.journal.heads("board"))

    def head(self, board: str) -> Row | None:
        """Return the row of the current version of ``board``; None if it was never written. Raise
        `InvalidName`."""
        return self._store.journal.head("board", validation.check_board_name(board))

    def current(self, board: str) -> FileVersion | None:
        """Return the current version of ``board``; None if it was never written. The read is not recorded.
        Raise `InvalidName`."""
        head = self._store.journal.head("board", validation.check_board_name(board))
        return None if head is None else FileVersion(head, self._store.content(head), head.version or 0)

    def version(self, board: str, version: int) -> FileVersion:
        """Return ``version`` of ``board``. The read is not recorded. Raise `InvalidName`,
        `VersionNotFound`."""
        head = self._store.journal.head("board", validation.check_board_name(board))
        row = self._store.journal.version("board", board, version)
        if row is None or head is None:
            current = head.version if head else 0
            raise VersionNotFound(path=board, version=version, current=current)
        return FileVersion(row, self._store.content(row), head.version or 0)

    def find_overwritten(self, row: Row) -> Row | None:
        """Return the version that ``row`` replaced without a version check; None if it was checked, or if
        ``row`` is the first version."""
        if row.base != UNCHECKED or not row.version:
            return None
        return self._store.journal.version("board", row.path, row.version - 1)

    def note_reading(
        self, call: CallContext, board: str, version: int, *, section: str = "", is_current: bool
    ) -> None:
        """Record that the caller read ``board``.

        - ``version``: 0 if the board was never written.
        - ``section``: the section that was read; default: the whole board.
        - ``is_current``: whether it is the current version. Reads of earlier versions do not count for
          `last_seen`.
        """
        tool = READ_TOOL if is_current else READ_OLD_TOOL
        self._store.note_reading(call.with_tool(tool), "board", _reading_path(board, section), version)

    def last_seen(self, call: CallContext, board: str) -> int:
        """Return the version of ``board`` that the caller last read or wrote as a whole; 0 if there is none.

        Appending an entry and updating a section do not count, because they do not read the rest.
        """
        return self._store.last_seen(call, "board", board, READ_TOOL, partial=PARTIAL_TOOLS)

    def flush_readings(self, actor: str) -> None:
        """Commit the pending reads of ``actor`` as rows. Raise `JournalError`, `WorkspaceLocked`."""
        self._store.commits.flush(actor)

    def last_seen_section(self, actor: str, board: str, section: str) -> int:
        """Return the version in which ``actor`` last read only ``section`` of ``board``, or rewrote it; 0 if
        it never did.

        May be called from the ``make`` of `write`, which flushes reads first.
        """
        note = self._store.journal.last_note("board", _reading_path(board, section), actor, READ_TOOL)
        read = (note.base or 0) if note else 0
        written = self._store.journal.topic(section_written_by(actor, board, section), limit=1)
        return max([read, *(row.version or 0 for row in written)])

    def write(
        self,
        call: CallContext,
        board: str,
        make: Callable[[FileVersion | None], Write],
        *,
        wait: float = LOCK_TIMEOUT,
    ) -> Row:
        """Commit a new version of ``board``. Return its row.

        - ``make``: takes the current version (None if the board was never written), and returns the draft.
        - ``wait``: seconds to wait while somebody else holds the board; default 6.

        Raise `BoardLeased`, `VersionConflict` if the draft expects another version, `NotText`, and the errors
        of ``make``.
        """
        validation.check_board_name(board)
        self._store.commits.flush(call.actor)

        def draft() -> Write:
            write = make(self.current(board))
            validation.encode_text(write.content or "")
            return write

        write, (row, head) = self.locks.write(call, board, draft, wait)
        if row.outcome == "conflict":
            current = self._store.content(head) if head else None
            raise VersionConflict(row, head, current, write.content, WRITE_TOOL)
        return row

    def history(self, board: str, *, limit: int | None = None) -> list[Row]:
        """Return all versions of ``board``, or the newest ``limit``, oldest first. Raise `InvalidName`."""
        head = self._store.journal.head("board", validation.check_board_name(board))
        after = 0 if limit is None or head is None else max(0, (head.version or 0) - limit)
        return self._store.journal.history("board", board, after_version=after)


def _reading_path(board: str, section: str) -> str:
    """Return the path of the row that records a read."""
    if len(section) > _MAX_SECTION_CHARACTERS:
        section = f"{section[:_MAX_SECTION_CHARACTERS]}… {validation.sha256(section.encode())[:8]}"
    return f"{board}{ZONES[BOARD_ZONE].part_separator}{section}" if section else board
