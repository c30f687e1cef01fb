"""Commits of selected files of a working tree. The work of others in the tree and the index is left alone."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from watchroom.errors import GitBusy, GitError, InvalidBranch
from watchroom.features.trees.git_process import run_git
from watchroom.platform.child_process import ChildResult

_NO_SPARSE: Final = ("core.sparseCheckout=false", "core.sparseCheckoutCone=false", "index.sparse=false")
"""Settings for an index that contains all files."""
_ENCODING: Final = "i18n.commitEncoding=UTF-8"
_INDEX: Final = "watchroom-index-"
_LOCK: Final = "watchroom-lock-"
_READY: Final = "watchroom-ready-"
"""Prefixes of files in the git folder during a commit. The `_process_name` follows.

- ``INDEX``: the index after the commit, while it is written.
- ``LOCK``: a hard link to the lock of the index. It identifies a lock that a killed process left behind.
- ``READY``: a hard link to the lock when it is the complete new index. The name contains the commit's id.
"""
_TOKEN: Final = secrets.token_hex(4)
"""Distinguishes this process from earlier processes with the same id."""
_MERGEABLE: Final = ("100644", "100755")
_MAX_CONFLICTS: Final = 127
"""The exit code of ``git merge-file`` for this many conflicts or more. Larger codes are errors."""


class FileState(NamedTuple):
    """A file in a working tree. ``data``: its bytes, or the target of a symbolic link."""

    data: bytes
    executable: bool = False
    is_link: bool = False


class CommitRequest(NamedTuple):
    """The arguments of `watchroom.features.trees.git.GitTree.commit_files`."""

    files: Mapping[str, FileState | None]
    message: str
    author: str
    branch: str | None
    parent: str


class _State(Protocol):
    """The parts of a tree's state that matter for a commit."""

    @property
    def head(self) -> str: ...
    @property
    def branch(self) -> str: ...
    @property
    def operation(self) -> str: ...
    @property
    def is_index_locked(self) -> bool: ...


class _Entry(NamedTuple):
    """A file in an index: its mode, and the id of its blob."""

    mode: str
    blob: str


class GitWriter:
    """Writes commits in the working tree at ``folder`` with the git folder ``git``."""

    def __init__(self, folder: str, git: str) -> None:
        self._folder = folder
        self._git = git

    def commit(self, request: CommitRequest, read_state: Callable[[], _State]) -> str:
        """Make the commit of ``request`` and return its id. See `GitTree.commit_files`."""
        if read_state().is_index_locked:
            self.recover(read_state)
        _check(read_state(), request, is_locked_by_us=False)
        if request.branch is not None:
            self._check_branch(request.branch)
        with tempfile.TemporaryDirectory(prefix="watchroom-") as scratch:
            tree, entries = self._build_tree(request.files, request.parent, scratch)
            if tree == self._tree_of(request.parent):
                return request.parent
            commit = self.write_commit(tree, request.message, request.author, request.parent)
            if request.branch is not None:
                self._move(f"refs/heads/{request.branch}", commit, "", request)
                return commit
            with self.locked_index() as lock:
                state = read_state()
                _check(state, request, is_locked_by_us=True)
                ref = _ref_of(state)
                index = self._update_index(entries, request.parent, scratch)
                with self._named(index, f"{_READY}{_process_name()}-{commit}"):
                    os.replace(index, lock)
                    self._move(ref, commit, request.parent, request)
                    os.replace(lock, os.path.join(self._git, "index"))
            return commit

    def recover(self, read_state: Callable[[], _State]) -> None:
        """Finish or undo the commit of a process that was killed during it."""
        lock = os.path.join(self._git, "index.lock")
        names = [each for each in os.listdir(self._git) if each.startswith((_INDEX, _LOCK, _READY))]
        # In this order, a complete index is examined before its lock is removed.
        for name in sorted(names, reverse=True):
            path = os.path.join(self._git, name)
            fields = name.split("-")[2:]
            if len(fields) != 3 or _is_running(*fields[:2]):
                continue
            with contextlib.suppress(FileNotFoundError):
                if os.path.samefile(path, lock):
                    is_made = name.startswith(_READY) and read_state().head == fields[2]
                    os.replace(lock, os.path.join(self._git, "index")) if is_made else os.unlink(lock)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def write_tree(self, files: Mapping[str, FileState | None], parent: str) -> str:
        """Write the tree of the commit ``parent`` with ``files`` changed, and return its id."""
        with tempfile.TemporaryDirectory(prefix="watchroom-") as scratch:
            return self._build_tree(files, parent, scratch)[0]

    def _build_tree(
        self, files: Mapping[str, FileState | None], parent: str, scratch: str
    ) -> tuple[str, dict[str, _Entry | None]]:
        """Write the tree of a commit. Return its id, and the entries of ``files``."""
        # Git itself adds the files, from a folder that has only them. So filters, line ends and attributes
        # are those of the commit, even if others have changed them in the working tree.
        place = os.path.join(scratch, "tree")
        os.mkdir(place)
        index = os.path.join(scratch, "index")

        def run(*arguments: str, given: bytes = b"") -> ChildResult:
            variables = {"GIT_DIR": self._git, "GIT_WORK_TREE": place, "GIT_INDEX_FILE": index}
            return run_git(arguments, folder=place, variables=variables, settings=_NO_SPARSE, given=given)

        run("read-tree", *([parent] if parent else ["--empty"]))
        deleted = [path for path, state in files.items() if state is None]
        written = {path: state for path, state in files.items() if state is not None}
        if deleted:
            run("update-index", "--force-remove", "-z", "--stdin", given=_join(deleted))
        for path, state in written.items():
            _write_file(place, path, state)
        if written:
            run("update-index", "--add", "--replace", "-z", "--stdin", given=_join(written))
        entries = _parse_entries(run("ls-files", "--stage", "-z").output)
        missing = [path for path in written if path not in entries]
        if missing:
            raise GitError(reason=f"git update-index: {missing[0]}")
        return _line(run("write-tree")), {path: entries.get(path) for path in files}

    def write_commit(self, tree: str, message: str, author: str, parent: str) -> str:
        """Write a commit of ``tree``, and return its id. See `GitTree.commit_files`."""
        name, _, email = author.partition(" <")
        variables = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email.removesuffix(">")}
        parents = ("-p", parent) if parent else ()
        text = message.strip("\n") + "\n"
        return _line(
            self._run(
                ("commit-tree", tree, *parents, "-F", "-"),
                variables if author else {},
                given=text.encode("utf-8", "surrogateescape"),
            )
        )

    def _tree_of(self, commit: str) -> str:
        return _line(self._run(("rev-parse", "--verify", f"{commit}^{{tree}}"))) if commit else ""

    def _check_branch(self, branch: str) -> None:
        ref = f"refs/heads/{branch}"
        if branch.startswith("-") or self._run(("check-ref-format", ref), accepted=(0, 1)).status:
            raise InvalidBranch(branch=branch, rule="branch_name")
        if self._run(("show-ref", "--verify", "--quiet", ref), accepted=(0, 1)).status == 0:
            raise InvalidBranch(branch=branch, rule="branch_taken")

    def _move(self, ref: str, commit: str, before: str, request: CommitRequest) -> None:
        """Move ``ref`` from the commit ``before`` to ``commit``."""
        subject = request.message.strip().partition("\n")[0]
        command = ("update-ref", "-m", f"commit: {subject}", ref, commit, before)
        done = self._run(command, accepted=None)
        if done.status == 0:
            return
        now = _line(self._run(("rev-parse", "--verify", "--quiet", ref), accepted=(0, 1)))
        if now == before:
            raise GitError(reason=done.last_error or "git update-ref")
        if request.branch is not None:
            raise InvalidBranch(branch=request.branch, rule="branch_taken")
        raise GitBusy(rule="git_moved")

    @contextlib.contextmanager
    def locked_index(self) -> Iterator[str]:
        """Hold the lock of the index, and yield its path."""
        lock = os.path.join(self._git, "index.lock")
        own = os.path.join(self._git, f"{_LOCK}{_process_name()}-{secrets.token_hex(8)}")
        os.close(os.open(own, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            os.link(own, lock)
            try:
                yield lock
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(lock)
                raise
        except FileExistsError as error:
            raise GitBusy(rule="git_locked") from error
        finally:
            os.unlink(own)

    def name_index(self) -> str:
        """Return the path of a new index that `recover` removes if this process is killed."""
        return os.path.join(self._git, f"{_INDEX}{_process_name()}-{secrets.token_hex(8)}")

    def replace_index(self, lock: str, index: str, commit: str) -> None:
        """Replace the index by the file ``index``, which belongs to ``commit``, and release its ``lock``."""
        with self._named(index, f"{_READY}{_process_name()}-{commit}"):
            os.replace(index, lock)
            os.replace(lock, os.path.join(self._git, "index"))

    @contextlib.contextmanager
    def _named(self, path: str, name: str) -> Iterator[None]:
        """Give the file at ``path`` the additional ``name`` in the git folder, as a hard link."""
        other = os.path.join(self._git, name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(other)
        os.link(path, other)
        try:
            yield
        finally:
            os.unlink(other)

    def _update_index(self, entries: Mapping[str, _Entry | None], parent: str, scratch: str) -> str:
        """Return the path of a copy of the index with the committed ``entries``."""
        index = self.name_index()
        real = os.path.join(self._git, "index")
        variables = {"GIT_INDEX_FILE": index}
        try:
            with contextlib.suppress(FileNotFoundError):
                # Keep the times: git uses them to detect files that may have changed since.
                shutil.copy2(real, index)
            staged = _parse_entries(self._run(("ls-files", "--stage", "-z"), variables).output)
            before = self._entries_of(parent, list(entries))
            lines = []
            for path, entry in entries.items():
                now = staged.get(path)
                wanted = (
                    entry if now == before.get(path) else self._merge(now, before.get(path), entry, scratch)
                )
                if wanted is not None and wanted != now:
                    lines.append(_index_line(path, wanted))
                elif wanted is None and now is not None:
                    # The mode 0 removes the file, whatever its blob.
                    lines.append(_index_line(path, now._replace(mode="0")))
            command = ("update-index", "-z", "--index-info")
            self._run(command, variables, given=b"".join(lines))
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(index)
            raise
        return index

    def _entries_of(self, commit: str, paths: Sequence[str]) -> dict[str, _Entry]:
        if not commit:
            return {}
        # List all files, because the paths can be too many for a command line.
        printed = self._run(("ls-tree", "-r", "-z", commit)).output
        wanted = {os.fsencode(each) for each in paths}
        found = {}
        for record in printed.split(b"\0"):
            fields, _, path = record.partition(b"\t")
            if path in wanted:
                mode, _, blob = fields.decode("ascii").split()
                found[os.fsdecode(path)] = _Entry(mode, blob)
        return found

    def _merge(
        self, staged: _Entry | None, before: _Entry | None, committed: _Entry | None, scratch: str
    ) -> _Entry | None:
        """Return the entry with the ``committed`` changes and the ``staged`` changes that do not conflict
        with them."""
        if staged is None or committed is None or staged == committed:
            return committed
        sides = (staged, before, committed)
        if any(each is not None and each.mode not in _MERGEABLE for each in sides):
            return committed
        names = []
        for number, each in enumerate(sides):
            names.append(os.path.join(scratch, f"side{number}"))
            with open(names[-1], "wb") as file:
                file.write(b"" if each is None else self._run(("cat-file", "blob", each.blob)).output)
        done = self._run(("merge-file", "-p", "--theirs", *names), accepted=None)
        if not 0 <= done.status <= _MAX_CONFLICTS:
            return committed
        blob = _line(self._run(("hash-object", "-w", "--stdin"), given=done.output))
        is_staged_mode = before is not None and staged.mode != before.mode
        return _Entry(staged.mode if is_staged_mode else committed.mode, blob)

    def _run(
        self,
        arguments: Sequence[str],
        variables: Mapping[str, str] | None = None,
        *,
        given: bytes = b"",
        accepted: Sequence[int] | None = (0,),
    ) -> ChildResult:
        return run_git(
            arguments,
            folder=self._folder,
            variables={"GIT_DIR": self._git, "GIT_WORK_TREE": self._folder, **(variables or {})},
            settings=(_ENCODING,),
            given=given,
            accepted=accepted,
        )


def _check(state: _State, request: CommitRequest, *, is_locked_by_us: bool) -> None:
    """Raise `GitBusy` if a commit is not possible in this state."""
    if state.operation:
        raise GitBusy(rule="git_operation")
    if state.is_index_locked and not is_locked_by_us:
        raise GitBusy(rule="git_locked")
    if state.head != request.parent:
        raise GitBusy(rule="git_moved")


def _process_name() -> str:
    return f"{os.getpid()}-{_TOKEN}"


def _is_running(process: str, token: str) -> bool:
    """Return whether the process with this `_process_name` may be running."""
    if not process.isdecimal() or int(process) == os.getpid():
        return token == _TOKEN
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _ref_of(state: _State) -> str:
    if not state.branch:
        return "HEAD"
    return state.branch if state.branch.startswith("refs/") else f"refs/heads/{state.branch}"


def _write_file(folder: str, path: str, state: FileState) -> None:
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise GitError(reason=f"invalid path: {path}")
    target = os.path.join(folder, *parts)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if state.is_link:
        os.symlink(os.fsdecode(state.data), target)
        return
    mode = 0o777 if state.executable else 0o666
    with open(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
        file.write(state.data)


def _join(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(each) + b"\0" for each in paths)


def _index_line(path: str, entry: _Entry) -> bytes:
    return f"{entry.mode} {entry.blob}\t".encode() + os.fsencode(path) + b"\0"


def _parse_entries(printed: bytes) -> dict[str, _Entry]:
    """Return the entries that ``git ls-files --stage -z`` has printed."""
    found = {}
    for record in os.fsdecode(printed).split("\0"):
        if record:
            fields, _, path = record.partition("\t")
            mode, blob, _ = fields.split(" ")
            found[path] = _Entry(mode, blob)
    return found


def _line(done: ChildResult) -> str:
    return done.output.decode("ascii", "replace").strip()
