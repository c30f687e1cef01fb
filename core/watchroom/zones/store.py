"""What every zone stands on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.call_context import conditions_of
from watchroom.checkout.host import CheckoutHost
from watchroom.checkout.layout import is_edited
from watchroom.checkout.materializer import Materializer
from watchroom.commit import GroupCommit
from watchroom.errors import ApprovalOutdated, InvalidPath, NotFound, NotText, PathBlocked
from watchroom.files import NotAFile
from watchroom.follower import Follower
from watchroom.journal import Journal, NoteKey
from watchroom.model import UNCHECKED, ZONES, Appended, Note, Row, Write, Zone
from watchroom.registry import Registry
from watchroom.rules.task_versions import EXECUTABLE, is_executable


class Seen(NamedTuple):
    """What tells which version of a path an actor last saw: its ``head``, and the newest ``note`` with
    ``key`` (zone, path, actor, and the tool that reads)."""

    key: NoteKey
    head: Row | None
    note: Row | None


_seen: Final[ContextVar[Seen | None]] = ContextVar("watchroom_seen", default=None)
"""What was asked for together with who calls a tool."""


@dataclass(frozen=True, slots=True)
class Store:
    """The journal, the way into it, the files laid out from it, and who is registered."""

    journal: Journal
    commits: GroupCommit
    checkout: Materializer
    host: CheckoutHost
    follower: Follower
    registry: Registry

    def write(self, draft: Write) -> Appended:
        """Commit ``draft``; returns what became of it: a conflict is the caller's to tell.

        Raises `PathBlocked`, `ApprovalOutdated` where a condition of the call's approval no longer holds;
        without a row, where the disk has no place for its file, `InvalidPath` and `NotText`.
        """
        self.check_place(draft)
        draft = self._with_mode(draft)
        return _checked(draft, self.commits.commit(draft))

    def write_all(self, drafts: Sequence[Write]) -> list[Appended]:
        """Commit ``drafts`` at once; returns what became of each, in their order. Raises as `write` does."""
        for draft in drafts:
            self.check_place(draft)
        appended = self.commits.commit_all([self._with_mode(draft) for draft in drafts])
        return [_checked(*each) for each in zip(drafts, appended, strict=True)]

    def _with_mode(self, draft: Write) -> Write:
        """Return ``draft`` with the mode of the file that it replaces, unless it names a mode. A person may
        have changed the mode with chmod(1); without a file, the mode of the current version stays."""
        spec = ZONES[draft.zone]
        is_file = spec.keeps_mode and spec.folder and draft.content is not None
        if not is_file or EXECUTABLE in (draft.detail or {}):
            return draft
        executable = self.checkout.is_executable(draft.zone, draft.path)
        if executable is None and draft.expected != 0:
            executable = is_executable(self.journal.head(draft.zone, draft.path))
        return draft._replace(detail={**(draft.detail or {}), EXECUTABLE: True}) if executable else draft

    def check_conditions(self, draft: Write) -> None:
        """Raise `ApprovalOutdated` if a condition of the approval of the call that ``draft`` is made for no
        longer holds: for what has to be refused before a file is touched. The append looks again."""
        for each in conditions_of(draft):
            head = self.journal.head(each.zone, each.path)
            if (head.seq if head else 0) != each.seq:
                raise ApprovalOutdated(tool=draft.tool)

    def check_place(self, draft: Write) -> None:
        """Raises `InvalidPath` where the file of ``draft`` would be another path's on this disk, which takes
        upper and lower case for one; `NotText` where something that is no file stands in the way of a private
        file, which is read from disk: the others are mere views. OSError where it cannot be read."""
        zone, path = draft.zone, draft.path
        is_shown = draft.content is not None and (is_edited(zone) or zone == "realtime")
        if is_shown and self.checkout.other_spelling(zone, path) is not None:
            raise InvalidPath(given=path, rule="other_case")
        if zone != "private":
            return
        try:
            is_blocked = self.checkout.is_blocked(zone, path) and draft.content is not None
        except NotAFile:
            is_blocked = True
        # Where another file of ours stands in the way, the journal will say which.
        if is_blocked and not self._is_blocked_by_ours(draft):
            raise NotText(rule="not_a_file")

    def _is_blocked_by_ours(self, draft: Write) -> bool:
        parts = draft.path.split("/")
        above = (self.journal.head(draft.zone, "/".join(parts[:depth])) for depth in range(1, len(parts)))
        below = self.journal.heads(draft.zone, draft.path + "/")
        return any(head is not None and not head.deleted for head in chain(above, below))

    def flush(self) -> None:
        """Wait until every reading so far is a row, and every file is laid out that follows behind commits:
        versions, histories, metadata and checkpoints. Raises `JournalError`, `WorkspaceLocked`."""
        self.commits.flush()
        self.follower.flush()
        self.checkout.derived.catch_up()

    def live_head(self, zone: Zone, path: str) -> Row:
        """The row of the current version of ``path`` in ``zone``. Raises `NotFound` where there is none or it
        was deleted."""
        head = self.journal.head(zone, path)
        if head is None or head.deleted:
            raise NotFound(path=path, zone=zone)
        return head

    def live_text(self, zone: Zone, path: str) -> tuple[Row, str]:
        """As `live_head` of ``path`` in ``zone``, with its content: one question. Raises `NotFound`,
        `JournalError`."""
        (found,) = self.journal.heads_with_content([(zone, path)])
        if found is None or found[0].deleted:
            raise NotFound(path=path, zone=zone)
        return found[0], found[1] or ""

    def content(self, row: Row) -> str:
        """The text that ``row`` carries, empty where it carries none. Raises `JournalError`."""
        return self.journal.content(row.seq) or ""

    def note_reading(self, actor: str, tool: str, zone: Zone, path: str, version: int | None) -> None:
        """Make a row soon that ``actor`` read the ``version`` of ``path`` in ``zone`` with ``tool``."""
        self.commits.note(Note(actor, tool, zone, path, base=version, durable=False))

    def check_path(self, zone: Zone, path: str, name: str) -> None:
        """Raise `InvalidPath` unless ``name``, by which agents know ``path`` in ``zone``, may be new, or
        the path has versions: an earlier release, or another version of Unicode, allowed more names."""
        try:
            validation.check_path(name)
        except InvalidPath:
            if validation.find_path_flaw(name) is not None or self.journal.head(zone, path) is None:
                raise

    def layout_failure(self, row: Row) -> str:
        """Why this process could not write the file of ``row`` when it was committed; empty if it could."""
        return self.checkout.layout_failure(row)

    def written_over(self, row: Row) -> Row | None:
        """The version that ``row`` replaced unchecked, if it did."""
        if row.base != UNCHECKED or not row.version:
            return None
        return self.journal.version(row.zone, row.path, row.version - 1)

    @contextmanager
    def hold_seen(self, seen: Seen | None) -> Iterator[None]:
        """Within, on this thread, `last_seen` does not ask for what ``seen`` tells, if that is given."""
        token = _seen.set(seen)
        try:
            yield
        finally:
            _seen.reset(token)

    def last_seen(
        self, actor: str, zone: Zone, path: str, read_tool: str, *, partial: Collection[str] = ()
    ) -> int:
        """The version of ``path`` in ``zone`` that ``actor`` last read with ``read_tool`` or wrote, 0 if it
        never did; by a tool that is ``partial`` it did not see the whole. Raises `JournalError`,
        `WorkspaceLocked`."""
        key = (zone, path, actor, read_tool)
        seen = _seen.get()
        if seen is None or seen.key != key:
            self.commits.flush()
            (head,), (note,) = self.journal.heads_and_notes([(zone, path)], [key])
            seen = Seen(key, head, note)
        read = (seen.note.base or 0) if seen.note else 0
        head = seen.head
        if head is None or head.actor != actor or head.tool in partial:
            # If the current version is not the actor's own, an older one of its own would be refused as well.
            return read
        return max(read, head.version or 0)


def _checked(draft: Write, appended: Appended) -> Appended:
    """What became of ``draft``, unless it was refused for what its caller does not look at."""
    if appended.row.error == ApprovalOutdated.code:
        raise ApprovalOutdated(tool=draft.tool, has_row=True)
    if appended.row.error == "path_blocked":
        raise PathBlocked(path=draft.path, by=appended.row.detail["by"])
    return appended
