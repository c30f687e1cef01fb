"""Merges commits without a working tree, and moves a branch to a merge, with the files of its tree."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import Final, NamedTuple

from watchroom.errors import GitBusy, GitError
from watchroom.features.trees.git import GitTree, IndexEntry, parse_lfs_pointer
from watchroom.features.trees.git_process import reason_of, run_git
from watchroom.features.trees.git_writes import GitWriter
from watchroom.features.trees.tree_files import list_hidden
from watchroom.platform.child_process import ChildResult

_GIT_SECONDS: Final = 600.0
_CONFLICTS: Final = 1
"""The exit code of ``git merge-tree`` if there are conflicts."""
_BASE, _OURS, _THEIRS = "1", "2", "3"
_MAX_TEXT_BYTES: Final = 10 * 1024 * 1024
_ODD_LINE: Final = re.compile(r'\n|\r\Z|\A"')
"""Matches paths that git would misread in a line of its input."""
_NAMED: Final = re.compile(rb"'([^\n]+?)'")
"""The path in an error of ``git read-tree``."""
_PIECE_BYTES: Final = 1 << 20


class FileConflict(NamedTuple):
    """A file that git cannot merge.

    - ``base``, ``ours``, ``theirs``: the file in the merge base and in both commits; None if the file is not
      there.
    """

    path: str
    base: IndexEntry | None
    ours: IndexEntry | None
    theirs: IndexEntry | None

    @property
    def has_texts(self) -> bool:
        """Whether both commits have the file, so that its lines can be chosen. Links and submodules have no
        lines."""
        sides = (self.ours, self.theirs)
        if any(each is None or each.is_link or each.is_submodule for each in sides):
            return False
        return self.base is None or not (self.base.is_link or self.base.is_submodule)


class Merge(NamedTuple):
    """The merge of two commits.

    - ``tree``: the id of the merged tree. Files in ``conflicts`` have conflict markers in it.
    """

    tree: str
    conflicts: tuple[FileConflict, ...]


class ConflictTexts(NamedTuple):
    """The three texts of a `FileConflict`. ``base``: empty if both commits added the file."""

    base: str
    ours: str
    theirs: str


class GitMerger:
    """Merges and moves branches of the repository of ``git``. Methods raise `GitError`."""

    def __init__(self, git: GitTree) -> None:
        self._git = git

    def find_commit(self, name: str) -> str:
        """Return the id of the commit of the branch ``name``, empty if there is no such branch."""
        # This command accepts only whole names: `main~1` is no branch.
        asked = ("show-ref", "--verify", "--hash", f"refs/heads/{name}")
        done = self._run(*asked, accepted=(0, 1, 128))
        return _line(done) if done.status == 0 else ""

    def find_names(self, branch: str) -> set[str]:
        """Return all names of ``branch``. A symbolic ref is another name of the branch that it refers to."""
        asked = ("for-each-ref", "--format=%(refname) %(symref)", "refs/heads/")
        printed = os.fsdecode(self._run(*asked).output).split("\n")[:-1]
        refs = [[ref.removeprefix("refs/heads/") for ref in line.split(" ")] for line in printed]
        branches = {name: target or name for name, target in refs}
        own = branches.get(branch, branch)
        return {branch, own, *(name for name, target in branches.items() if target == own)}

    def is_bare(self) -> bool:
        """Return whether the repository has no main tree."""
        done = self._run("config", "--type=bool", "--get", "core.bare", accepted=(0, 1))
        return _line(done) == "true"

    def is_ancestor(self, old: str, new: str) -> bool:
        """Return whether the commit ``new`` has everything that the commit ``old`` has. False if one of them
        does not exist."""
        return self._run("merge-base", "--is-ancestor", old, new, accepted=(0, 1, 128)).status == 0

    def find_base(self, one: str, other: str) -> str:
        """Return the id of the best common ancestor of two commits, empty if there is none."""
        return _line(self._run("merge-base", one, other, accepted=(0, 1)))

    def merge(self, ours: str, theirs: str) -> Merge:
        """Merge two commits as ``git merge`` does, with renames. No file, index or branch is changed. Needs
        git 2.38."""
        done = self._run(
            *("merge-tree", "--write-tree", "-z", "--no-messages", ours, theirs),
            accepted=(0, _CONFLICTS, 129),
        )
        if done.status > _CONFLICTS:
            raise GitError(reason="git merge-tree --write-tree: git 2.38 or newer is needed")
        tree, *records = done.output.split(b"\0")
        return Merge(tree.decode("ascii").strip(), tuple(_list_conflicts(records)))

    def read_texts(self, conflict: FileConflict) -> ConflictTexts | None:
        """Return the texts of ``conflict``, None if they are not three texts of at most 10 MB."""
        if not conflict.has_texts:
            return None
        sides = [each for each in (conflict.base, conflict.ours, conflict.theirs) if each is not None]
        found = self._git.read_raw({each.blob for each in sides})
        texts: list[str] = []
        for each in (conflict.base, conflict.ours, conflict.theirs):
            data = b"" if each is None else found.get(each.blob)
            if data is None or len(data) > _MAX_TEXT_BYTES or b"\0" in data or parse_lfs_pointer(data):
                return None
            try:
                texts.append(data.decode())
            except UnicodeDecodeError:
                return None
        return ConflictTexts(*texts)

    def replace_texts(self, tree: str, conflicts: Mapping[FileConflict, str]) -> str:
        """Return the id of ``tree`` with these texts in place of the files in ``conflicts``."""
        lines = []
        for conflict, text in conflicts.items():
            blob = _line(self._run("hash-object", "-w", "--stdin", given=text.encode()))
            mode = _merged_mode(conflict)
            lines.append(f"{mode:06o} {blob} 0\t".encode() + os.fsencode(conflict.path) + b"\0")
        with self._scratch_index() as variables:
            self._run("read-tree", tree, variables=variables)
            self._run("update-index", "-z", "--index-info", variables=variables, given=b"".join(lines))
            return _line(self._run("write-tree", variables=variables))

    def replace_files(self, tree: str, source: str, paths: Collection[str]) -> str:
        """Return the id of ``tree`` with the files at ``paths`` as in the tree ``source``."""
        if not paths:
            return tree
        with self._scratch_index() as variables:
            self._run("read-tree", tree, variables=variables)
            self._set_entries(self._git.list_tree(source, paths), paths, variables)
            return _line(self._run("write-tree", variables=variables))

    def commit_merge(self, tree: str, parents: Sequence[str], message: str) -> str:
        """Return the id of a new commit of ``tree``, by the person whom git's settings name."""
        arguments = [word for parent in parents for word in ("-p", parent)]
        given = (message.strip("\n") + "\n").encode("utf-8", "surrogateescape")
        return _line(self._run("commit-tree", tree, *arguments, "-F", "-", given=given))

    def move_branch(self, branch: str, before: str, after: str) -> None:
        """Move ``branch``, and no files. Raise `GitBusy` if it is not at ``before``."""
        command = ("update-ref", "-m", "watchroom land", f"refs/heads/{branch}", after, before)
        if self._run(*command, accepted=None).status:
            raise GitBusy(rule="git_moved")

    # -- a checked-out branch

    def list_blocking(self, before: str, after: str) -> list[str]:
        """Return the files of this tree, at the commit ``before``, that block a move to ``after``:
        uncommitted changes, and ignored files that it would overwrite."""
        if not os.path.exists(os.path.join(self._git.git, "index")):
            # Nothing is checked out here.
            return self._git.list_staged()
        paths = self._git.list_committed(before, after)
        folders = {folder for path in paths for folder in _folders_above(path)}
        old, new = (self._git.list_tree(commit, paths) for commit in (before, after))
        found = {
            path
            for path in (*self._git.list_staged(), *self._git.list_changed())
            if path in paths or path in folders or any(each in paths for each in _folders_above(path))
        }
        found |= {path for path in new.keys() - old.keys() if self._is_taken(path, old)}
        hidden = paths.intersection(list_hidden(self._git))
        hashed = self._hash_files(hidden, {**old, **new})
        found |= {path for path, entry in hashed.items() if entry not in (None, old.get(path))}
        return sorted(found) or self._try_move(before, after)

    def _is_taken(self, path: str, old: Collection[str]) -> bool:
        """Return whether a file or folder that is not in ``old`` blocks the new file ``path``."""
        if self._list_below(path) - {*old}:
            return True
        above = [each for each in _folders_above(path) if each not in old]
        places = [os.path.join(self._git.folder, each) for each in above]
        return any(
            os.path.lexists(each) and (os.path.islink(each) or not os.path.isdir(each)) for each in places
        )

    def _list_below(self, path: str) -> set[str]:
        """Return the file at ``path``, or the files in the folder there."""
        place = os.path.join(self._git.folder, path)
        if os.path.islink(place) or not os.path.isdir(place):
            return {path} if os.path.lexists(place) else set()
        found = set()
        for folder, folders, names in os.walk(place):
            links = [each for each in folders if os.path.islink(os.path.join(folder, each))]
            found |= {
                os.path.relpath(os.path.join(folder, each), self._git.folder) for each in (*names, *links)
            }
        return found

    def _try_move(self, before: str, after: str) -> list[str]:
        """Return the file that git reports as an obstacle to a move, empty if there is no obstacle."""
        with self._scratch_index(copied=True) as variables:
            self._refresh(variables)
            done = self._run("read-tree", "-m", "-u", "-n", before, after, variables=variables, accepted=None)
        if done.status == 0:
            return []
        named = _NAMED.search(done.errors)
        if named is None:
            raise GitError(reason=reason_of(done))
        return [os.fsdecode(named[1])]

    def move_checked_out(self, branch: str, before: str, after: str) -> list[str]:
        """Move ``branch``, which is checked out in this tree, and the tree's files and index.

        If a move was interrupted after it had moved the branch, the same call continues it. Files that have
        neither their content in ``before`` nor their content in ``after`` are not changed. Return their
        paths. Raise `GitBusy` if the branch is at neither commit, if another branch is checked out, or if the
        index is locked. If git cannot write a file, the branch and the files that this call has moved move
        back.
        """
        writer = GitWriter(self._git.folder, self._git.git)
        writer.recover(self._git.read_state)
        with writer.locked_index() as lock:
            state = self._git.read_state()
            if state.operation:
                raise GitBusy(rule="git_operation")
            if state.branch not in self.find_names(branch):
                raise GitBusy(rule="git_moved")
            if state.head != after:
                self.move_branch(branch, before, after)
            with self._scratch_index(copied=True) as variables:
                try:
                    kept = self._update_files(before, after, variables)
                except GitError:
                    if state.head != after:
                        self._restore_files(before, after)
                        self.move_branch(branch, after, before)
                    raise
                writer.replace_index(lock, variables["GIT_INDEX_FILE"], after)
        return kept

    def _update_files(self, before: str, after: str, variables: Mapping[str, str]) -> list[str]:
        """Write the files that differ between two commits. Return the paths of files that others have
        changed. These are not written."""
        self._refresh(variables)
        paths = self._git.list_committed(before, after)
        old, new = (self._git.list_tree(commit, paths) for commit in (before, after))
        staged = self._git.list_index()
        found = self._find_entries(paths, staged, {**old, **new})
        # Git itself writes what is as it was before. An interrupted move has written some files already.
        sparse = {path for path, entry in staged.items() if entry.is_absent}
        moved = {path for path in paths - sparse if not found[path] == old.get(path) == staged.get(path)}
        written = {path for path in moved if found[path] == new.get(path)}
        self._set_entries(new, moved, variables)
        partial = self._find_partial(new, moved - written, variables)
        start = self._replace_entries(before, new, moved) if moved else before
        self._run("read-tree", "-m", "-u", start, after, variables=variables)
        given = b"".join(os.fsencode(path) + b"\0" for path in partial)
        if given:
            self._run("checkout-index", "--force", "-u", "-z", "--stdin", variables=variables, given=given)
        self._refresh(variables)
        return sorted(moved - written - partial)

    def _restore_files(self, before: str, after: str) -> None:
        """Write the files of ``before`` that an incomplete `_update_files` has changed or removed."""
        paths, staged = self._git.list_committed(before, after), self._git.list_index()
        old, new = (self._git.list_tree(commit, paths) for commit in (before, after))
        found = self._find_entries(paths, staged, {**old, **new})
        sparse = {path for path, entry in staged.items() if entry.is_absent}
        written = {path for path in paths - sparse if found[path] == new.get(path)}
        # Git removes a file before it writes the new content.
        missing = {path for path in old.keys() - sparse - written if found[path] is None}
        with self._scratch_index(copied=True) as variables:
            self._set_entries(new, written, variables)
            self._refresh(variables)
            start = self._replace_entries(before, new, written)
            self._run("read-tree", "-m", "-u", start, before, variables=variables)
            given = b"".join(os.fsencode(path) + b"\0" for path in missing)
            self._run("checkout-index", "-u", "-z", "--stdin", variables=variables, given=given)

    def _refresh(self, variables: Mapping[str, str]) -> None:
        """For each file whose content equals its index entry, update the times in that entry."""
        self._run("update-index", "-q", "--refresh", variables=variables, accepted=(0, 1))

    def _find_entries(
        self, paths: Set[str], staged: Mapping[str, IndexEntry], expected: Mapping[str, IndexEntry]
    ) -> dict[str, IndexEntry | None]:
        """Return the index entries for the files at ``paths``, see `_hash_files`. ``staged``: the index."""
        # Git compares files with its index in more ways than by their hashes, for example line ends.
        unsure = {*self._git.list_changed(), *list_hidden(self._git)}
        found: dict[str, IndexEntry | None] = {
            path: staged[path] for path in paths - unsure if path in staged
        }
        return found | self._hash_files(paths - found.keys(), expected)

    def _hash_files(
        self, paths: Collection[str], expected: Mapping[str, IndexEntry]
    ) -> dict[str, IndexEntry | None]:
        """Return the index entries for the files at ``paths``, None for a path without a file.

        ``expected``: entries of these paths. Submodules, and modes that git ignores, are taken from
        ``expected``.
        """
        keeps_modes = self._git.keeps_modes()
        found: dict[str, IndexEntry | None] = dict.fromkeys(paths)
        regular: dict[str, int] = {}
        for path in paths:
            wanted, place = expected[path], os.path.join(self._git.folder, path)
            if self._git.is_behind_link(path):
                continue
            try:
                mode = os.lstat(place).st_mode
            except (FileNotFoundError, NotADirectoryError):
                continue
            if wanted.is_submodule:
                found[path] = wanted
            elif stat.S_ISLNK(mode):
                given = os.fsencode(os.readlink(place))
                blob = _line(self._run("hash-object", "--stdin", given=given))
                found[path] = IndexEntry(0o120000, blob)
            elif stat.S_ISREG(mode):
                is_kept = keeps_modes or wanted.is_link
                regular[path] = (0o100755 if mode & 0o100 else 0o100644) if is_kept else wanted.mode
            elif not stat.S_ISDIR(mode) or self._list_below(path) - expected.keys():
                found[path] = IndexEntry(0, "")
        odd = [path for path in regular if _ODD_LINE.search(path)]
        plain = [path for path in regular if not _ODD_LINE.search(path)]
        given = b"".join(os.fsencode(path) + b"\n" for path in plain)
        printed = self._run("hash-object", "--stdin-paths", given=given).output if plain else b""
        blobs = dict(zip(plain, printed.decode("ascii").split(), strict=True))
        blobs |= {path: _line(self._run("hash-object", "--", path)) for path in odd}
        return found | {path: IndexEntry(regular[path], blob) for path, blob in blobs.items()}

    def _find_partial(
        self, entries: Mapping[str, IndexEntry], paths: Collection[str], variables: Mapping[str, str]
    ) -> set[str]:
        """Return the ``paths`` of files that are missing or incomplete, because git was ended while it wrote
        them."""
        asked = [path for path in paths if path in entries and not entries[path].is_submodule]
        missing = {path for path in asked if not os.path.lexists(os.path.join(self._git.folder, path))}
        there = [path for path in asked if path not in missing and not entries[path].is_link]
        if not there:
            return missing
        with tempfile.TemporaryDirectory(prefix="watchroom-") as scratch:
            given = b"".join(os.fsencode(path) + b"\0" for path in there)
            command = ("checkout-index", f"--prefix={scratch}/", "-z", "--stdin")
            self._run(*command, variables=variables, given=given)
            whole = {path: os.path.join(scratch, path) for path in there}
            return missing | {
                path for path in there if _is_beginning(os.path.join(self._git.folder, path), whole[path])
            }

    def _replace_entries(self, commit: str, entries: Mapping[str, IndexEntry], paths: Collection[str]) -> str:
        """Return the id of the tree of ``commit`` with ``entries`` in place of its entries at ``paths``."""
        with self._scratch_index() as variables:
            self._run("read-tree", commit, variables=variables)
            self._set_entries(entries, paths, variables)
            return _line(self._run("write-tree", variables=variables))

    def _set_entries(
        self, entries: Mapping[str, IndexEntry], paths: Collection[str], variables: Mapping[str, str]
    ) -> None:
        """Set the index entries of ``paths`` to ``entries``."""
        # A deleted file can be in the way of a folder.
        deleted = [os.fsencode(path) + b"\0" for path in paths if path not in entries]
        lines = [
            f"{entries[path].mode:06o} {entries[path].blob} 0\t".encode() + os.fsencode(path) + b"\0"
            for path in paths
            if path in entries
        ]
        for words, given in ((("--force-remove", "-z", "--stdin"), deleted), (("-z", "--index-info"), lines)):
            if given:
                self._run("update-index", *words, variables=variables, given=b"".join(given))

    @contextlib.contextmanager
    def _scratch_index(self, *, copied: bool = False) -> Iterator[dict[str, str]]:
        """Yield the environment variables that make git use a separate index. ``copied``: it begins as a copy
        of the tree's index."""
        path = GitWriter(self._git.folder, self._git.git).name_index()
        if copied:
            # The times too: git tells by them which files may have changed unnoticed since.
            with contextlib.suppress(FileNotFoundError):
                shutil.copy2(os.path.join(self._git.git, "index"), path)
        try:
            yield {"GIT_INDEX_FILE": path}
        finally:
            for each in (path, f"{path}.lock"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(each)

    def _run(
        self,
        *arguments: str,
        given: bytes = b"",
        variables: Mapping[str, str] | None = None,
        accepted: Sequence[int] | None = (0,),
    ) -> ChildResult:
        folder = self._git.folder or self._git.common
        own = {"GIT_DIR": self._git.git, "GIT_WORK_TREE": folder, "GIT_LFS_SKIP_SMUDGE": "0"}
        return run_git(
            arguments,
            folder=folder,
            variables={**own, **(variables or {})},
            given=given,
            timeout=_GIT_SECONDS,
            accepted=accepted,
        )


def _list_conflicts(records: Sequence[bytes]) -> Iterator[FileConflict]:
    """Yield the conflicts of the records ``MODE BLOB STAGE<tab>PATH``."""
    sides: dict[str, dict[str, IndexEntry]] = {}
    for record in records:
        fields, tab, path = record.partition(b"\t")
        if not tab:
            continue
        mode, blob, stage = fields.decode("ascii").split()
        sides.setdefault(os.fsdecode(path), {})[stage] = IndexEntry(int(mode, 8), blob)
    for name, found in sides.items():
        yield FileConflict(name, found.get(_BASE), found.get(_OURS), found.get(_THEIRS))


def _merged_mode(conflict: FileConflict) -> int:
    """Return the mode of a conflict's file: the changed one, if one side changed it."""
    modes = [None if each is None else each.mode for each in (conflict.base, conflict.ours, conflict.theirs)]
    base, ours, theirs = modes
    return (theirs if ours == base else ours) or 0o100644


def _is_beginning(path: str, whole: str) -> bool:
    """Return whether the file at ``path`` has only the beginning of the file ``whole``."""
    if os.path.islink(path) or not os.path.isfile(path) or not os.path.isfile(whole):
        return False
    with open(path, "rb") as file, open(whole, "rb") as other:
        while piece := file.read(_PIECE_BYTES):
            if other.read(len(piece)) != piece:
                return False
    return True


def _folders_above(path: str) -> Iterator[str]:
    """Yield the folders that ``path`` is in, the innermost first."""
    while path := os.path.dirname(path):
        yield path


def _line(done: ChildResult) -> str:
    return done.output.decode("ascii", "replace").strip()
