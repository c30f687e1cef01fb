"""`TreeRecorder`: records what changes in one working tree, each change as the next version of its file.

A file has no rows before its first change. Just before the change, git's text becomes the first version,
because git may delete it, and the change alone would not show the replaced text.

Files without rows that git itself changed, for example by a checkout, need no rows: git has both texts.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom import validation
from watchroom.errors import FolderDenied
from watchroom.features.config.store import Store
from watchroom.features.trees.blob_reader import BlobReader
from watchroom.features.trees.head_log import HeadLog, HeadMove
from watchroom.features.trees.ignore_checker import IgnoreChecker
from watchroom.features.trees.rows import (
    BASELINE,
    CANDIDATES,
    CHANGE,
    CLIENT_CALL_ID,
    FORMATTER,
    GRADE,
    RECORD_TREE,
    REPO,
    TREE,
    Grade,
    Tree,
    repo_path,
)
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.file_content import (
    FileContent,
    describe_file,
    is_before_revert,
    is_current,
    restored_if_refused,
)
from watchroom.kernel.rules.details import get_text
from watchroom.kernel.rules.file_versions import EXECUTABLE, is_executable, unescape_path
from watchroom.kernel.rules.row_files import find_row_flaw
from watchroom.model import MAX_TEXT_BYTES, OUTSIDE, SYSTEM, Appended, Json, Row, Write, Zone
from watchroom.platform.disk import FileStamp, Folder, Inspected, Parts

if TYPE_CHECKING:
    from watchroom.features.trees.git import GitState, GitTree, IndexEntry

_MAX_READS: Final = 3
"""Max reads of git's state and index, because git may change them all the time."""
_GIT_SECONDS: Final = 1.0
"""Max seconds that a comparison waits for a git command that begins to change files."""
_MAX_ASKED: Final = 500
"""Maximum number of paths in one query of the journal."""
_BATCH_ROWS: Final = 200
_BATCH_BYTES: Final = 1024 * 1024
"""Maximum rows in a batch of changes, and the size in bytes at which a batch ends."""
_SETTLED_NANOSECONDS: Final = 1_000_000_000
"""Nanoseconds after a file's last change in which the file is always read again, because a further change
could have the same time stamp."""
_SAVING_SECONDS: Final = 0.1
_MAX_SAVING_LOOKS: Final = 10
"""For how long, and how often, an emptied file is read again before it is recorded."""
_IGNORE_FILES: Final = (".gitignore",)
_ATTRIBUTES_FILE: Final = ".gitattributes"
_log = logging.getLogger("watchroom")


class Window(NamedTuple):
    """A running command of ``agent``. ``call``: the id of its call."""

    agent: str
    call: str


class Busy(NamedTuple):
    """The current work of agents in a tree.

    - ``windows``: the running commands. One of their agents made the changes.
    - ``leased``: the names of files that agents' own tools are writing. They are compared later.
    - ``own``: the names of files that the caller is about to write. They are compared even while git changes
      files.
    - ``is_whole``: whether all files are compared, unless git changes them.
    """

    windows: Sequence[Window] = ()
    leased: Collection[str] = ()
    own: Collection[str] = ()
    is_whole: bool = True


class _Author(NamedTuple):
    """The actor and the detail of versions that were found on disk."""

    actor: str
    detail: dict[str, Json]


class _Known(NamedTuple):
    """A file that equalled its newest row. It is not read again while it has this stamp."""

    stamp: FileStamp
    seq: int


class _Change(NamedTuple):
    """A change to record: the drafts for the file ``name``, and the stamp of the file they describe."""

    name: str
    head: Row | None
    stamp: FileStamp | None
    drafts: tuple[Write, ...]
    blobs: tuple[bytes, ...] = ()
    content: FileContent | None = None

    @property
    def size(self) -> int:
        return sum(len(each.content or "") for each in self.drafts) + sum(map(len, self.blobs))


class TreeRecorder:
    """Records the changes in the working tree of ``git``. May be used from any thread.

    - ``store``: the rows.
    - ``scratch``: a folder outside of the tree for half-written files.

    Methods raise `GitError`, `JournalError`, `FolderDenied`. The constructor raises FileNotFoundError if the
    tree's folder is gone.
    """

    def __init__(self, store: Store, git: GitTree, scratch: str) -> None:
        self.git = git
        self.id = git.tree_id()
        self._store = store
        # A removal moves the folder away. A new one in its place would make git refuse the removal.
        self._folder = Folder(git.folder, scratch, is_made=False)
        self.blobs = BlobReader(git)
        self._ignore_checker = IgnoreChecker(git)
        self._identity = _identify(git.folder)
        self._lock = RLock()
        self._index: dict[str, IndexEntry] = {}
        """Git's index at the last comparison of the tree."""
        self._state: GitState | None = None
        self._log = HeadLog(git.git)
        self._suspects: set[str] = set()
        self.needs_look = True
        """Whether the next `record` compares the whole tree."""
        self._has_long_names = False
        self._known: dict[str, _Known] = {}

    def close(self) -> None:
        """Close the folder, and end child processes."""
        with self._lock:
            self.blobs.close()
            self._ignore_checker.close()
            self._folder.close()

    def was_replaced(self) -> bool:
        """Return whether another folder has replaced the tree's folder, for example the folder of a new tree.
        Both can have the same inode and the same git folder."""
        try:
            return _identify(self.git.folder) != self._identity or self.git.read_id() != self.id
        except OSError:
            return True

    def path(self, name: str) -> str:
        """Return the path of the rows of the file ``name`` in the tree."""
        return repo_path(self.id, validation.escape_unstorable(name, validation.MAX_PATH_BYTES))

    def name_of(self, path: str) -> str | None:
        """Return the name in the tree of the file at the absolute ``path``.

        None if it is outside of the tree, belongs to git, or has a path that is too long for a row.
        """
        root, whole = os.path.join(self.git.folder, ""), os.path.normpath(path)
        name = whole.removeprefix(root)
        if name == whole or ".git" in name.casefold().split(os.sep):
            return None
        return name if self._fits(name) else None

    def _fits(self, name: str) -> bool:
        """Return whether ``name`` is short enough for the path of a row. Log the first name that is too
        long."""
        if len(os.fsencode(name)) <= validation.MAX_PATH_BYTES:
            return True
        if not self._has_long_names:
            self._has_long_names = True
            limit, shown = validation.MAX_PATH_BYTES, validation.escape_unstorable(name, 200)
            _log.warning("%s: paths over %d bytes are not recorded: %s", self.git.folder, limit, shown)
        return False

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep other processes from comparing the tree with its rows while the context lasts."""
        return self._store.journal.exclusive(f"repo/{self.id}")

    # -- suspects

    def suspect(self, paths: Iterable[str]) -> None:
        """Make the next `record` compare the files at the absolute ``paths``."""
        with self._lock:
            for path in paths:
                name = self.name_of(path)
                if name is not None and not self.is_nested(name):
                    self._suspects.add(name)
                    last = name.rpartition("/")[2]
                    if last in _IGNORE_FILES:
                        self._ignore_checker.restart()
                    if last == _ATTRIBUTES_FILE:
                        self.blobs.restart()

    def is_nested(self, name: str) -> bool:
        """Return whether the file ``name`` is in another repository within the tree."""
        above = os.path.dirname(name)
        while above:
            if os.path.lexists(os.path.join(self.git.folder, above, ".git")):
                return True
            above = os.path.dirname(above)
        return False

    def suspects(self, names: Iterable[str]) -> bool:
        """Return whether one of the files ``names`` is a suspect."""
        with self._lock:
            return not self._suspects.isdisjoint(names)

    def suspect_all(self) -> None:
        """Make the next `record` compare the whole tree."""
        with self._lock:
            self.needs_look = True
            self.blobs.restart()
            self._ignore_checker.restart()

    # -- recording

    def record(
        self,
        find_busy: Callable[[], Busy] = lambda: Busy(),
        on_rows: Callable[[list[Row]], object] = lambda rows: None,
    ) -> list[Row]:
        """Record the changes of suspects. Return the rows.

        - ``find_busy``: returns the current activity of agents.
        - ``on_rows``: called with the rows before another thread can record. After an error, it is called
          with the rows that were committed before.
        """
        with self._lock:
            busy = find_busy()
            rows: list[Row] = []
            try:
                if not (busy.is_whole and self._record_suspects(busy, rows)):
                    self._record_names(sorted(busy.own), busy.windows, rows)
            finally:
                on_rows(rows)
            return rows

    def _record_suspects(self, busy: Busy, rows: list[Row]) -> bool:
        """Record the changes of suspects, except for leased files. Add the rows to ``rows``. If git changes
        files meanwhile, record no more, set `needs_look`, and return False."""
        known = self._state
        found = self._read_git()
        if found is None:
            self.needs_look = True
            return False
        state, index, dirty = found
        if dirty is not None:
            self._suspects |= {name for name in dirty if self._fits(name)}
            if self.needs_look:
                self._suspects |= self.list_recorded()
        has_begun = known is not None and state.operation not in ("", known.operation)
        has_moved = has_begun or (known is not None and state.head != known.head)
        moves = _describe_moves(self.git, self._log.read(state.head)) if state != known else _Moves()
        moves = moves if has_moved else moves._replace(is_by_git=False)
        if has_moved:
            # The watcher may not have noticed all files yet, and the next comparison does not see this move.
            self._suspects |= self.list_recorded()
            self._suspects |= {name for name in moves.committed if self._fits(name)}
        names = sorted(name for name in self._suspects if name not in busy.leased)
        if known is None or (state.head, state.branch) != (known.head, known.branch):
            rows += self._record_tree(state)
        finder = _Changes(self, index, dirty, _author(busy.windows), moves)
        for batch in _batches(finder.find(names)):
            if self.git.read_state() != state:
                self.needs_look = True
                return False
            rows += self._commit(batch)
        self._suspects.difference_update(names)
        if state != known:
            self._log.advance()
        self._index, self._state, self.needs_look = index, state, False
        return True

    def _read_git(self) -> tuple[GitState, dict[str, IndexEntry], set[str] | None] | None:
        """Return git's state, and in that state its index and the files that differ from it. For these files,
        None if the state has not changed. The result is None if git is changing files."""
        state = self.git.read_state()
        if not self.needs_look and state == self._state:
            return state, self._index, None
        for _ in range(_MAX_READS):
            if not self.git.wait_for_git(_GIT_SECONDS):
                break
            state = self.git.read_state()
            index, dirty = self.git.list_index(), set(self.git.list_changed())
            if self.git.read_state() == state:
                return state, index, dirty
        return None

    def _record_names(self, names: Sequence[str], windows: Sequence[Window], rows: list[Row]) -> None:
        """Record the changes of the files ``names``, and add the rows to ``rows``."""
        if not names:
            return
        finder = self._find_without_git(_author(windows))
        for batch in _batches(finder.find(names)):
            rows += self._commit(batch)

    def _find_without_git(self, author: _Author) -> _Changes:
        """Return a finder of changes by ``author`` that does not ask who moved HEAD. It uses git's index of
        the last comparison; before the first one, git's index now."""
        index = self._index if self._state is not None else self.git.list_index()
        return _Changes(self, index, None, author, _Moves())

    def list_recorded(self) -> set[str]:
        """Return the names of all files with rows, including deleted files, which may exist again."""
        heads = self._store.journal.heads(REPO, f"{self.id}/")
        return {self._name_in(head.path) for head in heads if find_row_flaw(head) is None}

    def _name_in(self, path: str) -> str:
        return os.fsdecode(unescape_path(path.partition("/")[2]))

    def _record_tree(self, state: GitState) -> list[Row]:
        """Record the tree's folder, branch and HEAD if its newest row differs."""
        tree = Tree(self.id, self.git.folder, self.git.git, state.branch, state.head)
        content = json.dumps(tree.content, ensure_ascii=False)
        head = self._store.journal.head(TREE, self.id)
        if head is not None and self._store.content(head) == content:
            return []
        return [
            self._store.commits.commit(CallContext(SYSTEM, RECORD_TREE).write(TREE, self.id, content)).row
        ]

    def _commit(self, batch: Sequence[_Change]) -> list[Row]:
        """Commit the changes whose files and rows are unchanged since they were found. The others stay
        suspects."""
        blobs = [data for change in batch for data in change.blobs]
        if blobs:
            self._store.journal.blobs.keep(blobs)
        with self.exclusive():
            heads = self.heads([each.name for each in batch])
            current = [each for each, head in zip(batch, heads, strict=True) if self._is_as_found(each, head)]
            drafts = [draft for each in current for draft in each.drafts]
            rows = [each.row for each in self._store.commits.commit_all(drafts)]
        last = {row.path: row for row in rows}
        for change in current:
            self.remember(change.name, change.content, last[self.path(change.name)])
        return rows

    def _is_as_found(self, change: _Change, head: Row | None) -> bool:
        if (head and head.seq) != (change.head and change.head.seq):
            return False
        return self.stamp(change.name) == change.stamp

    def remember(self, name: str, content: FileContent | None, row: Row) -> None:
        """Remember that the file ``name`` has ``content``, which equals the version ``row``."""
        if content is None or row.version is None:
            self._known.pop(name, None)
        elif time.time_ns() - content.stamp.changed > _SETTLED_NANOSECONDS:
            self._known[name] = _Known(content.stamp, row.seq)

    # -- the file system and git

    def stamp(self, name: str) -> FileStamp | None:
        """Return the stamp of the file ``name``, None if there is none."""
        with _access_errors(name):
            return self._folder.stamp(_parts(name))

    def content(self, name: str) -> FileContent | None:
        """Return the content on disk of the file ``name`` as rows describe it, None if there is no file."""
        with _access_errors(name):
            found = self._folder.inspect(_parts(name), MAX_TEXT_BYTES)
        return None if found is None else describe_file(found)

    def write(self, name: str, data: bytes | None, *, executable: bool = False) -> None:
        """Write ``data`` to the file ``name``. None removes the file and its empty parents, as git does."""
        with _access_errors(name):
            if data is None:
                self._folder.remove(_parts(name), kept=0)
            else:
                self._folder.write(_parts(name), data, executable=executable)

    def is_before_revert(self, head: Row, content: FileContent | None) -> bool:
        """Return whether a revert made ``head``, but has not written the file with ``content`` yet."""
        return is_before_revert(self._store.journal, head, content)

    def materialize_revert(self, name: str) -> None:
        """Write the newest version of the file ``name``, if a revert made it and the file is unchanged since.
        Any other content is an edit, and is kept."""
        with self.exclusive():
            (head,) = self.heads([name])
            if head is None or find_row_flaw(head) is not None:
                return
            content = self.content(name)
            if is_current(head, content) or not self.is_before_revert(head, content):
                return
            data = None if head.deleted else self._store.read_bytes(head)
            if head.deleted or data is not None:
                self.write(name, data, executable=is_executable(head))

    def write_version(self, name: str, draft: Write) -> Appended:
        """Write the file ``name``, and commit ``draft`` as its version. The file keeps its mode.

        If the file differs from the expected version, nothing is written, and ``draft`` becomes a conflict.
        """
        with self._lock, self.exclusive():
            (head,) = self.heads([name])
            content = self.content(name)
            if not is_current(head, content):
                for change in self._find_without_git(_author(())).find([name]):
                    self._store.commits.commit_all(change.drafts)
                (head,) = self.heads([name])
            if draft.expected == ((head.version or 0) if head else 0):
                self._store.check_conditions(draft)
                data = None if draft.content is None else draft.content.encode()
                if is_executable(head):
                    draft = draft._replace(detail={**(draft.detail or {}), EXECUTABLE: True})
                before = self._folder.inspect(_parts(name), MAX_TEXT_BYTES)
                self.write(name, data, executable=is_executable(head))
                with restored_if_refused(self._folder, _parts(name), before):
                    return self._store.write(draft)
            return self._store.write(draft)

    def record_write(
        self,
        name: str,
        call: CallContext,
        detail: dict[str, Json],
        expected: str | None,
        between: str | None,
        find_windows: Callable[[], Sequence[Window]],
        *,
        removes: bool,
        is_followed: bool,
    ) -> list[Row]:
        """Record that the tool of an agent has written the file ``name``. Return the rows, none if the tree
        is gone.

        - ``call``, ``detail``: the call and detail of the version.
        - ``expected``: the text that the tool writes, None for a deletion or if unknown.
        - ``between``: the text that somebody else wrote just before, None if nobody did.
        - ``find_windows``: returns the commands that ran during the write.
        - ``removes``: whether the tool removes the file.
        - ``is_followed``: whether another call of the agent, which is not recorded yet, has edited the text
          since. That call records the text on disk.

        If the file's text is not as expected, a second version records it: a formatter or another agent's
        command changed it. If the file is gone and the tool did not remove it, the second version is the
        deletion, by one of these commands or by an unknown program.
        """
        with self._lock, self.exclusive():
            if self.was_replaced():
                return []
            (head,) = self.heads([name])
            content = self.content(name)
            # A command that starts later has not made this content.
            windows = find_windows()
            is_gone = content is None and not removes
            has_other_text = between is not None or (is_gone and expected is not None)
            if not has_other_text and head is not None and is_current(head, content):
                return []
            drafts: list[Write] = []
            version = (head.version or 0) if head is not None else 0
            if head is None:
                drafts += self._read_baseline(name)
                version = len(drafts)
                if not drafts and content is None and not has_other_text:
                    return []
            if between is not None:
                other = _author(windows)
                by_other = CallContext(other.actor, CHANGE)
                drafts.append(by_other.write(REPO, self.path(name), between, "", version, other.detail))
                version += 1
            text = content.text if content is not None else None
            is_read = content is not None and bool(content.checksum) and content.data is None
            is_changed = is_gone or (is_read and not _is_same_text(expected or "", text or ""))
            if expected is not None and is_changed:
                executable = is_executable(head) if content is None else content.executable
                made = {**detail, EXECUTABLE: True} if executable else detail
                drafts.append(call.write(REPO, self.path(name), expected, "", version, made))
                if is_followed:
                    return [each.row for each in self._store.commits.commit_all(drafts)]
                version += 1
                call = call.with_tool(FORMATTER)
                if any(each.agent != call.actor for each in windows):
                    own = Window(call.actor, get_text(detail, CLIENT_CALL_ID))
                    actor, detail = _author((*windows, own))
                    call = CallContext(actor, CHANGE)
            if is_gone:
                actor, detail = _author(windows)
                call = CallContext(actor, CHANGE)
            more = content.detail if content is not None else {}
            drafts.append(call.write(REPO, self.path(name), text, "", version, {**detail, **more}))
            if content is not None and content.data is not None:
                self._store.journal.blobs.keep([content.data])
            rows = [each.row for each in self._store.commits.commit_all(drafts)]
            self.remember(name, content, rows[-1])
            return rows

    def keep_blob(self, data: bytes) -> None:
        """Keep the bytes of a binary file."""
        self._store.journal.blobs.keep([data])

    def _read_baseline(self, name: str) -> list[Write]:
        """Return the draft of the first version of the file ``name``, if the file is in git."""
        return self._find_without_git(_author(())).read_baseline(name)

    def is_known(self, name: str, stamp: FileStamp | None, head: Row) -> bool:
        """Return whether the file ``name`` is known to equal ``head`` without reading it."""
        known = self._known.get(name)
        return known is not None and stamp is not None and known == (stamp, head.seq)

    def ignored_among(self, names: Sequence[str]) -> frozenset[str]:
        """Return the ``names`` that git ignores. Raise `IgnoredFilesUnknown`."""
        if self._state is None:
            return self.git.ignored_among(names)
        return self._ignore_checker.ignored_among([name for name in names if name not in self._index])

    def heads(self, names: Sequence[str]) -> list[Row | None]:
        """Return the newest version of each of the files ``names``, None for a file without rows."""
        paths: list[tuple[Zone, str]] = [(REPO, self.path(name)) for name in names]
        found: list[Row | None] = []
        for start in range(0, len(paths), _MAX_ASKED):
            found += self._store.journal.heads_of(paths[start : start + _MAX_ASKED])
        return found


class _Moves(NamedTuple):
    """The moves of HEAD since the last comparison.

    - ``is_by_git``: git switched to another commit, or started to, as in a merge that is not committed. False
      if it only committed the tree's content.
    - ``committed``: the names of files that were committed as they were in the tree.
    """

    is_by_git: bool = False
    committed: frozenset[str] = frozenset()


class _Baseline(NamedTuple):
    """The draft of a file's first version, which records git's text, and that version's content."""

    draft: Write
    content: FileContent


class _Changes:
    """Finds the changes among suspects.

    - ``index``: git's index now. ``recorder._index`` is the index of the last comparison.
    - ``dirty``: the names of files that differ from ``index``; None if the index has not changed.
    - ``author``: the author of changes that git did not make.
    - ``moves``: the moves of HEAD.
    """

    def __init__(
        self,
        recorder: TreeRecorder,
        index: dict[str, IndexEntry],
        dirty: set[str] | None,
        author: _Author,
        moves: _Moves,
    ) -> None:
        self._recorder = recorder
        self._index = index
        self._before = recorder._index or index
        self._dirty = dirty
        self._author = author
        self._moves = moves
        self._baselines: dict[str, _Baseline] = {}
        self._names: Sequence[str] = ()
        self._restored: set[str] | None = None

    def find(self, names: Sequence[str]) -> Iterator[_Change]:
        recorder = self._recorder
        self._names = names
        heads = recorder.heads(names)
        new = [name for name, head in zip(names, heads, strict=True) if head is None]
        ignored = recorder.ignored_among([name for name in new if name not in self._before])
        self._read_baselines([name for name in new if name in self._before and not self._needs_no_row(name)])
        for name, head in zip(names, heads, strict=True):
            if name in ignored or (head is None and self._needs_no_row(name)):
                continue
            try:
                change = self._find_change(name, head)
            except FolderDenied as error:
                _log.warning("%s", error)
                continue
            if change is not None:
                yield change

    def _find_change(self, name: str, head: Row | None) -> _Change | None:
        entries = (self._before.get(name), self._index.get(name))
        if any(each is not None and (each.is_absent or each.is_submodule) for each in entries):
            return None
        if head is not None and self._recorder.is_known(name, self._recorder.stamp(name), head):
            return None
        content = self._read_saved(name, head)
        if head is None:
            return self._find_first(name, content)
        if is_current(head, content):
            self._recorder.remember(name, content, head)
            return None
        if self._recorder.is_before_revert(head, content):
            return None
        version = head.version or 0
        draft = self._draft(name, content, version, self._author_of(name))
        return _change(name, head, content, (draft,))

    def _read_saved(self, name: str, head: Row | None) -> FileContent | None:
        """Return the content of the file ``name``. If the file was just emptied, wait a moment, because many
        programs empty a file before they write it."""
        had_content = name in self._baselines if head is None else bool(head.size)
        content = self._recorder.content(name)
        for _ in range(_MAX_SAVING_LOOKS if had_content else 0):
            if content is None or content.stamp.size or _is_old(content.stamp):
                break
            time.sleep(_SAVING_SECONDS / _MAX_SAVING_LOOKS)
            content = self._recorder.content(name)
        return content

    def _find_first(self, name: str, content: FileContent | None) -> _Change | None:
        """Return the first change of a file without rows."""
        entry = self._before.get(name)
        if entry is None and content is None:
            # An unrecorded file no longer exists.
            return None
        baseline = self._baselines.pop(name, None)
        if baseline is None:
            draft = None if content is None else self._draft(name, content, 0, self._author)
            return None if draft is None else _change(name, None, content, (draft,))
        known = baseline.content
        if content is not None and (known.text, known.executable) == (content.text, content.executable):
            if name in self._index:
                return None
            # Git has removed the file from the index, and left it in the tree.
            left = self._draft(name, content, 0, _Author(OUTSIDE, {GRADE: "git"}))
            return _change(name, None, content, (left,))
        drafts = (baseline.draft, self._draft(name, content, 1, self._author))
        change = _change(name, None, content, drafts)
        return change if known.data is None else change._replace(blobs=(known.data, *change.blobs))

    def _read_baselines(self, names: Sequence[str]) -> None:
        """Read git's content of the files ``names``, from its index before the last change."""
        entries = {name: entry for name in names if not (entry := self._before[name]).is_link}
        read = self._recorder.blobs.read({name: entry for name, entry in entries.items() if entry.blob})
        # While a merge has conflicts, the index has several blobs of a file.
        conflicted = [name for name, entry in entries.items() if not entry.blob]
        if conflicted:
            read |= self._recorder.git.read_blobs(conflicted, "HEAD:")
        for name, data in read.items():
            if data is None:
                continue
            found = Inspected(FileStamp(0, 0, len(data)), 0, data, entries[name].executable)
            content = describe_file(found)
            detail: dict[str, Json] = {GRADE: "git", **content.detail}
            call = CallContext(SYSTEM, BASELINE)
            draft = call.write(REPO, self._recorder.path(name), content.text, "", 0, detail)
            self._baselines[name] = _Baseline(draft, content)

    def read_baseline(self, name: str) -> list[Write]:
        """Return the draft of the first version of the file ``name``, none if the file is not in git."""
        if name not in self._before:
            return []
        self._read_baselines([name])
        found = self._baselines.pop(name, None)
        if found is None:
            return []
        if found.content.data is not None:
            self._recorder.keep_blob(found.content.data)
        return [found.draft]

    def _is_in_index(self, name: str) -> bool:
        """Return whether the file ``name`` is known to equal git's index."""
        return self._dirty is not None and name not in self._dirty

    def _needs_no_row(self, name: str) -> bool:
        """Return whether a change of the file ``name``, which has no rows, needs no row. Git has its texts
        before and after the change."""
        entry = self._before.get(name)
        is_same = entry is not None and entry == self._index.get(name)
        return self._is_in_index(name) and (is_same or self._is_moved(name))

    def _is_moved(self, name: str) -> bool:
        """Return whether git switched to another commit in which the file ``name`` differs."""
        is_other = self._before.get(name) != self._index.get(name)
        return self._moves.is_by_git and is_other and name not in self._moves.committed

    def _is_restored(self, name: str) -> bool:
        """Return whether git itself restored the file ``name`` from the index. The index then has the file's
        stamp.

        The index also has the stamp after git has compared the file, as in ``git status``. Therefore changes
        during commands count as the work of their agents.
        """
        if self._author.actor != OUTSIDE or CANDIDATES in self._author.detail:
            return False
        if self._restored is None:
            stamps = {each: self._recorder.stamp(each) for each in self._names if self._may_be_restored(each)}
            known = {each: stamp for each, stamp in stamps.items() if stamp is not None}
            self._restored = self._recorder.git.find_compared(known)
        return name in self._restored

    def _may_be_restored(self, name: str) -> bool:
        entry = self._index.get(name)
        return self._is_in_index(name) and entry is not None and entry == self._before.get(name)

    def _author_of(self, name: str) -> _Author:
        is_by_git = self._is_in_index(name) and (self._is_moved(name) or self._is_restored(name))
        return _Author(OUTSIDE, {GRADE: "git"}) if is_by_git else self._author

    def _draft(self, name: str, content: FileContent | None, version: int, author: _Author) -> Write:
        detail = {**author.detail, **(content.detail if content is not None else {})}
        text = None if content is None else content.text
        call = CallContext(author.actor, CHANGE)
        return call.write(REPO, self._recorder.path(name), text, "", version, detail)


def _change(name: str, head: Row | None, content: FileContent | None, drafts: tuple[Write, ...]) -> _Change:
    blobs = (content.data,) if content is not None and content.data is not None else ()
    return _Change(name, head, content.stamp if content is not None else None, drafts, blobs, content)


def _identify(folder: str) -> tuple[int, int]:
    found = os.stat(folder)
    return found.st_dev, found.st_ino


def _is_same_text(one: str, other: str) -> bool:
    """Compare two texts without line ends and byte order marks, which clients keep and do not report."""
    return one == other or _plain(one) == _plain(other)


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _describe_moves(git: GitTree, moves: Sequence[HeadMove]) -> _Moves:
    """Return who made the files of a tree, according to ``moves``."""
    committed: set[str] = set()
    for move in moves:
        if move.is_commit:
            committed |= git.list_committed("" if move.is_first else move.old, move.new)
    return _Moves(not moves or not all(each.is_commit for each in moves), frozenset(committed))


def _author(windows: Sequence[Window]) -> _Author:
    """Return the author of changes while the commands of ``windows`` run."""
    agents = sorted({each.agent for each in windows})
    calls: list[Json] = [*dict.fromkeys(each.call for each in windows)]
    grade: Grade = "external" if not agents else "window" if len(agents) == 1 else "shared"
    if grade == "external":
        return _Author(OUTSIDE, {GRADE: grade})
    if grade == "window":
        return _Author(agents[0], {GRADE: grade, CLIENT_CALL_ID: calls[-1]})
    return _Author(OUTSIDE, {GRADE: grade, CANDIDATES: [*agents]})


def _batches(changes: Iterable[_Change]) -> Iterator[list[_Change]]:
    batch: list[_Change] = []
    size = 0
    for change in changes:
        batch.append(change)
        size += change.size
        if len(batch) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@contextmanager
def _access_errors(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        shown = validation.escape_unstorable(name, 200)
        raise FolderDenied(path=shown, reason=error.strerror or "") from error


def _is_old(stamp: FileStamp) -> bool:
    return time.time_ns() - stamp.changed > _SAVING_SECONDS * 1e9


def _parts(name: str) -> Parts:
    return tuple(name.split("/"))
