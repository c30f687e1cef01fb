"""`Conflicts`: people resolve and dismiss conflicts and revert external edits.

Each such decision is a row with the row numbers of the conflicts. The agent whose conflict was settled is
notified at its next read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from watchroom import validation
from watchroom.errors import ConflictSettled, NotAConflict, OutsideConflict, VersionConflict
from watchroom.features.boards.rows import BOARD_ZONE
from watchroom.features.boards.service import Boards
from watchroom.features.config.store import Store
from watchroom.features.files.rows import SHARED_FILE_ZONE
from watchroom.features.people.service import PeopleRegistry
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.reconciler import Reconciler
from watchroom.kernel.journal.edits import edits, is_settled
from watchroom.kernel.rules.conflicts import EDIT_UNDONE, is_conflict, named_conflicts
from watchroom.kernel.zones import ZONES
from watchroom.model import DISMISS, OUTSIDE, RESOLVE, REVERT, Appended, Note, Row, Write, Zone
from watchroom.texts import Catalogue


class Conflicts:
    """The conflicts on shared files and boards.

    - ``store``: the journal.
    - ``boards``: writes the resolving versions of boards.
    - ``reconciler``: reverts external edits.
    - ``people``: decides which decisions of people count.
    """

    def __init__(
        self,
        store: Store,
        boards: Boards,
        reconciler: Reconciler,
        people: PeopleRegistry,
    ) -> None:
        self._store = store
        self._people = people
        self._boards = boards
        self._reconciler = reconciler
        self._writers: dict[Zone, Callable[[Write], Appended]] = {}

    def write_with(self, zone: Zone, write: Callable[[Write], Appended]) -> None:
        """Use ``write`` to commit resolving versions of ``zone``. For zones whose files are written before
        their rows."""
        self._writers[zone] = write

    def resolve(
        self,
        call: CallContext,
        path: str,
        content: str,
        expected: int,
        conflicts: Sequence[int],
        message: str,
    ) -> Row:
        """Settle ``conflicts`` by committing ``content`` as the next version of the shared file or board
        ``path``.

        - ``expected``: the version that must be current.
        - ``conflicts``: the row numbers of conflicts on this path.
        - ``message``: stored in the version's row.

        Return the version's row. Raise `InvalidPath`, `NotAConflict`, `VersionConflict`, `BoardLeased`, and
        `ConflictSettled` if an external edit was undone.
        """
        named = [self._conflict(number) for number in conflicts]
        zone = named[0].zone if named else SHARED_FILE_ZONE
        if zone not in self._writers:
            validation.check_path(path)
        for conflict in named:
            if (conflict.zone, conflict.path) != (zone, path):
                raise NotAConflict(conflict=conflict.seq)
            self._check_not_undone(conflict)
        detail = {"resolves": list(conflicts)}
        call = call.with_tool(RESOLVE)
        draft = call.write(zone, path, content, message, expected, detail)
        if zone == BOARD_ZONE:
            # This waits while another agent holds the lock of the board.
            return self._boards.write(call, path, lambda current: draft)
        validation.encode_text(content)
        if zone in self._writers:
            row, head = self._writers[zone](draft)
        else:
            self._store.check_path(zone, path)
            row, head = self._store.write(draft)
        if row.outcome == "conflict":
            raise VersionConflict(row, head, self._store.content(head) if head else None, content)
        return row

    def _check_not_undone(self, conflict: Row) -> None:
        """Raise `ConflictSettled` if ``conflict`` is an external edit that is no longer on disk."""
        if conflict.actor != OUTSIDE:
            return
        self._reconciler.check(conflict.zone, conflict.path)
        journal = self._store.journal
        newest = next(edits(journal, conflict.zone, conflict.path), None)
        is_undone = newest is not None and newest.error == EDIT_UNDONE
        if is_undone and is_settled(journal, conflict, self._people.counts):
            raise ConflictSettled(conflict=conflict.seq)

    def dismiss(self, call: CallContext, number: int, message: str) -> Row:
        """Settle the conflict of row ``number`` by keeping the current version.

        ``message``: stored in the note's row, which is returned. Raise `NotAConflict`, `OutsideConflict`,
        `ConflictSettled`.
        """
        return self._store.commits.commit(self.draft_dismissal(call, number, message)).row

    def draft_dismissal(self, call: CallContext, number: int, message: str) -> Note:
        """Return the draft that `dismiss` commits, for callers that commit several drafts together. See
        `dismiss` for parameters and errors."""
        conflict = self._conflict(number)
        if conflict.actor == OUTSIDE:
            raise OutsideConflict(conflict=number, path=conflict.path)
        if is_settled(self._store.journal, conflict, self._people.counts):
            raise ConflictSettled(conflict=number)
        return self._note(call.with_tool(DISMISS), conflict, message)

    def revert(self, call: CallContext, path: str, number: int | None, message: str) -> Row:
        """Replace the newest external edit of ``path`` by the journal's version. Return the note's row.

        - ``number``: the row of that edit. None: the newest edit of a shared file.
        - ``message``: stored in the note's row.

        Raise `InvalidPath`, `EditedAgain`, `NoOutsideEdit`, `ConflictSettled`, `NotAConflict`.
        """
        validation.check_path(path)
        zone = SHARED_FILE_ZONE if number is None else self._conflict(number).zone

        def note(edit: Row) -> Note:
            if is_settled(self._store.journal, edit, self._people.counts):
                raise ConflictSettled(conflict=edit.seq)
            return self._note(call.with_tool(REVERT), edit, message)

        return self._reconciler.revert(zone, path, number, note)

    def describe_unread(self, actor: str, zone: Zone, path: str, texts: Catalogue) -> str | None:
        """Return a text about the conflicts of ``actor`` that people settled since it last read or wrote a
        file or board.

        - ``zone``, ``path``: the file or board.
        - ``texts``: the actor's language.

        Return one line for each settlement, oldest first, and each settlement once; None if there is none.
        """
        rows = self._find_unread(actor, zone, path)
        return "\n".join(_describe_settlement(row, texts) for row in rows) or None

    def _find_unread(self, actor: str, zone: Zone, path: str) -> list[Row]:
        journal = self._store.journal
        if not journal.settled(zone, path, limit=1):
            return []
        self._store.commits.flush(actor)
        read = 0
        for tool in (ZONES[zone].read_tool, ZONES[zone].read_old_tool):
            note = journal.last_note(zone, path, actor, tool)
            read = max(read, note.seq if note else 0)
        settled = journal.settled(zone, path, after=read)
        concerned = [row for row in settled if self.settles_conflict_of(row, actor)]
        if not concerned:
            return []
        since = concerned[-1].version or concerned[-1].base or 0
        versions = journal.history(zone, path, after_version=since)
        wrote = max((version.seq for version in versions if version.actor == actor), default=0)
        return [row for row in reversed(concerned) if row.seq > wrote]

    def settles_conflict_of(self, settlement: Row, actor: str) -> bool:
        """Return whether the row ``settlement`` is a valid decision that settled a conflict of ``actor``.

        Rows that bypass the tools can name rows that are not conflicts, or do not exist.
        """
        numbers = (number for number in named_conflicts(settlement) if 0 < number < settlement.seq)
        conflicts = (self._store.journal.row(number) for number in numbers)
        settles = any(row is not None and is_conflict(row) and row.actor == actor for row in conflicts)
        return settles and self._people.counts(settlement)

    def _note(self, call: CallContext, conflict: Row, message: str) -> Note:
        head = self._store.journal.head(conflict.zone, conflict.path)
        return call.note(
            conflict.zone,
            conflict.path,
            message=message,
            base=head.version if head else 0,
            detail={"conflict": conflict.seq},
        )

    def _conflict(self, number: int) -> Row:
        row = self._store.journal.row(number)
        if row is None or not is_conflict(row):
            raise NotAConflict(conflict=number)
        return row


def _describe_settlement(row: Row, texts: Catalogue) -> str:
    kind = "resolved" if row.version else "dismissed"
    version = row.version or row.base
    message = texts("conflict.saying", message=row.message) if row.message else ""
    return texts(f"conflict.{kind}", who=row.actor, path=row.path, version=version, message=message)
