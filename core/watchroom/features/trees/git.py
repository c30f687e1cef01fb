"""A working tree of a git repository: its state, its index, its changes, and commits of some files.

Paths in a tree are texts with ``/``. Bytes that are not UTF-8 are escaped as `os.fsdecode` does.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.errors import GitError
from watchroom.features.tasks.ignored_files import ignored_among
from watchroom.features.trees.git_process import SECONDS, is_timeout, reason_of, run_git
from watchroom.features.trees.git_writes import CommitRequest, FileState, GitWriter
from watchroom.features.trees.index_lock import IndexLock
from watchroom.kernel.rules.file_versions import Blob
from watchroom.platform.child_process import ChildResult
from watchroom.platform.disk import FileStamp
from watchroom.validation import is_session_id

__all__ = [
    "MAX_BLOB_BYTES",
    "ODD_PATH",
    "Conversion",
    "FileState",
    "GitState",
    "GitTree",
    "IndexEntry",
    "IndexStamp",
    "disable_filters",
    "find_common",
    "parse_lfs_pointer",
]

MAX_BLOB_BYTES: Final = 10 * 1024 * 1024
"""Size of the largest file that `GitTree.read_blobs` returns, in bytes."""
ID_FILE: Final = "watchroom-tree"
"""The file with a tree's id, in the tree's own git folder."""
_MAX_ID_NAME: Final = 40
_MAX_SMALL_FILE: Final = 4096
_MAX_ARGUMENT_PATHS: Final = 200
"""Maximum number of paths that are passed as arguments. For more paths, git lists all files."""
_MAX_BATCH_BYTES: Final = 32 * 1024 * 1024
"""Maximum total size of the blobs in one call of ``git cat-file``, in bytes."""
_ABSENT: Final = ("S", "s")
_LINK_MODE: Final = 0o120000
_SUBMODULE_MODE: Final = 0o160000
ODD_PATH: Final = re.compile(r"[\n\r]|^[ \t]")
"""Matches paths that cannot be in a line of the input of ``git cat-file``."""
_STATUS_SECONDS: Final = 10.0
"""Timeout in seconds for git to list changed files with filters. A filter that takes longer is stuck."""
_RETRY_SECONDS: Final = 600.0
"""Seconds for which filters do not apply to that list after the timeout."""
_NO_FILTER: Final = (b"unspecified", b"unset", b"set")
"""Values of the attribute ``filter`` that name no filter."""
_FAILED_FILTER: Final = re.compile(rb"clean filter '([^'\n]+)' failed")
_REFTABLE_HEAD: Final = b"ref: refs/heads/.invalid"
_OPERATIONS: Final = (
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
    ("BISECT_LOG", "bisect"),
)
"""Files in the git folder of a tree that show an unfinished operation, and the operation."""
_BRANCH_FILES: Final = ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")
_CACHED: Final = re.compile(
    rb"([^\0]+)\0  ctime: (\d+):(\d+)\n  mtime: [^\n]*\n  dev: \d+\tino: (\d+)\n[^\n]*\n[^\n]*\n"
)
"""An entry that ``git ls-files --debug -z`` prints. Its inode has 32 bits."""
_LFS_POINTER: Final = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*"
    rb"oid sha256:([0-9a-f]{64})\nsize ([0-9]{1,18})\n"
)


Conversion: TypeAlias = Literal["text", "auto", "none"]
"""The conversion of line ends when git adds a file: always, only in files that look like text, or never."""


class IndexStamp(NamedTuple):
    """A stamp of the index file. It differs after each change of the index."""

    mtime_ns: int
    size: int
    inode: int


class GitState(NamedTuple):
    """The state of a working tree.

    - ``head``: the id of the commit; empty if there is none.
    - ``branch``: empty if HEAD is detached.
    - ``index_stamp``: None if there is no index.
    - ``stash``: the id of the newest stash, which all trees share; empty if there is none.
    - ``operation``: ``rebase``, ``am``, ``merge``, ``cherry-pick``, ``revert`` or ``bisect`` if one is
      unfinished; otherwise empty.
    - ``is_index_locked``: a git command is changing the index, or was killed.
    """

    head: str
    branch: str
    index_stamp: IndexStamp | None
    stash: str
    operation: str
    is_index_locked: bool


class IndexEntry(NamedTuple):
    """A path in the index.

    - ``mode``: git's mode, such as ``0o100755``.
    - ``blob``: the id of its blob; empty while a merge of the path has conflicts.
    - ``is_absent``: the sparse checkout excludes the file.
    """

    mode: int
    blob: str
    is_absent: bool = False

    @property
    def is_submodule(self) -> bool:
        """Whether the path is another repository."""
        return self.mode == _SUBMODULE_MODE

    @property
    def is_link(self) -> bool:
        """Whether the path is a symbolic link."""
        return self.mode == _LINK_MODE

    @property
    def executable(self) -> bool:
        """Whether the file can be executed."""
        return self.mode == 0o100755


class GitTree:
    """A working tree.

    - ``folder``: its real path.
    - ``git``: its own git folder: ``.git``, or ``.git/worktrees/NAME`` of a linked tree.
    - ``common``: the git folder that all trees of the repository share.

    tree = GitTree.find("/home/me/project/src")
    if tree is not None:
        changed = tree.list_changed()
    """

    def __init__(self, folder: str, git: str, common: str) -> None:
        self.folder = folder
        self.git = git
        self.common = common
        self._packed: tuple[IndexStamp, bytes] | None = None
        self._unfiltered_until = -math.inf
        """When filters apply again to the list of changed files, by `time.monotonic`."""
        self._lock = IndexLock(git)

    @classmethod
    def find(cls, folder: str) -> GitTree | None:
        """Return the working tree that contains ``folder``, None if there is none.

        Raise `GitError` if git refuses the repository, for example because of its owner, and `GitMissing`.
        """
        asked = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
        found = _locate(folder, asked)
        if found is None:
            return None
        top, git, common = found
        return cls(*(os.path.realpath(os.path.join(folder, each)) for each in (top, git, common)))

    def tree_id(self) -> str:
        """Return the id of this tree. Create it if the tree has none.

        The id is in a file in the tree's own git folder, because git reuses the names of removed trees.
        Raise OSError if the file cannot be written.
        """
        path = os.path.join(self.git, ID_FILE)
        found = self.read_id()
        if is_session_id(found):
            return found
        if found:
            os.unlink(path)
        # Without dots, because paths that begin with ``land.`` are those of landing conflicts.
        name = re.sub(r"[^A-Za-z0-9_-]", "-", os.path.basename(self.folder)).strip("-_")
        fresh = f"{name[:_MAX_ID_NAME] or 'tree'}-{secrets.token_hex(4)}"
        written = f"{path}.{secrets.token_hex(4)}"
        with open(written, "xb") as file:
            file.write(fresh.encode() + b"\n")
        try:
            # A hard link never has half of the text, and fails if another process was faster.
            with contextlib.suppress(FileExistsError):
                os.link(written, path)
        finally:
            os.unlink(written)
        return self.read_id() or fresh

    def read_id(self) -> str:
        """Return the id of this tree, empty if it has none."""
        return _read_small(os.path.join(self.git, ID_FILE)).decode("ascii", "replace").strip()

    def forget_id(self) -> None:
        """Remove the id of this tree."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.git, ID_FILE))

    def read_state(self) -> GitState:
        """Return the state of this tree. Git is only started for repositories with reftables."""
        text = _read_small(os.path.join(self.git, "HEAD")).strip()
        if not text or text == _REFTABLE_HEAD or os.path.islink(os.path.join(self.git, "HEAD")):
            branch, head, stash = self._ask_refs()
        else:
            target = text.removeprefix(b"ref:").strip() if text.startswith(b"ref:") else b""
            branch = os.fsdecode(target).removeprefix("refs/heads/")
            head = self._resolve(target) if target else text.decode("ascii", "replace")
            stash = self._resolve(b"refs/stash")
        exists = os.path.lexists
        operation = next((name for file, name in _OPERATIONS if exists(os.path.join(self.git, file))), "")
        stamp = _stamp(os.path.join(self.git, "index"))
        return GitState(head, branch, stamp, stash, operation, exists(os.path.join(self.git, "index.lock")))

    def read_operated_branch(self) -> str:
        """Return the branch that an unfinished rebase or bisection will move or check out again. Empty if
        there is no such operation. Until the operation ends, HEAD is detached."""
        for name in _BRANCH_FILES:
            found = os.fsdecode(_read_small(os.path.join(self.git, name)).strip())
            if found:
                return found.removeprefix("refs/heads/")
        return ""

    def is_changing(self) -> bool:
        """Return whether git is changing files or the index, see `IndexLock.is_in_use`."""
        return self._lock.is_in_use()

    def wait_for_git(self, seconds: float) -> bool:
        """Wait at most ``seconds`` until `is_changing` is False. Return whether it is."""
        return self._lock.wait(seconds)

    def list_index(self) -> dict[str, IndexEntry]:
        """Return the entries of the index by path. Raise `GitError`."""
        return _parse_index(self._run("ls-files", "-v", "--stage", "-z").output)

    def find_compared(self, files: Mapping[str, FileStamp]) -> set[str]:
        """Return the ``files`` whose stamps equal the stamps in the index: git has written or compared them
        since their last change. Raise `GitError`."""
        if not files:
            return set()
        names = files if len(files) <= _MAX_ARGUMENT_PATHS else ()
        printed = self._run("ls-files", "--debug", "-z", "--", *names).output
        found = set()
        for path, seconds, nanoseconds, inode in _CACHED.findall(printed):
            stamp = files.get(os.fsdecode(path))
            changed = int(seconds) * 1_000_000_000 + int(nanoseconds)
            if stamp is not None and (stamp.changed, stamp.inode & 0xFFFF_FFFF) == (changed, int(inode)):
                found.add(os.fsdecode(path))
        return found

    def list_committed(self, old: str, new: str) -> set[str]:
        """Return the paths that differ between two commits. ``old``: empty for no commit. Raise
        `GitError`."""
        asked = ("diff-tree", "-r", "--name-only", "--no-renames", "-z")
        arguments = (*asked, old, new) if old else (*asked, "--root", "--no-commit-id", new)
        printed = self._run(*arguments).output
        return {os.fsdecode(each) for each in printed.split(b"\0") if each}

    def list_staged(self) -> list[str]:
        """Return the paths whose entries in the index differ from HEAD. Raise `GitError`."""
        printed = self._run("diff", "--cached", "--name-only", "--no-renames", "-z").output
        return [os.fsdecode(each) for each in printed.split(b"\0") if each]

    def list_changed(self) -> list[str]:
        """Return the paths of the files that differ from the index, and of untracked files that git does not
        ignore.

        Deleted files are included. Submodules, nested repositories, and changes that are only staged are not.
        Git skips files that are marked as unchanged (``update-index --assume-unchanged``). After a filter has
        taken too long, no filter applies for ten minutes, and unchanged files with filters can be included.
        Raise `GitError`.
        """
        asked = (
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=all",
        )
        done: ChildResult | None = None
        if time.monotonic() >= self._unfiltered_until:
            try:
                done = self._run(*asked, accepted=None, timeout=_STATUS_SECONDS)
            except GitError as error:
                if not is_timeout(error):
                    raise
                self._unfiltered_until = time.monotonic() + _RETRY_SECONDS
        if done is None:
            done = self._run(*asked, accepted=None, settings=disable_filters(self._list_all_filters()))
        failed = _FAILED_FILTER.search(done.errors) if done.status else None
        if failed is not None:
            # The filter's program is missing, and git would compare nothing. Without the filter, files of LFS
            # are compared as texts.
            off = disable_filters([failed[1].decode("utf-8", "replace")])
            done = self._run(*asked, accepted=None, settings=off)
        if done.status:
            raise GitError(reason=reason_of(done))
        printed = done.output
        return sorted({each for record in printed.split(b"\0") for each in _changed_path(record)})

    def read_blobs(
        self,
        paths: Iterable[str],
        revision: str = ":",
        *,
        entries: Mapping[str, IndexEntry] | None = None,
        left_out: Collection[str] = (),
    ) -> dict[str, bytes | None]:
        """Return the bytes that git would check out at ``paths``, after line end conversion and filters.

        - ``revision``: ``:`` for the index, or a commit with a colon, such as ``HEAD:``.
        - ``entries``: the result of `list_index` or `list_tree`, to save a call of git.
        - ``left_out``: the filters that do not apply.

        The result has None for a path that is not in the revision, is a submodule, or is larger than 10 MB. A
        symbolic link has its target as content. A file of Git LFS has its pointer (see `parse_lfs_pointer`).
        A file whose filter fails has its blob. Raise `GitError`.
        """
        wanted = list(dict.fromkeys(paths))
        known = self._list_entries(wanted, revision) if entries is None else entries
        found: dict[str, bytes | None] = dict.fromkeys(wanted)
        asked = {
            path: entry
            for path in wanted
            if (entry := known.get(path)) and entry.blob and not entry.is_submodule
        }
        sizes = self._sizes({entry.blob for entry in asked.values()})
        readable = {path: entry for path, entry in asked.items() if entry.blob in sizes}
        odd = [path for path, entry in readable.items() if ODD_PATH.search(path) and not entry.is_link]
        links = [path for path, entry in readable.items() if entry.is_link]
        for path in links:
            found[path] = self._run("cat-file", "blob", readable[path].blob).output
        settings = disable_filters(left_out)
        for path in odd:
            found[path] = self._read_filtered(path, readable[path].blob, settings)
        regular = [path for path in readable if path not in {*odd, *links}]
        for part in _split_batches(regular, lambda path: sizes[readable[path].blob]):
            found.update(self._read_batch({path: readable[path].blob for path in part}, settings))
        return {
            path: None if data is not None and len(data) > MAX_BLOB_BYTES else data
            for path, data in found.items()
        }

    def list_tree(self, commit: str, paths: Collection[str] | None = None) -> dict[str, IndexEntry]:
        """Return the files of ``commit`` by path. ``paths``: default all files. Raise `GitError`."""
        if paths is not None and len(paths) > _MAX_ARGUMENT_PATHS:
            return {path: entry for path, entry in self.list_tree(commit).items() if path in paths}
        if paths is not None and not paths:
            return {}
        names = ("-r",) if paths is None else ()
        printed = self._run("ls-tree", "-z", *names, commit, "--", *(paths or ())).output
        found: dict[str, IndexEntry] = {}
        for record in printed.split(b"\0"):
            if record:
                fields, _, path = record.partition(b"\t")
                mode, kind, blob = fields.decode("ascii").split()
                if kind != "tree":
                    found[os.fsdecode(path)] = IndexEntry(int(mode, 8), blob)
        return found

    def read_link(self, path: str) -> bytes | None:
        """Return the target of the symbolic link at ``path``, None if the tree has no link there."""
        try:
            target = os.readlink(os.path.join(self.folder, path))
        except OSError:
            return None
        return None if self.is_behind_link(path) else os.fsencode(target)

    def is_behind_link(self, path: str) -> bool:
        """Return whether a folder above ``path`` is a symbolic link, so that the tree has no such file."""
        above = os.path.dirname(os.path.join(self.folder, path))
        return os.path.realpath(above) != above

    def ignored_among(self, paths: Sequence[str]) -> frozenset[str]:
        """Return the ``paths`` that git ignores. Raise `IgnoredFilesUnknown`."""
        return ignored_among(os.path.join(self.folder, ".git"), paths)

    def commit_files(
        self,
        files: Mapping[str, FileState | None],
        message: str,
        author: str,
        *,
        branch: str | None,
        parent: str,
    ) -> str:
        """Commit ``parent`` with ``files`` changed, and return the id of the commit.

        - ``files``: the files as they are in the tree, by path. None deletes a file.
        - ``author``: ``NAME <EMAIL>``. The committer comes from git's settings.
        - ``branch``: a new branch. None commits onto the checked-out branch, or a detached HEAD.
        - ``parent``: the id of the expected HEAD; empty if there is none.

        The files of the tree are not touched. A commit onto the checked-out branch also updates the index.
        Staged lines of others stay staged, except for lines that conflict with the commit. Returns ``parent``
        if nothing differs from it.

        Raise `GitBusy` during a rebase or a merge, if the index is locked, or if HEAD is not ``parent``.
        Raise `InvalidRepository` if ``branch`` exists or is not a valid name. Raise `GitError`.
        """
        request = CommitRequest(files, message, author, branch, parent)
        return GitWriter(self.folder, self.git).commit(request, self.read_state)

    def recover(self) -> None:
        """Finish or undo a commit whose process was killed. `commit_files` does so if the index is locked."""
        GitWriter(self.folder, self.git).recover(self.read_state)

    def write_tree(self, files: Mapping[str, FileState | None], *, parent: str) -> str:
        """Write the tree that `commit_files` would commit, and return its id. Nothing refers to it."""
        return GitWriter(self.folder, self.git).write_tree(files, parent)

    def write_commit(self, content: str, message: str, author: str, *, parent: str) -> str:
        """Write a commit of the git tree ``content``, and return its id. Nothing refers to it.

        ``author``: ``NAME <EMAIL>``, empty for the person in git's settings. Raise `GitError`.
        """
        return GitWriter(self.folder, self.git).write_commit(content, message, author, parent)

    def list_commits(self, limit: int = 5000) -> list[str]:
        """Return the ids of the newest commits in HEAD's history, at most ``limit``."""
        done = self._run("rev-list", f"--max-count={limit}", "HEAD", accepted=(0, 128))
        return done.output.decode("ascii", "replace").split()

    def keeps_modes(self) -> bool:
        """Return whether git records executable bits (``core.fileMode``)."""
        done = self._run("config", "--type=bool", "--get", "core.fileMode", accepted=(0, 1))
        return done.output.strip() != b"false"

    def list_conversions(self, paths: Collection[str]) -> dict[str, Conversion]:
        """Return how git converts the line ends of the files at ``paths`` on add. Files outside of the index
        are left out."""
        if not paths:
            return {}
        setting = self._run("config", "--get", "core.autocrlf", accepted=(0, 1)).output.strip().lower()
        names = paths if len(paths) <= _MAX_ARGUMENT_PATHS else ()
        printed = os.fsdecode(self._run("ls-files", "--eol", "-z", "--", *names).output)
        found: dict[str, Conversion] = {}
        for record in printed.split("\0"):
            fields, _, path = record.partition("\t")
            if path in paths:
                attributes = fields.partition(" attr/")[2].split()
                has_none = not attributes or attributes[0].startswith("eol")
                is_set = "text" in attributes or (has_none and bool(attributes))
                is_auto = "text=auto" in attributes or (not attributes and setting in (b"true", b"input"))
                found[path] = "text" if is_set else "auto" if is_auto else "none"
        return found

    def read_raw(self, blobs: Collection[str]) -> dict[str, bytes]:
        """Return the content of ``blobs`` by their ids, without line end conversion and filters. Blobs larger
        than 10 MB are left out."""
        return {each: self._run("cat-file", "blob", each).output for each in self._sizes(blobs)}

    def list_filters(self, paths: Sequence[str]) -> dict[str, str]:
        """Return the names of the filters that the attributes of ``paths`` name, by path. Empty for a path
        without a filter. Raise `GitError`."""
        given = b"".join(os.fsencode(each) + b"\0" for each in paths)
        printed = self._run("check-attr", "-z", "--stdin", "filter", given=given).output.split(b"\0")
        # Git prints three fields for each path: the path, the attribute, its value.
        values = ("" if each in _NO_FILTER else os.fsdecode(each) for each in printed[2::3])
        return dict(zip(paths, values, strict=True))

    def _list_all_filters(self) -> set[str]:
        """Return the names of the filters in git's settings."""
        asked = ("config", "--null", "--name-only", "--get-regexp", r"^filter\.")
        printed = os.fsdecode(self._run(*asked, accepted=(0, 1)).output)
        return {each.removeprefix("filter.").rpartition(".")[0] for each in printed.split("\0") if each}

    def _run(
        self,
        *arguments: str,
        given: bytes = b"",
        accepted: Sequence[int] | None = (0,),
        settings: Sequence[str] = (),
        timeout: float = SECONDS,
    ) -> ChildResult:
        return run_git(
            arguments,
            folder=self.folder,
            variables={"GIT_DIR": self.git, "GIT_WORK_TREE": self.folder},
            settings=settings,
            given=given,
            timeout=timeout,
            accepted=accepted,
        )

    def _ask_refs(self) -> tuple[str, str, str]:
        """Ask git for the branch, the commit and the stash."""
        asked = (
            ("symbolic-ref", "--quiet", "HEAD"),
            ("rev-parse", "--verify", "--quiet", "HEAD"),
            ("rev-parse", "--verify", "--quiet", "refs/stash"),
        )
        done = (self._run(*each, accepted=(0, 1)) for each in asked)
        branch, head, stash = (os.fsdecode(each.output.rstrip(b"\n")) for each in done)
        return branch.removeprefix("refs/heads/"), head, stash

    def _resolve(self, ref: bytes, depth: int = 5) -> str:
        """Return the commit that ``ref`` names, empty if there is none."""
        path = os.fsdecode(ref)
        # Git deletes a loose ref only after it has written the packed ref.
        text = _read_small(os.path.join(self.common, path)).strip()
        if text.startswith(b"ref:") and depth:
            return self._resolve(text.removeprefix(b"ref:").strip(), depth - 1)
        return text.decode("ascii", "replace") or self._find_packed(ref)

    def _find_packed(self, ref: bytes) -> str:
        path = os.path.join(self.common, "packed-refs")
        stamp = _stamp(path)
        if stamp is None:
            return ""
        if self._packed is None or self._packed[0] != stamp:
            with contextlib.suppress(OSError), open(path, "rb") as file:
                self._packed = (stamp, file.read())
        content = self._packed[1] if self._packed is not None else b""
        end = content.find(b" " + ref + b"\n")
        return "" if end < 0 else content[content.rfind(b"\n", 0, end) + 1 : end].decode("ascii", "replace")

    def _list_entries(self, paths: Sequence[str], revision: str) -> Mapping[str, IndexEntry]:
        if revision != ":":
            return self.list_tree(revision.removesuffix(":"), paths)
        if len(paths) > _MAX_ARGUMENT_PATHS:
            return self.list_index()
        if not paths:
            return {}
        return _parse_index(self._run("ls-files", "-v", "--stage", "-z", "--", *paths).output)

    def _sizes(self, blobs: Collection[str]) -> dict[str, int]:
        """Return the sizes of the ``blobs`` that exist and are at most 10 MB."""
        if not blobs:
            return {}
        given = "".join(f"{each}\n" for each in sorted(blobs)).encode()
        printed = self._run("cat-file", "--batch-check", given=given).output.decode("ascii", "replace")
        found = {}
        for line in printed.splitlines():
            blob, kind, *size = line.split()
            if kind == "blob" and size and int(size[0]) <= MAX_BLOB_BYTES:
                found[blob] = int(size[0])
        return found

    def _read_batch(self, blobs: Mapping[str, str], settings: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield each path of ``blobs`` with the bytes that git would check out there. No path may match
        `ODD_PATH`."""
        left = dict(blobs)
        while left:
            # The size in git's own header is the size before the filters. So contents are separated by a line
            # that cannot be in them.
            separator = secrets.token_hex(16)
            given = b"".join(blob.encode() + b" " + os.fsencode(path) + b"\n" for path, blob in left.items())
            command = ("cat-file", f"--batch={separator}", "--filters")
            done = self._run(*command, given=given, accepted=None, settings=settings)
            pieces = done.output.split(f"{separator}\n".encode())[1:]
            # A failing filter ends git. Then the output may have the header of its path, but not the content.
            complete = [piece[:-1] for piece in pieces if piece.endswith(b"\n")]
            if done.status == 0 and len(complete) != len(left):
                raise GitError(reason="git cat-file")
            for path, data in zip(list(left), complete, strict=False):
                yield path, data
                del left[path]
            if left:
                filters = self.list_filters(list(left))
                failed = filters[next(iter(left))]
                if not failed:
                    raise GitError(reason=reason_of(done))
                for path in [each for each in left if filters[each] == failed]:
                    yield path, self._run("cat-file", "blob", left.pop(path)).output

    def _read_filtered(self, path: str, blob: str, settings: Sequence[str]) -> bytes:
        """Return the bytes that git would check out at ``path``. If a filter fails, return the content of
        ``blob``."""
        command = ("cat-file", "--filters", f"--path={path}", blob)
        done = self._run(*command, accepted=None, settings=settings)
        return done.output if done.status == 0 else self._run("cat-file", "blob", blob).output


def disable_filters(names: Iterable[str]) -> list[str]:
    """Return the settings with which git does not apply the filters ``names``."""
    off = ("clean=", "smudge=", "process=", "required=false")
    return [f"filter.{name}.{setting}" for name in names for setting in off]


def find_common(folder: str) -> str | None:
    """Return the common git folder of the repository that contains ``folder``, bare or not; None if there is
    none. Raise `GitError`."""
    found = _locate(folder, ("--git-common-dir",))
    return None if found is None else os.path.realpath(os.path.join(folder, found[0]))


def parse_lfs_pointer(data: bytes) -> Blob | None:
    """Parse ``data`` as a pointer of Git LFS. Return the file's checksum and size, None if it is not a
    pointer."""
    found = _LFS_POINTER.fullmatch(data)
    return None if found is None else Blob(found[1].decode("ascii"), int(found[2]))


def _locate(folder: str, asked: Sequence[str]) -> list[str] | None:
    """Return the output lines of ``git rev-parse``; None if ``folder`` is not in a repository or a working
    tree."""
    if not os.path.isdir(folder):
        return None
    done = run_git(("rev-parse", *asked), folder=folder, accepted=None)
    if done.status:
        known = (b"not a git repository", b"must be run in a work tree")
        if any(each in done.errors for each in known):
            return None
        raise GitError(reason=reason_of(done))
    lines = os.fsdecode(done.output).removesuffix("\n").split("\n")
    if len(lines) == len(asked):
        return lines
    # A path contains a line feed.
    single = (run_git(("rev-parse", each), folder=folder).output for each in asked)
    return [os.fsdecode(each).removesuffix("\n") for each in single]


def _parse_index(printed: bytes) -> dict[str, IndexEntry]:
    found: dict[str, IndexEntry] = {}
    for record in os.fsdecode(printed).split("\0"):
        if not record:
            continue
        fields, _, path = record.partition("\t")
        tag, mode, blob, stage = fields.split(" ")
        found[path] = IndexEntry(int(mode, 8), blob if stage == "0" else "", tag in _ABSENT)
    return found


def _changed_path(record: bytes) -> Iterator[str]:
    """Yield the path of a record of ``git status``, if it differs from the index."""
    kind, _, rest = record.partition(b" ")
    if kind == b"?" and not rest.endswith(b"/"):
        yield os.fsdecode(rest)
    elif kind in (b"1", b"u"):
        fields = rest.split(b" ", 7 if kind == b"1" else 9)
        is_submodule = fields[1].startswith(b"S")
        if not is_submodule and (kind == b"u" or fields[0][1:] != b"."):
            yield os.fsdecode(fields[-1])


def _split_batches(paths: Sequence[str], size_of: Callable[[str], int]) -> Iterator[list[str]]:
    """Split ``paths`` into batches whose blobs have at most 32 MiB. A larger blob has its own batch."""
    part: list[str] = []
    total = 0
    for path in paths:
        size = size_of(path)
        if part and total + size > _MAX_BATCH_BYTES:
            yield part
            part, total = [], 0
        part.append(path)
        total += size
    if part:
        yield part


def _read_small(path: str) -> bytes:
    """Return the start of the file at ``path``, empty if it does not exist."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(_MAX_SMALL_FILE)
    except OSError:
        return b""


def _stamp(path: str) -> IndexStamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return IndexStamp(found.st_mtime_ns, found.st_size, found.st_ino)
