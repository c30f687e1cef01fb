"""The journal's files as the history of a bare repository: one commit a version, or one a session.

The same rows give the same commits, byte by byte, whether they are exported at once or bit by bit: nothing in
a commit depends on when, where or by whom the export was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.checkout.rendering import verified_content
from watchroom.git.commit_index import CommitIndex
from watchroom.git.documents import DocumentTexts
from watchroom.git.errors import InvalidRepository
from watchroom.git.grouping import Group, Groups, session_of
from watchroom.git.names import date, is_safe_path, one_line, subject, tree_path
from watchroom.git.process import FastImport, Repository
from watchroom.git.stream import (
    FILE_MODES,
    GROUPING,
    OPEN,
    ROW,
    UNTIL,
    CommitText,
    FileChange,
    parse_rows,
    render_commit,
    render_note,
    render_rows,
    trailers_of,
)
from watchroom.journal import Journal
from watchroom.model import REVERT_WORK, Row
from watchroom.rules.details import get_ints
from watchroom.rules.row_files import find_row_flaw
from watchroom.rules.task_versions import is_executable, is_text

Grouping: TypeAlias = Literal["version", "session"]
"""What has a commit of its own."""
Reason: TypeAlias = Literal["unsafe_path", "not_kept", "damaged", "submodule", "not_unicode", "ignored"]
"""Why a version is left out.

- ``unsafe_path``: its path cannot be in a tree.
- ``not_kept``: it is not text, and its bytes are not kept (in a history: not for ever).
- ``damaged``: the journal has lost its content.
- ``submodule``: its path is a submodule, or beneath one (branches only).
- ``not_unicode``: its file name is not UTF-8 (branches only).
- ``ignored``: git ignores it in the repository of the branch (branches only).
"""
Progress: TypeAlias = Callable[[int, int], None]
"""Told how many rows were read, of how many."""

BRANCH: Final = "refs/heads/main"
NOTES: Final = "refs/notes/watchroom"
REFUSED: Final = "refs/watchroom/refused/"
_INCOMING: Final = "refs/watchroom/incoming"
_INCOMING_NOTES: Final = "refs/watchroom/incoming-notes"
_CHUNK: Final = 1000
_MOST_LISTED: Final = 1000
_MOST_LINES: Final = 40


class LeftOut(NamedTuple):
    """A version that is not in the history, and why."""

    row: Row
    reason: Reason


class Exported(NamedTuple):
    """What an export did: ``commits`` with ``versions`` on the branch, ``refused`` writes; ``head`` is the
    branch's commit then (empty: none), ``until`` the row up to which the journal was read. ``left_out`` are
    the first thousand of ``skipped`` versions."""

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
    progress: Progress | None = None,
) -> Exported:
    """Bring the bare repository at ``path``, which is made if it is missing, up to row ``until`` of
    ``journal`` (default: the newest), with a commit ``per`` version or session. With sessions, what those
    did that have not ended waits for their end.

    Raises `InvalidRepository` where something else is there, or a history of other rows or another grouping;
    `GitError`, `JournalError`: then no ref was changed.
    """
    last = journal.last_seq() if until is None else until
    repository = Repository.open_bare(path)
    stale = [ref for ref in (_INCOMING, _INCOMING_NOTES) if repository.head(ref)]
    repository.update_refs([f"delete {ref}" for ref in stale])
    head = repository.head(BRANCH) or ""
    notes = repository.head(NOTES) or ""
    state = _read_state(journal, repository, head, per)
    with FastImport(repository) as stream:
        export = _Export(
            journal, stream, CommitIndex(repository, head, state.until), per, (head, notes), state
        )
        export.run(last, progress)
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


class _State(NamedTuple):
    """Where an export goes on: after row ``until``; ``opened`` are the first rows of what was open then."""

    until: int = 0
    opened: tuple[int, ...] = ()


def _read_state(journal: Journal, repository: Repository, head: str, per: Grouping) -> _State:
    """Raises `InvalidRepository` unless ``head`` is of this journal, and of this grouping."""
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
    """One export into ``stream``, on top of the commits ``heads`` of the branch and of the notes."""

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
        self._documents = DocumentTexts(journal)
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

    def run(self, until: int, progress: Progress | None) -> None:
        """Export the rows that are new, up to ``until``."""
        self._restore()
        begin = self._state.until
        for rows in read_chunks(self._journal, begin, until):
            for row in rows:
                self._take(row)
            if progress is not None:
                progress(rows[-1].seq - begin, max(until - begin, 1))

    def _restore(self) -> None:
        """Have the groups again that were open."""
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
            # Its bytes are kept for a while only: a later export would not be the same.
            self._leave_out(row, "not_kept")
            return FileChange(path, None)
        is_document = row.zone == "realtime"
        data = self._documents.render(row) if is_document else verified_content(self._journal, row)
        if data is None:
            self._leave_out(row, "damaged")
        return FileChange(path, data, FILE_MODES[is_executable(row)])

    def _text_of_one(self, row: Row) -> CommitText:
        path = _tree_path(row) or ""
        return CommitText(row.actor, row.time, subject(row, path), _body(row), self._trailers(row))

    def _text_of_session(self, group: Group) -> CommitText:
        rows = group.rows
        lines = [f"- {subject(row, path)}" for path, row in group.heads.items()]
        if len(lines) > _MOST_LINES:
            lines = [*lines[:_MOST_LINES], f"- … {len(lines) - _MOST_LINES}"]
        trailers = [
            (ROW, render_rows([row.seq for row in rows])),
            ("Watchroom-Session", group.session),
        ]
        said = subject(rows[-1], next(reversed(group.heads)))
        body = "\n".join(lines) if len(rows) > 1 else _body(rows[0])
        return CommitText(rows[0].actor, rows[-1].time, said, body, trailers)

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
        """Keep a refused write upon the commit that has the version that it was made from."""
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
        """Say at the commits of the versions that ``row`` reverts or brings back that it does."""
        said = {}
        for name, what in (("took", "Reverted"), ("gave", "Brought back")):
            for number in get_ints(row.detail, name):
                version = self._journal.version(row.zone, row.path, number)
                if version is not None and (commit := self._index.find(version.seq)):
                    said[commit] = f"{what} by {row.actor} in row {row.seq}: {row.zone}/{row.path}@{number}"
        if said:
            text = CommitText(row.actor, row.time, subject(row, row.path), "", [(ROW, str(row.seq))])
            self._stream.write(render_note(_INCOMING_NOTES, text, said, self._notes_parent))
            self._notes_parent = ""

    def _leave_out(self, row: Row, reason: Reason) -> None:
        self.skipped += 1
        if len(self.left_out) < _MOST_LISTED:
            self.left_out.append(LeftOut(row, reason))


def read_chunks(journal: Journal, after: int, until: int) -> Iterator[list[Row]]:
    """The rows of ``journal`` with ``after`` < seq ≤ ``until``, in chunks. Raises `JournalError`."""
    while rows := journal.rows(after, until=until, limit=_CHUNK):
        yield rows
        after = rows[-1].seq


def _is_safe(row: Row, path: str) -> bool:
    """Whether ``row`` may be the file at ``path`` in a tree."""
    return find_row_flaw(row) is None and is_safe_path(path)


def _tree_path(row: Row) -> str | None:
    """Where the file of ``row`` lies in the tree."""
    return tree_path(row.zone, row.path)


def _body(row: Row) -> str:
    """What a message says beyond its first line."""
    return row.message.strip().partition("\n")[2]
