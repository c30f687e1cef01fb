"""What people do about conflicts on shared files and boards: resolve them, dismiss them, revert edits.

Each is a row that names the conflicts by their numbers, so an agent can be told of it at its next reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from watchroom import validation
from watchroom.checkout.reconciler import Reconciler
from watchroom.errors import ConflictSettled, NotAConflict, OutsideConflict
from watchroom.journal.edits import edits, is_settled
from watchroom.model import (
    DISMISS,
    OUTSIDE,
    RESOLVE,
    REVERT,
    Note,
    Row,
    Write,
    Zone,
)
from watchroom.rules.conflicts import EDIT_UNDONE, is_conflict, named_conflicts
from watchroom.zones import boards, collab
from watchroom.zones.boards import BoardZone
from watchroom.zones.collab import CollabZone
from watchroom.zones.people import PeopleZone
from watchroom.zones.store import Store

_READ_TOOLS: Final[Mapping[Zone, tuple[str, str]]] = {
    "collab": (collab.READ_TOOL, collab.READ_OLD_TOOL),
    "board": (boards.READ_TOOL, boards.READ_OLD_TOOL),
}


class ConflictSettlement:
    """What people do about conflicts: ``store`` has the journal, ``collab`` and ``boards`` take the resolving
    version, ``reconciler`` takes edits by hand back, ``people`` says which decisions count."""

    def __init__(
        self,
        store: Store,
        collab: CollabZone,
        boards: BoardZone,
        reconciler: Reconciler,
        people: PeopleZone,
    ) -> None:
        self._store = store
        self._people = people
        self._collab = collab
        self._boards = boards
        self._reconciler = reconciler

    def resolve(
        self, actor: str, path: str, content: str, expected: int, conflicts: Sequence[int], message: str
    ) -> Row:
        """Commit ``content`` for ``actor`` as the next version of the shared file or board ``path`` if
        ``expected`` is the current one; that settles ``conflicts``, rows of this path. Returns the version's
        row, which carries ``message``.

        Raises `InvalidPath`, `NotAConflict`, `VersionConflict`, `BoardLeased`, and `ConflictSettled` if an
        external edit was undone."""
        validation.check_path(path)
        named = [self._conflict(number) for number in conflicts]
        zone = named[0].zone if named else "collab"
        for conflict in named:
            if (conflict.zone, conflict.path) != (zone, path):
                raise NotAConflict(conflict=conflict.seq)
            self._check_not_undone(conflict)
        detail = {"resolves": list(conflicts)}
        if zone == "collab":
            return self._collab.write(
                actor, path, content, expected, tool=RESOLVE, message=message, detail=detail
            )
        draft = Write(actor, RESOLVE, zone, path, content, message, expected, detail)
        return self._boards.write(actor, path, lambda current: draft)

    def _check_not_undone(self, conflict: Row) -> None:
        """Raise `ConflictSettled` if ``conflict`` is an external edit that is not on disk any more."""
        if conflict.actor != OUTSIDE:
            return
        self._reconciler.check(conflict.zone, conflict.path)
        journal = self._store.journal
        newest = next(edits(journal, conflict.zone, conflict.path), None)
        is_undone = newest is not None and newest.error == EDIT_UNDONE
        if is_undone and is_settled(journal, conflict, self._people.counts):
            raise ConflictSettled(conflict=conflict.seq)

    def dismiss(self, actor: str, number: int, message: str) -> Row:
        """Settle the conflict of row ``number`` for ``actor`` by leaving the current version as it is, with a
        ``message``. Returns the note's row. Raises `NotAConflict`, `OutsideConflict`, `ConflictSettled`."""
        return self._store.commits.commit(self.draft_dismissal(actor, number, message)).row

    def draft_dismissal(self, actor: str, number: int, message: str) -> Note:
        """The draft by which `dismiss` does so, with the same ``actor``, ``number`` and ``message``, for what
        is committed together with others. Raises as that does."""
        conflict = self._conflict(number)
        if conflict.actor == OUTSIDE:
            raise OutsideConflict(conflict=number, path=conflict.path)
        if is_settled(self._store.journal, conflict, self._people.counts):
            raise ConflictSettled(conflict=number)
        return self._note(actor, DISMISS, conflict, message)

    def revert(self, actor: str, path: str, number: int | None, message: str) -> Row:
        """Lay out the journal's version of ``path`` again in place of the newest edit made by hand, for
        ``actor`` with a ``message``. If ``number`` is given it must be that edit's row; without it, the path
        is that of a shared file. Returns the note's row. Raises `InvalidPath`, `EditedAgain`,
        `NoOutsideEdit`, `ConflictSettled`, `NotAConflict`."""
        validation.check_path(path)
        zone = "collab" if number is None else self._conflict(number).zone

        def note(edit: Row) -> Note:
            if is_settled(self._store.journal, edit, self._people.counts):
                raise ConflictSettled(conflict=edit.seq)
            return self._note(actor, REVERT, edit, message)

        return self._reconciler.revert(zone, path, number, note)

    def find_unread(self, actor: str, zone: Zone, path: str) -> list[Row]:
        """The rows by which people settled conflicts of ``actor`` on ``path`` in ``zone`` since it last read
        or wrote it, oldest first."""
        journal = self._store.journal
        if not journal.settled(zone, path, limit=1):
            return []
        self._store.commits.flush()
        read = 0
        for tool in _READ_TOOLS[zone]:
            note = journal.last_note(zone, path, actor, tool)
            read = max(read, note.seq if note else 0)
        settled = journal.settled(zone, path, after=read)
        concerned = [
            row for row in settled if self.settles_conflict_of(row, actor) and self._people.counts(row)
        ]
        if not concerned:
            return []
        since = concerned[-1].version or concerned[-1].base or 0
        versions = journal.history(zone, path, after_version=since)
        wrote = max((version.seq for version in versions if version.actor == actor), default=0)
        return [row for row in reversed(concerned) if row.seq > wrote]

    def settles_conflict_of(self, settlement: Row, actor: str) -> bool:
        """Whether people settled a conflict of ``actor`` by the row ``settlement``."""
        return any(self._conflict(number).actor == actor for number in named_conflicts(settlement))

    def _note(self, actor: str, tool: str, conflict: Row, message: str) -> Note:
        head = self._store.journal.head(conflict.zone, conflict.path)
        return Note(
            actor,
            tool,
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
