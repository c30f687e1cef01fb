"""Commits and tries of one agent's work, separate from the work of others in the same tree.

The work is taken from the versions in the journal. Files of the tree are only read for bytes that the journal
does not keep.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.errors import JournalError, NothingToCommit, WorkUnrecorded
from watchroom.features.config.store import Store
from watchroom.features.reverts.rules import is_revert_row
from watchroom.features.trees.git import Conversion, FileState, GitTree, IndexEntry, parse_lfs_pointer
from watchroom.features.trees.line_rules import (
    UNKNOWN,
    FileChanges,
    HeadFile,
    KnownVersions,
    LineVersion,
    clean_line_ends,
)
from watchroom.features.trees.rows import (
    BASELINE,
    COMMIT_AGENT,
    REPO,
    TREE,
    TRY_AGENT,
    CommitRecord,
    TryRecord,
    repo_path,
    split_repo_path,
)
from watchroom.features.trees.trials import TrialOutcome, run_trial
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import RowFilter
from watchroom.kernel.rules.details import get_int, get_ints, get_object, get_text
from watchroom.kernel.rules.file_versions import (
    Blob,
    blob_of,
    is_executable,
    is_ignored_version,
    is_text,
    unescape_path,
)
from watchroom.model import Row
from watchroom.validation import MAX_PATH_BYTES, escape_unstorable, extract_first_line

BlockReason: TypeAlias = Literal["mixed", "not_kept"]
"""The reason why a file cannot be committed with the work of the chosen authors.

- ``mixed``: the work depends on uncommitted work of others in the file.
- ``not_kept``: the bytes of its newest version are neither in the journal nor on disk.
"""
_MAX_WORK_CHARACTERS: Final = 500
_KNOWN: Final = "known"
"""The field of a commit's note that has the `KnownVersions` of each path."""
_DOMAIN: Final = "watchroom.invalid"
_PAGE: Final = 1000


class PlannedFile(NamedTuple):
    """A file of a commit.

    - ``state``: None if the commit deletes it.
    - ``authors``: the authors of its changes, in alphabetical order.
    - ``versions``: the versions with these changes.
    - ``known``: see `watchroom.features.trees.line_rules.Taken`.
    """

    path: str
    state: FileState | None
    authors: tuple[str, ...]
    versions: tuple[int, ...]
    known: KnownVersions | None


class BlockedFile(NamedTuple):
    """A file that is left out of a commit. ``others``: the authors whose uncommitted work the change depends
    on."""

    path: str
    reason: BlockReason
    others: tuple[str, ...] = ()


class CommitPlan(NamedTuple):
    """The content of a planned commit.

    - ``tree``: the id of the tree.
    - ``head``: the id of the parent commit; empty if there is none.
    - ``agents``: the authors of the work; None for all authors.
    - ``files``, ``blocked``: its files, and the files that are left out, by path.
    """

    tree: str
    head: str
    agents: tuple[str, ...] | None
    files: tuple[PlannedFile, ...]
    blocked: tuple[BlockedFile, ...]

    @property
    def states(self) -> Mapping[str, FileState | None]:
        """The files as arguments for `GitTree.commit_files`."""
        return {each.path: each.state for each in self.files}

    @property
    def authors(self) -> tuple[str, ...]:
        """The authors of the changes in the commit."""
        return tuple(sorted({author for each in self.files for author in each.authors}))


class AgentCommits:
    """Commits and tries the work of agents.

    ``store``: the journal.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._notes: tuple[Row, ...] = ()
        self._scanned = 0

    def plan(self, tree: GitTree, agents: Collection[str] | None = None) -> CommitPlan:
        """Return the content of a commit of the work of ``agents`` in ``tree``. Change nothing.

        ``agents``: authors of versions, also people and ``outside``. Default: all authors.

        Raise `GitError`, `JournalError`.
        """
        tree_id, head = tree.tree_id(), tree.read_state().head
        names = None if agents is None else tuple(sorted(set(agents)))
        files: list[PlannedFile] = []
        blocked: list[BlockedFile] = []
        for each in self.compare(tree, head):
            planned = each.plan(names)
            if isinstance(planned, PlannedFile):
                files.append(planned)
            elif planned is not None:
                blocked.append(planned)
        return CommitPlan(tree_id, head, names, tuple(files), tuple(blocked))

    def list_changes(self, tree: GitTree) -> dict[str, FileChanges]:
        """Return the uncommitted changes of the text files of ``tree`` by path. Raise the errors of
        `plan`."""
        head = tree.read_state().head
        found = self.compare(tree, head)
        return {
            each.path: each.changes for each in found if each.changes is not None and each.changes.authors
        }

    def commit(
        self,
        call: CallContext,
        tree: GitTree,
        agents: Collection[str] | None,
        message: str,
        *,
        branch: str | None = None,
    ) -> Row:
        """Commit the work of ``agents`` in ``tree``, without blocked files, and return the note about it.

        - ``agents``: see `plan`.
        - ``branch``: a new branch. None commits onto the checked-out branch.

        The author of the commit is the agent if all work is by one agent. Otherwise it is the person in git's
        settings. Raise `NothingToCommit`, `WorkUnrecorded` if git has the commit but the note is refused, and
        the errors of `GitTree.commit_files` and `plan`.
        """
        plan = self.plan(tree, agents)
        if not plan.files:
            raise NothingToCommit(
                blocked=", ".join(_storable(each.path) for each in plan.blocked[:10]) or "-"
            )
        authors = [each for each in plan.authors if is_agent(each)]
        author = identity_of(authors[0]) if len(authors) == 1 and plan.authors == tuple(authors) else ""
        trailers = "" if author else "".join(f"Co-authored-by: {identity_of(each)}\n" for each in authors)
        text = message.strip("\n") + (f"\n\n{trailers}" if trailers else "")
        commit = tree.commit_files(plan.states, text, author, branch=branch, parent=plan.head)
        if commit == plan.head:
            raise NothingToCommit(blocked="-")
        name = branch if branch is not None else tree.read_state().branch
        took = {_storable(each.path): each.versions for each in plan.files}
        detail = CommitRecord(plan.tree, escape_unstorable(name), commit, plan.head, took).detail | {
            _KNOWN: {
                _storable(each.path): [*each.known[:2], *sorted(each.known.later)]
                for each in plan.files
                if each.known
            },
            "authors": [*plan.authors],
            "blocked": [_storable(each.path) for each in plan.blocked],
        }
        subject = extract_first_line(message, 200)
        note = call.with_tool(COMMIT_AGENT).note(TREE, plan.tree, message=subject, detail=detail)
        with reported_as_done(f"{name} {commit[:12]}"):
            return self._store.commits.commit(note).row

    def try_agent(
        self,
        tree: GitTree,
        agents: Collection[str] | None,
        command: Sequence[str],
        *,
        call: CallContext | None = None,
        linked: Iterable[str] = (),
        timeout: float = 3600.0,
        cache: str = "",
    ) -> TrialOutcome:
        """Run ``command`` in a copy of ``tree`` that has HEAD and the work of ``agents`` only.

        - ``call``: the call to record as a note; None records nothing.
        - ``linked``: ignored folders to link into the copy, such as ``node_modules``.
        - ``timeout``: seconds, default an hour.
        - ``cache``: the folder of all copies, default ``watchroom`` in the user's cache folder.

        The copy is kept for the next try. Raise the errors of `plan`.
        """
        plan = self.plan(tree, agents)
        content = tree.write_tree(plan.states, parent=plan.head)
        done = run_trial(
            tree,
            content,
            command,
            claim=lambda slot: self._store.journal.claim(f"trial:{plan.tree}:{slot}"),
            linked=linked,
            timeout=timeout,
            cache=cache,
        )
        if call is not None:
            record = TryRecord(tuple(agents or ()), tuple(command), done.status, done.seconds)
            subject = extract_first_line(" ".join(command), 200)
            note = call.with_tool(TRY_AGENT).note(TREE, plan.tree, message=subject, detail=record.detail)
            self._store.commits.commit(note)
        return done

    def compare(
        self, tree: GitTree, commit: str, author_of: Callable[[Row], str] | None = None
    ) -> Iterator[FileComparison]:
        """Yield the recorded files of ``tree`` that differ from ``commit``, by path.

        - ``commit``: the id of HEAD or of one of its ancestors; empty for no commit.
        - ``author_of``: returns the author of a version, default `author_of_version`.

        Raise the errors of `plan`.
        """
        tree_id = tree.tree_id()
        rows, reader = self._read_heads(tree, tree_id, commit)
        notes = self._find_notes(tree_id)
        commits = set(tree.list_commits()) if notes else set()
        for path, row in sorted(rows.items()):
            if reader.is_same(path, row, self._store.journal.content(row.seq) if is_text(row) else None):
                continue
            versions, known = self._versions(row.path), [*_known(notes, path, commits)]
            yield FileComparison(self._store, tree, reader, path, versions, known, author_of)

    def list_uncommitted(self, tree: GitTree, tree_id: str, head: str, as_of: int) -> dict[str, Row]:
        """Return the uncommitted files of a working tree by path, each with its newest version.

        - ``tree``: any tree of the repository. The working tree itself may be gone.
        - ``tree_id``: the id of the working tree.
        - ``head``: the id of the commit that it had checked out, empty for none.
        - ``as_of``: the last row to read.

        Raise the errors of `plan`.
        """
        rows, reader = self._read_heads(tree, tree_id, head, as_of)
        return {
            path: row
            for path, row in rows.items()
            if not reader.is_same(path, row, self._store.journal.content(row.seq) if is_text(row) else None)
        }

    def _read_heads(
        self, tree: GitTree, tree_id: str, head: str, as_of: int | None = None
    ) -> tuple[dict[str, Row], _HeadReader]:
        """Return the newest version of each recorded file, and a reader of the commit ``head``."""
        rows = {
            os.fsdecode(unescape_path(split_repo_path(row.path)[1])): row
            for row in self._store.journal.heads(REPO, repo_path(tree_id, ""), as_of=as_of)
            if not is_ignored_version(row)
        }
        entries = tree.list_tree(head, list(rows)) if head else {}
        texts = tree.read_blobs(list(rows), entries=entries)
        return rows, _HeadReader(tree, entries, texts)

    def _versions(self, path: str) -> list[tuple[Row, str | None]]:
        found: list[tuple[Row, str | None]] = []
        while page := self._store.journal.versions(
            REPO, path, after=(found[-1][0].version or 0) if found else 0, limit=_PAGE
        ):
            found += page
        return found

    def _find_notes(self, tree_id: str) -> list[Row]:
        """Return the notes about commits in the tree, the newest first."""
        journal = self._store.journal
        with self._lock:
            last = journal.last_seq()
            only = RowFilter(zone=TREE, tool=COMMIT_AGENT, outcome="ok", after=self._scanned)
            before = last + 1
            fresh: list[Row] = []
            while page := journal.rows_before(before, limit=_PAGE, only=only):
                fresh += page
                before = page[-1].seq
            self._notes, self._scanned = (*fresh, *self._notes), last
            return [each for each in self._notes if each.path == tree_id]


class _HeadReader:
    """The recorded files in the commit HEAD.

    - ``entries``: its files.
    - ``texts``: the bytes that git would write into them.
    """

    def __init__(
        self, tree: GitTree, entries: Mapping[str, IndexEntry], texts: Mapping[str, bytes | None]
    ) -> None:
        self._tree = tree
        self.entries = entries
        self.texts = texts
        self._conversions: Mapping[str, Conversion] | None = None

    def is_same(self, path: str, row: Row, content: str | None) -> bool:
        """Return whether HEAD has the version ``row``. ``content``: its text."""
        entry = self.entries.get(path)
        if row.deleted and entry is not None and entry.is_link:
            # The journal has no links.
            return self._tree.read_link(path) == self.texts.get(path)
        if row.deleted or entry is None:
            return row.deleted and entry is None
        if self.is_executable(path, row) != is_executable(row):
            return False
        return self.has_text(path, content) if is_text(row) else self.has_blob(path, blob_of(row))

    def has_text(self, path: str, text: str | None) -> bool:
        """Return whether git would store ``text`` as the blob in HEAD. For None, return whether HEAD lacks
        the file."""
        entry, found = self.entries.get(path), self.texts.get(path)
        if text is None or entry is None:
            return text is None and entry is None
        if found is None:
            return False
        if text.encode() == found:
            return True
        if "\r\n" not in text and b"\r\n" not in found:
            return False
        stored = self.raw(path)
        return (
            clean_line_ends(text, self.conversion(path), stored.decode("utf-8", "replace")).encode() == stored
        )

    def has_blob(self, path: str, blob: Blob | None) -> bool:
        """Return whether the file in HEAD has the bytes ``blob``."""
        found = self.texts.get(path)
        if blob is None or found is None:
            return False
        return parse_lfs_pointer(found) == blob or Blob(hashlib.sha256(found).hexdigest(), len(found)) == blob

    def is_executable(self, path: str, newest: Row) -> bool:
        """Return whether ``path`` is executable in HEAD, or in ``newest`` if git ignores modes."""
        entry = self.entries.get(path)
        if entry is None:
            return False
        is_kept = not entry.is_link and (
            entry.executable == is_executable(newest) or self._tree.keeps_modes()
        )
        return entry.executable if is_kept else is_executable(newest)

    def conversion(self, path: str) -> Conversion:
        """Return how git converts the line ends of ``path`` on add."""
        if self._conversions is None:
            self._conversions = self._tree.list_conversions(set(self.entries))
        return self._conversions.get(path, "none")

    def raw(self, path: str) -> bytes:
        """Return the blob of ``path``."""
        blob = self.entries[path].blob
        return self._tree.read_raw([blob]).get(blob, b"")

    def text(self, path: str, newest: str | None) -> str | None:
        """Return the text of ``path`` in HEAD with the line ends of ``newest``; None if it is not text."""
        found = self.texts.get(path)
        if found is not None and b"\r\n" in found and newest is not None and "\r\n" not in newest:
            found = self.raw(path)
        try:
            return None if found is None or b"\0" in found else found.decode()
        except UnicodeDecodeError:
            return None


class FileComparison:
    """A recorded file that differs from a commit, which is called HEAD here.

    - ``path``: its path in the tree.
    - ``rows``: its versions, by their numbers.
    - ``author_of``: returns the name of the author of a version.
    - ``changes``: None if a version since HEAD is binary.
    - ``whole_rows``: the versions since it was binary, which are committed together if ``changes`` is None.
    """

    def __init__(
        self,
        store: Store,
        tree: GitTree,
        reader: _HeadReader,
        path: str,
        versions: Sequence[tuple[Row, str | None]],
        commits: Sequence[KnownVersions],
        author_of: Callable[[Row], str] | None = None,
    ) -> None:
        self.path = path
        self.rows = {row.version or 0: row for row, _ in versions}
        self.author_of = author_of or author_of_version
        self._store = store
        self._tree = tree
        self._entry = reader.entries.get(path)
        self._newest = versions[-1][0]
        self._link = tree.read_link(path)
        self._is_link = self._link is not None and self._link == (versions[-1][1] or "").encode()
        self.changes: FileChanges | None = None
        start = next((n for n in range(len(versions) - 1, -1, -1) if not is_text(versions[n][0])), -1) + 1
        self._since_binary = {self.author_of(row) for row, _ in versions[start:]}
        self.whole_rows = tuple(row for row, _ in versions[min(start, len(versions) - 1) :])
        has_head = any(reader.has_text(path, content) for _, content in versions[start:])
        text = reader.text(path, versions[-1][1])
        is_whole = (
            start == len(versions) or (start and not has_head) or (self._entry is not None and text is None)
        )
        if not is_whole:
            head = HeadFile(text, reader.is_executable(path, self._newest), commits)
            lines = [_line_version(row, text, self.author_of(row)) for row, text in versions[start:]]
            self.changes = FileChanges(lines, head, lambda each: reader.has_text(path, each))

    def plan(self, agents: Sequence[str] | None) -> PlannedFile | BlockedFile | None:
        """Return the file as part of a commit of ``agents``; None if they have not changed it."""
        if self.changes is None:
            return self._plan_whole(agents)
        authors = self.changes.authors
        chosen = authors if agents is None else [each for each in authors if each in agents]
        if not chosen:
            return None
        taken = self.changes.take(self.changes.all_authors if agents is None else agents)
        if taken.mixed:
            return BlockedFile(self.path, "mixed", tuple(sorted(taken.mixed)))
        state = (
            self._removed_state()
            if taken.text is None
            else FileState(taken.text.encode(), taken.executable, self._is_link)
        )
        return PlannedFile(self.path, state, tuple(chosen), taken.versions, taken.known)

    def _removed_state(self) -> FileState | None:
        """Return the link that has replaced the file, None if it was only deleted. The journal has no
        links."""
        is_link = self._link is not None and self._newest.deleted
        return FileState(self._link or b"", is_link=True) if is_link else None

    def _plan_whole(self, agents: Sequence[str] | None) -> PlannedFile | BlockedFile | None:
        """Plan a file that was binary: all of it is the work of its newest version's author.

        If it is text again, the commit also needs all authors since then.
        """
        row = self._newest
        author = self.author_of(row)
        if agents is not None and author not in agents:
            return None
        others = self._since_binary - {author} - set(agents or self._since_binary)
        if others:
            return BlockedFile(self.path, "mixed", tuple(sorted(others)))
        number = row.version or 0
        known = KnownVersions(number, number)
        planned = PlannedFile(self.path, self._removed_state(), (author,), (number,), known)
        if row.deleted:
            return planned
        data = self._read_bytes(row)
        if data is None:
            return BlockedFile(self.path, "not_kept")
        return planned._replace(state=FileState(data, is_executable(row), self._is_link))

    def _read_bytes(self, row: Row) -> bytes | None:
        """Return the bytes of the version ``row``, from the journal or from disk; None if neither has
        them."""
        if is_text(row):
            content = self._store.journal.content(row.seq)
            return None if content is None else content.encode()
        blob = blob_of(row)
        kept = self._store.journal.blobs.find(blob.sha256) if blob is not None else None
        if kept is not None:
            return kept
        try:
            with open(os.path.join(self._tree.folder, self.path), "rb") as file:
                data = file.read()
        except OSError:
            return None
        if blob is None:
            return data if len(data) == get_int(row.detail, "size") else None
        return data if hashlib.sha256(data).hexdigest() == blob.sha256 else None


def _known(notes: Sequence[Row], path: str, commits: Collection[str]) -> Iterator[KnownVersions]:
    """Yield the versions that commits have of ``path``: first commits in HEAD's history, then rewritten
    commits."""
    for is_in_head in (True, False):
        for note in notes:
            numbers = get_ints(get_object(note.detail, _KNOWN), _storable(path))
            if len(numbers) > 1 and (get_text(note.detail, "commit") in commits) == is_in_head:
                yield KnownVersions(numbers[0], numbers[1], frozenset(numbers[2:]))


def _storable(path: str) -> str:
    """Return ``path`` as it is written in rows."""
    return escape_unstorable(path, MAX_PATH_BYTES)


def _line_version(row: Row, content: str | None, author: str) -> LineVersion:
    is_revert = is_revert_row(row)
    took, gave = (tuple(get_ints(row.detail, name)) if is_revert else () for name in ("took", "gave"))
    return LineVersion(row.version or 0, author, content, is_executable(row), took, gave)


def author_of_version(row: Row) -> str:
    """Return the author of the changes of a version; empty for git's text before the first change."""
    return UNKNOWN if row.tool == BASELINE else row.actor


def is_agent(author: str) -> bool:
    """Return whether the author of a version is an agent."""
    return author not in ("", "system", "outside") and ":" not in author


def identity_of(agent: str) -> str:
    """Return ``agent`` as the author of a commit, in git's form ``NAME <EMAIL>``."""
    return f"{agent} <{agent}@{_DOMAIN}>"


@contextmanager
def reported_as_done(work: str) -> Iterator[None]:
    """Raise `WorkUnrecorded` if the journal does not confirm the row that the context commits.

    The journal's error would say that nothing was changed. ``work``: what git has, for the error.
    """
    try:
        yield
    except JournalError as error:
        raise WorkUnrecorded(
            work=escape_unstorable(work, _MAX_WORK_CHARACTERS), reason=error.message()
        ) from error
