"""Exports the journal's files as the history of a bare repository, one commit per version or per session.

The same rows always give the same commits, byte by byte, in one export or in several. No part of a commit
depends on the time, place or user of the export.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.errors import InvalidRepository, JournalDamaged
from watchroom.history.document_cache import DocumentCache
from watchroom.history.git.process import FastImport, GitRepository
from watchroom.history.git.stream import (
    FILE_MODES,
    GROUPING,
    OPEN,
    ROW,
    UNTIL,
    CommitText,
    FileChange,
    date,
    is_safe_path,
    one_line,
    parse_rows,
    render_commit,
    render_note,
    render_rows,
    session_of,
    subject,
    trailers_of,
    tree_path,
)
from watchroom.kernel.checkout.rendering import verified_content
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.details import get_ints, session_status
from watchroom.kernel.rules.file_versions import is_executable, is_text
from watchroom.kernel.rules.row_files import find_row_flaw
from watchroom.kernel.zones import DOCUMENTS
from watchroom.model import ENDED, REVERT_WORK, Row

Grouping: TypeAlias = Literal["version", "session"]
"""Whether there is a commit for each version or for each session."""
Reason: TypeAlias = Literal["unsafe_path", "not_kept", "damaged", "submodule", "not_unicode", "ignored"]
"""The reason why a version is left out.

- ``unsafe_path``: its path cannot be in a tree.
- ``not_kept``: it is not text, and its bytes are not kept (an export of a history never has them).
- ``damaged``: the journal has lost its content.
- ``submodule``: its path is a submodule, or beneath one (branches only).
- ``not_unicode``: its file name is not UTF-8 (branches only).
- ``ignored``: git ignores it in the repository of the branch (branches only).
"""

BRANCH: Final = "refs/heads/main"
NOTES: Final = "refs/notes/watchroom"
REFUSED: Final = "refs/watchroom/refused/"
_INCOMING: Final = "refs/watchroom/incoming"
_INCOMING_NOTES: Final = "refs/watchroom/incoming-notes"
_CHUNK: Final = 1000
_MAX_LISTED: Final = 1000
_MAX_LINES: Final = 40
_MAX_GROUP: Final = 500
"""Maximum number of versions in one commit."""
_MAX_OPEN: Final = 64
"""Maximum number of open groups. One more closes the oldest group."""
_LOG_FORMAT: Final = f"%H %(trailers:key={ROW},valueonly,separator=%x20)"


class LeftOut(NamedTuple):
    """A version that was left out, and the reason."""

    row: Row
    reason: Reason


class Exported(NamedTuple):
    """The result of an export.

    - ``commits``, ``versions``: the number of commits on the branch, and the number of versions in these
      commits.
    - ``refused``: the number of refused writes.
    - ``head``: the branch's newest commit, empty if it has none.
    - ``until``: the last row that was read.
    - ``skipped``: the number of versions that were left out.
    - ``left_out``: the first 1,000 of these versions.
    """

    commits: int
    versions: int
    refused: int
    head: str
    until: int
    skipped: int
    left_out: Sequence[LeftOut]


def export_history(
    journal: Journal,
    path: str,
    *,
    per: Grouping = "version",
    until: int | None = None,
    on_progress: Callable[[int, int], None] = lambda _, __: None,
) -> Exported:
    """Export ``journal`` to the bare repository at ``path``, which is created or continued.

    - ``per``: one commit per version or per session. The work of a session is exported when it ends.
    - ``until``: the last row to export, default the newest.
    - ``on_progress``: called with the number of rows read so far, and the number of all rows to read.

    Raise `GitError`, `JournalError`. Raise `InvalidRepository` if the path has other content, or a history of
    another journal or grouping. After an error, no ref has changed.
    """
    last = journal.last_seq() if until is None else until
    repository = GitRepository.open_bare(path)
    stale = [ref for ref in (_INCOMING, _INCOMING_NOTES) if repository.head(ref)]
    repository.update_refs([f"delete {ref}" for ref in stale])
    head = repository.head(BRANCH) or ""
    notes = repository.head(NOTES) or ""
    state = _read_state(journal, repository, head, per)
    with FastImport(repository) as stream:
        export = _Export(
            journal, stream, CommitIndex(repository, head, state.until), per, (head, notes), state
        )
        export.run(last, on_progress)
    new_head = repository.head(_INCOMING) or ""
    new_notes = repository.head(_INCOMING_NOTES) or ""
    commands = []
    for ref, new, old in ((BRANCH, new_head, head), (NOTES, new_notes, notes)):
        if new:
            commands.append(f"update {ref} {new} {old or '0' * len(new)}")
    commands += [f"delete {ref}" for ref, new in ((_INCOMING, new_head), (_INCOMING_NOTES, new_notes)) if new]
    repository.update_refs(commands)
    return Exported(
        export.commits,
        export.versions,
        export.refused,
        new_head or head,
        last,
        export.skipped,
        export.left_out,
    )


class CommitIndex:
    """Finds the commit of a row: the mark of a commit in this stream, or the id of an earlier commit in the
    repository.

    - ``head``: the last commit before the stream, empty if there is none.
    - ``until``: a row number; most rows of the stream come after it.
    """

    def __init__(self, repository: GitRepository, head: str, until: int) -> None:
        self._repository = repository
        self._head = head
        self._until = until
        self._marks = array("q")
        """The mark of each row from ``until`` on, 0 if no commit of the stream has it."""
        self._opened: dict[int, int] = {}
        self._earlier: _EarlierCommits | None = None

    def add(self, row: int, mark: int) -> None:
        """Record that ``row`` is in the commit ``mark``."""
        place = row - self._until
        if place < 0:
            self._opened[row] = mark
            return
        self._marks.extend([0] * (place + 1 - len(self._marks)))
        self._marks[place] = mark

    def find(self, row: int) -> str:
        """Return the mark or id of the commit of ``row``, empty if there is none. Raise `GitError`."""
        place = row - self._until
        mark = self._marks[place] if 0 <= place < len(self._marks) else self._opened.get(row, 0)
        if mark:
            return f":{mark}"
        if not self._head:
            return ""
        if self._earlier is None:
            self._earlier = _EarlierCommits(
                self._repository.read("log", f"--format={_LOG_FORMAT}", self._head, "--")
            )
        return self._earlier.find(row)


class _EarlierCommits:
    """The commits in ``listing``, whose lines have an id and the rows of the commit."""

    def __init__(self, listing: bytes) -> None:
        spans = []
        self._ids = bytearray()
        self._length = listing.find(b" ") // 2
        for number, line in enumerate(listing.splitlines()):
            commit, _, rows = line.decode("ascii", "replace").partition(" ")
            self._ids += bytes.fromhex(commit)
            spans += [(first, last, number) for first, last in parse_rows(rows)]
        spans.sort()
        self._firsts = array("q", (first for first, _, _ in spans))
        self._lasts = array("q", (last for _, last, _ in spans))
        self._numbers = array("q", (number for _, _, number in spans))

    def find(self, row: int) -> str:
        place = bisect_right(self._firsts, row) - 1
        if place < 0 or self._lasts[place] < row:
            return ""
        start = self._numbers[place] * self._length
        return self._ids[start : start + self._length].hex()


class Group:
    """Versions of one session that become one commit: ``rows``, and the newest version of each path."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.rows: list[Row] = []
        self.heads: dict[str, Row] = {}
        self._folders: set[str] = set()

    @property
    def first(self) -> int:
        """The number of the first row."""
        return self.rows[0].seq

    def add(self, path: str, row: Row) -> None:
        self.rows.append(row)
        self.heads[path] = row
        self._folders.update(_folders_of(path))

    def collides_with(self, path: str) -> bool:
        """Whether the group has the file at ``path``, a file beneath it, or a file at one of its parent
        folders."""
        return (
            path in self.heads
            or path in self._folders
            or any(folder in self.heads for folder in _folders_of(path))
        )


class Groups:
    """The groups that are not committed yet.

    A session's commit is written when the session ends, or before another session writes one of its paths. So
    the versions of every path are in order. The decision depends only on the rows, not on the start or end of
    an export.
    """

    def __init__(self) -> None:
        self._open: dict[str, Group] = {}

    @property
    def firsts(self) -> list[int]:
        """The first rows of all groups, in order."""
        return sorted(group.first for group in self._open.values())

    def restore(self, session: str, path: str, row: Row) -> None:
        """Add ``row`` to the open group of its ``session``."""
        self._open.setdefault(session, Group(session)).add(path, row)

    def close_before(self, session: str, path: str) -> list[Group]:
        """Remove and return the groups to commit before ``session`` writes ``path``, oldest first."""
        found = [
            group for group in self._in_order() if group.session != session and group.collides_with(path)
        ]
        is_new = session and session not in self._open
        if is_new and len(self._open) - len(found) >= _MAX_OPEN:
            found.append(next(group for group in self._in_order() if group not in found))
        return self._take(found)

    def add(self, session: str, path: str, row: Row) -> list[Group]:
        """Add ``row``. Remove and return the groups that it completes. A row without a session is a complete
        group."""
        if not session:
            alone = Group("")
            alone.add(path, row)
            return [alone]
        self.restore(session, path, row)
        group = self._open[session]
        return self._take([group]) if len(group.rows) >= _MAX_GROUP else []

    def close_ended(self, row: Row) -> list[Group]:
        """Remove and return the group of the session that ``row`` ends."""
        ends = row.zone == "session" and row.version is not None and session_status(row) in ENDED
        return self._take([self._open[row.path]] if ends and row.path in self._open else [])

    def close_of(self, seq: int, path: str) -> list[Group]:
        """Remove and return the group that has row ``seq`` of ``path``."""
        return self._take(
            [
                group
                for group in self._open.values()
                if path in group.heads and any(row.seq == seq for row in group.rows)
            ]
        )

    def _in_order(self) -> list[Group]:
        return sorted(self._open.values(), key=lambda group: group.first)

    def _take(self, groups: list[Group]) -> list[Group]:
        for group in groups:
            del self._open[group.session]
        return groups


def _folders_of(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


class _State(NamedTuple):
    """The point at which an export continues: after row ``until``, with open groups whose first rows are
    ``opened``."""

    until: int = 0
    opened: tuple[int, ...] = ()


def _read_state(journal: Journal, repository: GitRepository, head: str, per: Grouping) -> _State:
    """Return the state at ``head``. Raise `InvalidRepository` if it belongs to another journal or
    grouping."""
    if not head:
        return _State()
    trailers = trailers_of(repository.message(head))
    rows = parse_rows(trailers.get(ROW, ""))
    row = journal.row(rows[-1][1]) if rows else None
    made = repository.ask("show", "--no-patch", "--format=%at", head)
    until = trailers.get(UNTIL, "")
    if row is None or made != date(row.time).partition(" ")[0] or not until.isdecimal():
        raise InvalidRepository(path=one_line(repository.path, 500), rule="other_history")
    if trailers.get(GROUPING, "version") != per:
        raise InvalidRepository(path=one_line(repository.path, 500), rule="other_grouping")
    opened = tuple(first for first, _ in parse_rows(trailers.get(OPEN, "")))
    return _State(int(until), opened)


class _Export:
    """One export into ``stream``, on top of ``heads``, the newest commits of the branch and of the notes."""

    def __init__(
        self,
        journal: Journal,
        stream: FastImport,
        index: CommitIndex,
        per: Grouping,
        heads: tuple[str, str],
        state: _State,
    ) -> None:
        self._journal = journal
        self._documents = DocumentCache(journal)
        self._stream = stream
        self._index = index
        self._per = per
        self._tip, self._notes_tip = heads
        self._parent, self._notes_parent = heads
        self._groups = Groups()
        self._state = state
        self.commits = 0
        self.versions = 0
        self.refused = 0
        self.skipped = 0
        self.left_out: list[LeftOut] = []

    def run(self, until: int, on_progress: Callable[[int, int], None]) -> None:
        """Export the new rows up to ``until``."""
        self._restore()
        begin = self._state.until
        for rows in read_chunks(self._journal, begin, until):
            for row in rows:
                self._take(row)
            on_progress(rows[-1].seq - begin, max(until - begin, 1))

    def _restore(self) -> None:
        """Restore the groups that were open."""
        opened = self._state.opened
        begun: set[str] = set()
        if not opened:
            return
        for rows in read_chunks(self._journal, opened[0] - 1, self._state.until):
            for row in rows:
                session = session_of(row)
                if row.seq in opened:
                    begun.add(session)
                path = _tree_path(row)
                if session in begun and row.version is not None and path is not None and _is_safe(row, path):
                    self._groups.restore(session, path, row)

    def _take(self, row: Row) -> None:
        if row.version is not None:
            for group in self._groups.close_ended(row):
                self._commit(group, row.seq)
        path = _tree_path(row)
        if path is None or (row.version is None and (row.outcome != "conflict" or row.sha256 is None)):
            return
        if not _is_safe(row, path):
            self._leave_out(row, "unsafe_path")
        elif row.version is None:
            self._refuse(row, path)
        else:
            session = session_of(row) if self._per == "session" else ""
            for group in self._groups.close_before(session, path):
                self._commit(group, row.seq - 1)
            for group in self._groups.add(session, path, row):
                self._commit(group, row.seq)
            if row.tool == REVERT_WORK:
                self._note_revert(row)

    def _commit(self, group: Group, until: int) -> None:
        mark = group.first
        changes = [self._change(path, row) for path, row in group.heads.items()]
        text = self._text_of_one(group.rows[0]) if not group.session else self._text_of_session(group)
        state = [(UNTIL, str(until))]
        if self._per == "session":
            state = [(GROUPING, self._per), *state]
            if opened := self._groups.firsts:
                state.append((OPEN, " ".join(map(str, opened))))
        text = text._replace(trailers=(*text.trailers, *state))
        self._stream.write(render_commit(_INCOMING, text, changes, mark=mark, parent=self._parent))
        self._parent = ""
        self._tip = f":{mark}"
        for row in group.rows:
            self._index.add(row.seq, mark)
        self.commits += 1
        self.versions += len(group.rows)

    def _change(self, path: str, row: Row) -> FileChange:
        if row.deleted:
            return FileChange(path, None)
        is_file = row.zone == "file"
        if is_file and not is_text(row):
            # Its bytes are only kept for a while, so a later export would differ.
            self._leave_out(row, "not_kept")
            return FileChange(path, None)
        data = self._read_document(row) if row.zone in DOCUMENTS else verified_content(self._journal, row)
        if data is None:
            self._leave_out(row, "damaged")
        return FileChange(path, data, FILE_MODES[is_executable(row)])

    def _read_document(self, row: Row) -> bytes | None:
        try:
            return self._documents.at(row.path, row.version or 0).render_values()
        except JournalDamaged:
            return None

    def _text_of_one(self, row: Row) -> CommitText:
        path = _tree_path(row) or ""
        return CommitText(row.actor, row.time, subject(row, path), _body(row), self._trailers(row))

    def _text_of_session(self, group: Group) -> CommitText:
        rows = group.rows
        lines = [f"- {subject(row, path)}" for path, row in group.heads.items()]
        if len(lines) > _MAX_LINES:
            lines = [*lines[:_MAX_LINES], f"- … {len(lines) - _MAX_LINES}"]
        trailers = [
            (ROW, render_rows([row.seq for row in rows])),
            ("Watchroom-Session", group.session),
        ]
        first_line = subject(rows[-1], next(reversed(group.heads)))
        body = "\n".join(lines) if len(rows) > 1 else _body(rows[0])
        return CommitText(rows[0].actor, rows[-1].time, first_line, body, trailers)

    def _trailers(self, row: Row) -> list[tuple[str, str]]:
        path = f"{row.zone}/{row.path}"
        trailers = [
            (ROW, str(row.seq)),
            ("Watchroom-Version", f"{path}@{row.version}" if row.version else path),
            ("Watchroom-Tool", row.tool),
        ]
        if session := session_of(row):
            trailers.append(("Watchroom-Session", session))
        if row.zone == "file":
            trailers.append(("Watchroom-Task", row.path.partition("/")[0]))
        if row.tool == REVERT_WORK:
            trailers.append(("Watchroom-Revert", str(row.detail.get("revert"))))
        return trailers

    def _refuse(self, row: Row, path: str) -> None:
        """Write a refused write as a commit on top of its base version's commit."""
        base = None
        if row.base and row.base > 0:
            base = self._journal.version(row.zone, row.path, row.base)
        if base is not None:
            for group in self._groups.close_of(base.seq, path):
                self._commit(group, row.seq - 1)
        parent = (self._index.find(base.seq) if base is not None else "") or self._tip
        change = self._change(path, row)
        if change.data is None:
            return
        trailers = [*self._trailers(row), ("Watchroom-Outcome", row.outcome)]
        text = CommitText(row.actor, row.time, subject(row, path), _body(row), trailers)
        self._stream.write(render_commit(f"{REFUSED}{row.seq}", text, [change], parent=parent))
        self.refused += 1

    def _note_revert(self, row: Row) -> None:
        """Add a note to the commits of the versions that ``row`` reverts or restores."""
        notes = {}
        for name, what in (("took", "Reverted"), ("gave", "Brought back")):
            for number in get_ints(row.detail, name):
                version = self._journal.version(row.zone, row.path, number)
                if version is not None and (commit := self._index.find(version.seq)):
                    notes[commit] = f"{what} by {row.actor} in row {row.seq}: {row.zone}/{row.path}@{number}"
        if notes:
            text = CommitText(row.actor, row.time, subject(row, row.path), "", [(ROW, str(row.seq))])
            self._stream.write(render_note(_INCOMING_NOTES, text, notes, self._notes_parent))
            self._notes_parent = ""

    def _leave_out(self, row: Row, reason: Reason) -> None:
        self.skipped += 1
        if len(self.left_out) < _MAX_LISTED:
            self.left_out.append(LeftOut(row, reason))


def read_chunks(journal: Journal, after: int, until: int) -> Iterator[list[Row]]:
    """Yield the rows of ``journal`` with ``after`` < seq ≤ ``until``, in chunks. Raise `JournalError`."""
    while rows := journal.rows(after, until=until, limit=_CHUNK):
        yield rows
        after = rows[-1].seq


def _is_safe(row: Row, path: str) -> bool:
    """Whether ``row`` can be the file at ``path`` of a tree."""
    return find_row_flaw(row) is None and is_safe_path(path)


def _tree_path(row: Row) -> str | None:
    """Return the path in the tree of ``row``."""
    return tree_path(row.zone, row.path)


def _body(row: Row) -> str:
    """Return the message of ``row`` without its first line."""
    return row.message.strip().partition("\n")[2]
