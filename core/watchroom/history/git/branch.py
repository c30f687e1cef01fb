"""Writes a branch for a pull request: the changes of a task's files, as commits on top of a base.

Only objects and one ref are written. No work tree, index or checked-out branch is touched.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from watchroom.errors import InvalidRepository, TaskNotFound
from watchroom.features.tasks.ignored_files import ignored_among
from watchroom.history.git.export import LeftOut, Reason, read_chunks
from watchroom.history.git.process import FastImport, GitRepository
from watchroom.history.git.stream import (
    FILE_MODES,
    ROW,
    UNTIL,
    CommitText,
    FileChange,
    is_safe_path,
    one_line,
    render_commit,
    render_rows,
    session_of,
    subject,
    trailers_of,
)
from watchroom.kernel.checkout.rendering import verified_content
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.file_versions import blob_of, is_escaped_path, is_executable, is_text
from watchroom.kernel.rules.row_files import find_row_flaw
from watchroom.model import Row
from watchroom.validation import escape_unstorable

TASK: Final = "Watchroom-Task"
"""The trailer with the task of a commit."""
COMMIT: Final = "commit"
"""The key in the detail of an imported file's row: the commit from which it was imported."""
_INCOMING: Final = "refs/watchroom/incoming-branch"
_MAX_NAME: Final = 500
_MAX_LISTED: Final = 1000
_MAX_ASKED: Final = 100
_MAX_ROWS: Final = 500
_MAX_LINES: Final = 40
_SUBMODULE: Final = "160000"


class Branched(NamedTuple):
    """The result of writing a branch.

    - ``commits``: the number of commits that were added.
    - ``base``: the parent of the first added commit, empty if there is none.
    - ``head``: the branch's newest commit, empty if there was nothing to write.
    - ``repository``: the path of the repository.
    - ``skipped``: the number of versions that were left out.
    - ``left_out``: the first 1,000 of these versions.
    """

    commits: int
    base: str
    head: str
    repository: str
    skipped: int
    left_out: Sequence[LeftOut]


def write_branch(journal: Journal, task: str, name: str, *, path: str = "", base: str = "") -> Branched:
    """Create the branch ``name`` with the changes of the files of ``task``, or add new changes to it.

    - ``path``: the repository, default the repository in the task's folder.
    - ``base``: the commit at which a new branch begins. The default is the imported commit, else the HEAD of
      the task's own repository, else none.

    Raise `TaskNotFound`, `GitError`, `JournalError`; `InvalidRepository` if there is no repository, the
    branch has other content or is checked out, or the name or the base is invalid.
    """
    first = journal.version("task", task, 1)
    if first is None:
        raise TaskNotFound(task=escape_unstorable(task, 100))
    folder = json.loads(journal.content(first.seq) or "{}").get("workspacePath", "")
    repository = GitRepository.find(path or folder)
    ref = check_ref(repository, name)
    head = repository.head(ref) or ""
    after = first.seq
    begin = head
    if head:
        trailers = trailers_of(repository.message(head))
        if trailers.get(TASK) != task or not trailers.get(UNTIL, "").isdecimal():
            raise _unfit(name, "branch_exists")
        after = int(trailers[UNTIL])
    else:
        begin = _find_base(journal, repository, task, base, is_own=not path)
    if repository.head(_INCOMING):
        repository.update_refs([f"delete {_INCOMING}"])
    with FastImport(repository) as stream:
        branch = _Branch(journal, stream, repository, task, begin)
        branch.run(after)
    new = repository.head(_INCOMING)
    if new:
        old = head or "0" * len(new)
        repository.update_refs([f"update {ref} {new} {old}", f"delete {_INCOMING}"])
    return Branched(branch.commits, begin, new or head, repository.path, branch.skipped, branch.left_out)


def check_ref(repository: GitRepository, name: str) -> str:
    """Return the ref of the branch ``name`` of ``repository``. Raise `GitError`, and `InvalidRepository` if
    the name is invalid or the branch is checked out."""
    ref = f"refs/heads/{name}"
    if name.startswith("-") or repository.ask("check-ref-format", ref, absent=None) is None:
        raise _unfit(name, "branch_name")
    is_bare = repository.ask("rev-parse", "--is-bare-repository") == "true"
    unborn = "" if is_bare else repository.ask("symbolic-ref", "--quiet", "HEAD", absent=None)
    if ref == unborn or repository.ask("for-each-ref", "--format=%(worktreepath)", ref):
        raise _unfit(name, "checked_out")
    return ref


def _find_base(journal: Journal, repository: GitRepository, task: str, given: str, *, is_own: bool) -> str:
    """Return the commit at which the branch begins, empty if there is none."""
    if given:
        base = repository.head(given)
        if base is None:
            raise _unfit(given, "no_commit")
        return base
    for head in islice(journal.heads("file", f"{task}/"), _MAX_ASKED):
        row = journal.version("file", head.path, 1)
        commit = row.detail.get(COMMIT) if row is not None else None
        if isinstance(commit, str) and commit.isalnum() and (found := repository.head(commit)):
            return found
    return (repository.head("HEAD") or "") if is_own else ""


def _read_tree(repository: GitRepository, commit: str) -> dict[str, tuple[str, str]]:
    """Return the mode and the id of each file of ``commit``, by path."""
    if not commit:
        return {}
    tree = {}
    for entry in repository.read("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        what, tab, path = entry.partition(b"\t")
        if tab:
            mode, _, identity = what.decode().split()
            tree[path.decode("utf-8", "surrogateescape")] = (mode, identity)
    return tree


class _Branch:
    """Writes the changes of the files of ``task`` as commits on top of the commit ``begin``."""

    def __init__(
        self, journal: Journal, stream: FastImport, repository: GitRepository, task: str, begin: str
    ) -> None:
        self._journal = journal
        self._stream = stream
        self._repository = repository
        self._ignored: dict[str, bool] = {}
        """For each path outside of the tree, whether git ignores it."""
        self._task = task
        self._parent = begin
        self._tree = _read_tree(repository, begin)
        self._hash = "sha256" if len(begin) > 40 else "sha1"
        self.commits = 0
        self.skipped = 0
        self.left_out: list[LeftOut] = []

    def run(self, after: int) -> None:
        """Write commits of the changes after row ``after``.

        If all versions were left out, write one commit without files that says so. The branch then exists,
        and the next run continues from there.
        """
        for rows in self._runs(after):
            self._commit(rows)
        if self.left_out and not self.commits:
            self._commit_left_out()

    def _commit_left_out(self) -> None:
        last = self.left_out[-1].row
        lines = [f"- {each.row.path.partition('/')[2]}: {each.reason}" for each in self.left_out]
        if len(lines) > _MAX_LINES:
            lines = [*lines[:_MAX_LINES], f"- … {self.skipped - _MAX_LINES}"]
        trailers = [(TASK, self._task), (UNTIL, str(last.seq))]
        text = CommitText(
            last.actor, last.time, "No files: all changes are left out", "\n".join(lines), trailers
        )
        self._stream.write(render_commit(_INCOMING, text, (), parent=self._parent))
        self._parent = ""
        self.commits += 1

    def _runs(self, after: int) -> Iterator[list[Row]]:
        """Yield the versions of the task's files, in runs of one session, or of one author without a
        session."""
        run: list[Row] = []
        prefix = f"{self._task}/"
        for rows in read_chunks(self._journal, after, self._journal.last_seq()):
            for row in rows:
                if row.zone != "file" or row.version is None or not row.path.startswith(prefix):
                    continue
                is_same = run and (row.actor, session_of(row)) == (run[-1].actor, session_of(run[-1]))
                if run and (not is_same or len(run) >= _MAX_ROWS):
                    yield run
                    run = []
                run.append(row)
        if run:
            yield run

    def _commit(self, rows: Sequence[Row]) -> None:
        heads = {row.path.partition("/")[2]: row for row in rows}
        self._ask_ignored(heads)
        changes = [change for path, row in heads.items() if (change := self._change(path, row)) is not None]
        if not changes:
            return
        changed = {change.path for change in changes}
        lines = [f"- {subject(row, path)}" for path, row in heads.items() if path in changed]
        trailers = [(ROW, render_rows([row.seq for row in rows]))]
        if session := session_of(rows[0]):
            trailers.append(("Watchroom-Session", session))
        trailers += [(TASK, self._task), (UNTIL, str(rows[-1].seq))]
        first_line = subject(rows[-1], rows[-1].path.partition("/")[2])
        body = "\n".join(lines) if len(lines) > 1 else ""
        text = CommitText(rows[0].actor, rows[-1].time, first_line, body, trailers)
        self._stream.write(render_commit(_INCOMING, text, changes, parent=self._parent))
        self._parent = ""
        self.commits += 1

    def _change(self, path: str, row: Row) -> FileChange | None:
        """Return the change that ``row`` makes in the tree, None if it makes none."""
        reason = self._reason_against(path) or ("unsafe_path" if find_row_flaw(row) is not None else None)
        if reason is not None:
            self._leave_out(row, reason)
            return None
        if row.deleted:
            return FileChange(path, None) if self._tree.pop(path, None) else None
        if path not in self._tree and self._ignored.get(path):
            self._leave_out(row, "ignored")
            return None
        data = verified_content(self._journal, row) if is_text(row) else self._bytes_of(row)
        if data is None:
            self._leave_out(row, "damaged" if is_text(row) else "not_kept")
            return None
        known, identity = self._tree.get(path, ("", ""))
        mode = FILE_MODES[is_executable(row)]
        new = hashlib.new(self._hash, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        if (known, identity) == (mode, new):
            return None
        self._tree[path] = (mode, new)
        return FileChange(path, data, mode)

    def _reason_against(self, path: str) -> Reason | None:
        """Return the reason why the file at ``path`` cannot be in the branch, None if it can."""
        if is_escaped_path(path):
            return "not_unicode"
        if not is_safe_path(path):
            return "unsafe_path"
        # A submodule is a commit, not a file. Files at its place would remove it.
        parts = path.split("/")
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
        if any(self._tree.get(each, ("",))[0] == _SUBMODULE for each in above):
            return "submodule"
        return None

    def _ask_ignored(self, paths: Iterable[str]) -> None:
        """Ask git which of ``paths`` it ignores, because earlier versions of Watchroom recorded ignored
        files."""
        asked = [
            path
            for path in paths
            if path not in self._tree and path not in self._ignored and is_safe_path(path)
        ]
        ignored = ignored_among(self._repository.path, asked)
        self._ignored |= {path: path in ignored for path in asked}

    def _bytes_of(self, row: Row) -> bytes | None:
        blob = blob_of(row)
        return self._journal.blobs.find(blob.sha256) if blob is not None else None

    def _leave_out(self, row: Row, reason: Reason) -> None:
        self.skipped += 1
        if len(self.left_out) < _MAX_LISTED:
            self.left_out.append(LeftOut(row, reason))


def _unfit(what: str, rule: str) -> InvalidRepository:
    return InvalidRepository(path=one_line(what, _MAX_NAME), rule=rule)
