"""Finds the obstacles to the removal of a working tree, and removes it.

Nothing is lost with a tree. Its branch stays, and uncommitted files are recorded first. A file or commit that
neither git nor the journal would keep is an obstacle.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
import re
import shutil
import stat
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from watchroom.errors import GitError, TreeGone, TreeKept
from watchroom.features.trees.commits import AgentCommits
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.git_process import reason_of, run_git
from watchroom.features.trees.rows import CHANGE, GRADE, REPO, grade_of, read_tree
from watchroom.features.trees.service import FOLLOW_SECONDS
from watchroom.features.trees.tree_files import AddedFiles, list_hidden, list_ignored_names
from watchroom.features.trees.tree_states import UNFINISHED, TreePlace, has_submodules
from watchroom.features.trees.watcher import UNWATCHED_SECONDS
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.file_content import FileContent, describe_file, is_current
from watchroom.kernel.rules.file_versions import is_executable
from watchroom.model import OUTSIDE, Json, Row
from watchroom.platform.disk import FileStamp, Inspected
from watchroom.validation import MAX_PATH_BYTES, sha256

if TYPE_CHECKING:
    from watchroom.features.config.store import Store
    from watchroom.features.trees.recorder import TreeRecorder
    from watchroom.features.trees.service import Trees

ObstacleKind: TypeAlias = Literal[
    "main",
    "locked",
    "git_running",
    "unrecorded",
    "agents",
    "unfinished",
    "index_locked",
    "not_kept",
    "ignored",
    "commits",
    "nested",
    "submodules",
    "staged",
]
"""The reason why a tree is not removed.

- ``main``: it is the repository's main tree.
- ``locked``: a person has locked it in git.
- ``git_running``: a git command is changing it now.
- ``unrecorded``: files that another process still has to record, but makes no progress with.
- ``agents``: agents work in it.
- ``unfinished``: an operation of git is not finished, such as a rebase.
- ``index_locked``: a git command that was killed left its lock.
- ``not_kept``: files that are not committed, and too large for the journal.
- ``ignored``: files that git ignores, and that only this tree has.
- ``commits``: commits that no branch has.
- ``nested``: other repositories in it.
- ``submodules``: submodules, whose repositories are in the tree's git folder.
- ``staged``: its folder is gone, but its index has staged changes that are in no commit.
"""
_FINAL: Final[tuple[ObstacleKind, ...]] = ("main", "locked", "git_running", "unrecorded")
"""Obstacles that nobody can override."""
_ASIDE: Final = ".watchroom-removed"
"""The suffix of the hidden folder that a tree is renamed to while it is removed."""
_KEPT: Final = "watchroom/kept"
"""The prefix of the branches that are made for commits without a branch."""
_GIT_SECONDS: Final = 1.0
_QUIET_SECONDS: Final = 3.0
"""Seconds without progress after which the files are determined that the service still has to record."""
_STALLED_SECONDS: Final = max(FOLLOW_SECONDS, UNWATCHED_SECONDS) + 10.0
"""Seconds without progress after which the service counts as stalled. It may not have found a new tree
before, or may not have compared a tree that it cannot watch."""
_POLL_SECONDS: Final = 0.05
_POLL_SHARE: Final = 0.1
"""Additional seconds between checks for each second without progress: a check can read thousands of files."""
_ODD_LINE: Final = re.compile(r'\n|\r\Z|\A"')
"""Matches paths that cannot be in a line of the input of ``git hash-object``."""
_DELETE_SECONDS: Final = 5.0
"""Seconds in which the git folder of a tree is deleted again if other processes make files in it."""


class Obstacle(NamedTuple):
    """An obstacle to the removal of a tree. ``names``: agents, operations, commits, or paths."""

    kind: ObstacleKind
    names: tuple[str, ...] = ()


class RemovalPlan(NamedTuple):
    """The planned removal of a tree.

    - ``obstacles``: the obstacles to the removal.
    - ``uncommitted``: the files whose newest content is only in the journal.
    - ``disposable``: ignored files and folders that are removed with it, because other trees have them too or
      programs make them again.
    - ``stamps``: the stamps of the uncommitted files on disk.
    """

    name: str
    place: TreePlace
    obstacles: tuple[Obstacle, ...] = ()
    uncommitted: tuple[str, ...] = ()
    disposable: tuple[str, ...] = ()
    stamps: Mapping[str, FileStamp | None] = {}


def is_final(kind: ObstacleKind) -> bool:
    """Return whether nobody can override the obstacle."""
    return kind in _FINAL


class TreeRemoval:
    """Removes trees. Methods raise `GitError`, `IgnoredFilesUnknown`, `JournalError`, OSError."""

    def __init__(self, store: Store, trees: Trees) -> None:
        self._store = store
        self._trees = trees

    # -- plan

    def plan(
        self,
        name: str,
        place: TreePlace,
        main: TreePlace | None,
        agents: Sequence[str],
        caches: Collection[str],
    ) -> RemovalPlan:
        """Record the uncommitted files of the tree at ``place``, and return the plan of its removal.

        - ``name``: its name.
        - ``main``: the repository's main tree.
        - ``agents``: the agents that work in it.
        - ``caches``: names of ignored files and folders that programs make again.
        """
        place = self._put_back(place)
        obstacles = [*_find_git_obstacles(place)]
        if agents:
            obstacles.append(Obstacle("agents", tuple(agents)))
        if any(is_final(each.kind) for each in obstacles):
            return RemovalPlan(name, place, tuple(obstacles))
        if not place.is_there:
            staged = _list_staged(place)
            obstacles += [Obstacle("staged", tuple(staged))] if staged else []
            return RemovalPlan(name, place, tuple(obstacles))
        uncommitted, unkept, stamps = self._record(place)
        obstacles += unkept
        if nested := _list_nested(place.tree):
            obstacles.append(Obstacle("nested", tuple(nested)))
        known = _Known(place, main, AddedFiles.read(place.git), caches)
        names = list_ignored_names(place.tree)
        own = {name: found for name in names if (found := known.list_unknown(name))}
        if own:
            unknown = (each for found in own.values() for each in found)
            obstacles.append(Obstacle("ignored", tuple(unknown)))
        disposable = tuple(each for each in names if each not in own)
        return RemovalPlan(name, place, tuple(obstacles), tuple(uncommitted), disposable, stamps)

    def _put_back(self, place: TreePlace) -> TreePlace:
        """Undo the first step of a removal that was killed."""
        aside = _aside(place.folder)
        if "gone" in place.words and os.path.lexists(os.path.join(aside, ".git")):
            os.rename(aside, place.folder)
            return place._replace(words=tuple(each for each in place.words if each != "gone"))
        return place

    def _record(self, place: TreePlace) -> tuple[list[str], list[Obstacle], dict[str, FileStamp | None]]:
        """Record the uncommitted files. Return their names, an obstacle if some are not recorded or not kept,
        and the stamps of all."""
        recorder = self._trees.tree_at(place.folder)
        if recorder is None:
            raise TreeGone(tree=place.id)
        self._trees.refresh(recorder)
        git = recorder.git
        changed, staged = git.list_changed(), git.list_staged()
        names = sorted({*changed, *staged, *self._list_hidden_changes(recorder)})
        long = [each for each in names if len(os.fsencode(each)) > MAX_PATH_BYTES]
        names = [each for each in names if each not in long]
        # What was recorded may have been changed back, or deleted, since.
        missing, awaited = self._wait_for_rows(recorder, {*names, *recorder.list_recorded()}, {*changed})
        if awaited:
            return names, [Obstacle("unrecorded", tuple(awaited))], {}
        both = [each for each in names if each in changed and each in staged]
        self._write_rows(recorder, missing, both)
        heads = zip(names, recorder.heads(names), strict=True)
        lost = [name for name, head in heads if head is not None and not self._is_kept(head)]
        # The journal has no symbolic links.
        lost += [name for name in names if os.path.islink(os.path.join(place.folder, name))]
        stamps = {name: recorder.stamp(name) for name in names}
        lost += long
        return names, [Obstacle("not_kept", tuple(lost))] if lost else [], stamps

    def _wait_for_rows(
        self, recorder: TreeRecorder, names: Collection[str], changed: Collection[str]
    ) -> tuple[list[str], list[str]]:
        """Wait while another process records the files ``names``, because only that process knows their
        authors. Return the files without a current row, and those that a stalled process still has to record.

        ``changed``: the files that differ from git's index.
        """
        checked = sorted(names)
        missing = self._list_unrecorded(recorder, checked)
        fewest, since = len(missing), time.monotonic()
        while missing and self._trees.is_recorded_elsewhere:
            quiet = time.monotonic() - since
            if quiet > _QUIET_SECONDS:
                awaited = self._list_awaited(recorder, missing, changed)
                if not awaited or quiet > _STALLED_SECONDS:
                    return missing, awaited
            time.sleep(_POLL_SECONDS + quiet * _POLL_SHARE)
            missing = self._list_unrecorded(recorder, checked)
            if len(missing) < fewest:
                fewest, since = len(missing), time.monotonic()
        return missing, []

    def _list_awaited(
        self, recorder: TreeRecorder, names: Sequence[str], changed: Collection[str]
    ) -> list[str]:
        """Return the files that the service must record: files with rows, untracked files, and texts that git
        does not have. ``names``: the unrecorded files.

        The service can leave out deletions, and texts that git has: a reset makes both. It does not watch
        ignored folders.
        """
        git, found = recorder.git, []
        index, tracked = git.list_index(), {}
        ignored = git.ignored_among([name for name in names if name not in index])
        names = [name for name in names if name not in ignored]
        for name, head in zip(names, recorder.heads(names), strict=True):
            entry, content = index.get(name), recorder.content(name)
            if head is not None:
                is_left_out = entry is not None and (entry.is_absent or entry.is_submodule)
                found += [] if is_left_out or recorder.is_before_revert(head, content) else [name]
            elif content is not None and entry is None:
                found.append(name)
            elif content is not None and name in changed:
                tracked[name] = content.checksum
        # A file can differ from the index only in its line ends or its time.
        texts = git.read_blobs(tracked, entries=index)
        own = [name for name, data in texts.items() if data is None or sha256(data) != tracked[name]]
        return sorted({*found, *own} - _find_in_git(git, own))

    def _list_unrecorded(self, recorder: TreeRecorder, names: Sequence[str]) -> list[str]:
        heads = zip(names, recorder.heads(names), strict=True)
        # A deleted file without a row needs one, too.
        return [name for name, head in heads if head is None or not is_current(head, recorder.content(name))]

    def _list_hidden_changes(self, recorder: TreeRecorder) -> list[str]:
        """Return the changed files that git does not compare, because they are marked as unchanged."""
        names = list_hidden(recorder.git)
        if not names:
            return []
        entries, found = recorder.git.list_index(), []
        texts = recorder.git.read_blobs(names, entries=entries)
        for name in names:
            content, data = recorder.content(name), texts.get(name)
            if content is None:
                # A sparse checkout leaves files out.
                found += [] if entries[name].is_absent else [name]
            elif (
                data is None
                or content.checksum != _describe(data).checksum
                or (content.executable != entries[name].executable)
            ):
                found.append(name)
        return found

    def _write_rows(self, recorder: TreeRecorder, names: Sequence[str], both: Sequence[str]) -> None:
        """Record the files ``names`` as external edits. ``both``: the names of files whose staged content
        differs from the content on disk. Staged content without a version is recorded first. The same applies
        to a deleted file without a row. Content that is recorded again keeps its author."""
        git = recorder.git
        staged = git.read_blobs([*both, *names])
        committed = git.read_blobs(names, "HEAD:") if names and git.read_state().head else {}
        with recorder.exclusive():
            for name in sorted({*names, *both}):
                (head,) = recorder.heads([name])
                content = recorder.content(name)
                drafts = [content]
                known = head if head is not None and is_current(head, content) else None
                data = staged.get(name)
                is_deleted = head is None and content is None
                if is_deleted and data is None:
                    data = committed.get(name)
                if data is not None and (name in both or is_deleted):
                    mode = content.executable if content is not None else False
                    before = _describe(data, executable=mode)
                    versions = self._store.journal.history(REPO, recorder.path(name))
                    if not any(is_current(row, before) for row in versions):
                        drafts.insert(0, before)
                for each in drafts:
                    if is_current(head, each):
                        continue
                    if each is not None and each.data is not None:
                        recorder.keep_blob(each.data)
                    again = known if each is content else None
                    grade = "external" if again is None else grade_of(again)
                    detail: dict[str, Json] = {GRADE: grade, **(each.detail if each else {})}
                    version = (head.version or 0) if head is not None else 0
                    text = each.text if each is not None else None
                    call = CallContext(OUTSIDE if again is None else again.actor, CHANGE)
                    draft = call.write(REPO, recorder.path(name), text, "", version, detail)
                    head = self._store.commits.commit(draft).row

    def _is_kept(self, head: Row) -> bool:
        return head.deleted or ("changed" not in head.detail and self._store.read_bytes(head) is not None)

    # -- remove

    def check(self, plan: RemovalPlan, *, force: bool) -> None:
        """Raise `TreeKept` if an obstacle of ``plan`` forbids the removal."""
        kinds = [each.kind for each in plan.obstacles if not force or is_final(each.kind)]
        if kinds:
            raise TreeKept(name=plan.name, reasons=", ".join(kinds))

    def keep_commits(self, plan: RemovalPlan) -> str:
        """Make a branch for commits that no branch has. Return its name, empty if no commit needs one."""
        if not any(each.kind == "commits" for each in plan.obstacles):
            return ""
        place = plan.place
        for number in range(1, 1000):
            name = f"{_KEPT}/{plan.name}" + (f"-{number}" if number > 1 else "")
            done = run_git(
                ("branch", "--no-track", name, place.head),
                folder=place.common,
                variables={"GIT_DIR": place.common},
                accepted=None,
            )
            if done.status == 0:
                return name
        raise GitError(reason=f"git branch {_KEPT}/{plan.name}")

    @contextlib.contextmanager
    def put_aside(self, plan: RemovalPlan) -> Iterator[str]:
        """Rename the folder of the tree, so that nothing is written into it by its path. Yields its new path,
        empty if there is no folder. Undone if the context fails.

        Raise `TreeKept` if the tree has changed since ``plan``.
        """
        place = plan.place
        if not place.is_there:
            yield ""
            return
        aside = _aside(place.folder)
        if os.path.lexists(aside):
            # The rest of a removal that was killed after git had forgotten the tree.
            delete_folder(aside)
        os.rename(place.folder, aside)
        try:
            git = GitTree(aside, place.git, place.common)
            names = {*git.list_changed(), *git.list_staged()}
            known = {name: stamp for name, stamp in plan.stamps.items() if stamp is not None}
            stamps = {name: _stamp(os.path.join(aside, name)) for name in plan.stamps}
            found = {name: stamp for name, stamp in stamps.items() if stamp is not None}
            if (
                not names <= plan.stamps.keys()
                or found.keys() != known.keys()
                or any(found[name] != (known[name].changed, known[name].size) for name in known)
            ):
                raise TreeKept(name=plan.name, reasons="changed")
            yield aside
        except BaseException:
            if not os.path.lexists(place.folder) and os.path.isdir(place.git):
                os.rename(aside, place.folder)
            raise

    def forget(self, plan: RemovalPlan) -> None:
        """Make git forget the tree. Its branch stays."""
        place = plan.place
        # Git removes only trees whose folder is theirs, or gone.
        remove_worktree(place.common, "" if "replaced" in place.words else place.folder, place.git)

    # -- restore

    def list_uncommitted(self, tree: GitTree, removed: Row) -> list[tuple[str, bytes | None, bool]]:
        """Return the files of a removed tree that differ from its commit: their names, their bytes (None for
        a deletion) and whether they are executable.

        - ``tree``: a tree of the repository.
        - ``removed``: the row of the removal.
        """
        gone = read_tree(removed.path, self._store.content(removed))
        rows = AgentCommits(self._store).list_uncommitted(tree, gone.id, gone.head, removed.seq)
        found = []
        for name, row in sorted(rows.items()):
            data = None if row.deleted else self._store.read_bytes(row)
            if row.deleted or data is not None:
                found.append((name, data, is_executable(row)))
        return found


class _Known:
    """The ignored files of a tree that are not lost with it.

    - ``added``: the files that it got when it was added.
    - ``caches``: names of files and folders that programs make again.
    """

    def __init__(
        self,
        place: TreePlace,
        main: TreePlace | None,
        added: AddedFiles,
        caches: Collection[str],
    ) -> None:
        self._place = place
        self._main = main
        # What was copied may have been edited. It is compared, file by file.
        self._names = {*added.linked, *({*added.made} - {*added.included})}
        self._caches = caches

    def list_unknown(self, name: str) -> list[str]:
        """Return the parts of the ignored file or folder ``name`` that would be lost with the tree: only the
        folder itself if all of it would be lost."""
        if self._has(name):
            return []
        if not name.endswith("/"):
            return [name]
        root = self._place.folder
        files = [
            os.path.relpath(os.path.join(folder, each), root)
            for folder, _, found in os.walk(os.path.join(root, name))
            for each in found
        ]
        unknown = [each for each in files if not self._has(each)]
        return [name] if files and len(unknown) == len(files) else sorted(unknown)

    def _has(self, name: str) -> bool:
        """Return whether the ignored file or folder ``name`` is not lost with the tree."""
        if name in self._names:
            return True
        if any(part in self._caches for part in name.rstrip("/").split("/")):
            return True
        return self._is_same(name)

    def _is_same(self, name: str) -> bool:
        """Return whether the main tree has the same file."""
        if self._main is None or name.endswith("/"):
            return False
        mine, other = (os.path.join(each.folder, name) for each in (self._place, self._main))
        if os.path.islink(mine) or os.path.islink(other):
            return os.path.islink(mine) and os.path.islink(other) and os.readlink(mine) == os.readlink(other)
        try:
            # A file with the same size and time as its original is not read: there can be many.
            return filecmp.cmp(mine, other)
        except FileNotFoundError:
            return False


def delete_folder(folder: str) -> None:
    """Delete ``folder``, even if folders in it are read-only, such as those of Go's modules."""
    try:
        shutil.rmtree(folder)
    except PermissionError:
        for each, _, _ in os.walk(folder):
            os.chmod(each, 0o700)
        shutil.rmtree(folder)


def remove_worktree(common: str, folder: str, git: str) -> None:
    """Remove a working tree from its repository. Its branch stays. Raise `GitError`, OSError.

    - ``common``: the git folder of all trees.
    - ``folder``: the folder of the tree, which is removed too. Empty if it is not the tree's any more.
    - ``git``: the git folder of the tree.
    """
    if folder:
        done = run_git(
            ("worktree", "remove", "--force", folder),
            folder=common,
            variables={"GIT_DIR": common},
            accepted=None,
        )
        if done.status == 0:
            return
        if os.path.lexists(os.path.join(git, "HEAD")):
            raise GitError(reason=reason_of(done))
        # Git has deleted the files that it found. Another process has made one since.
    _delete_git_folder(git)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(git))


def _delete_git_folder(git: str) -> None:
    """Delete the git folder of a tree, even if processes that record the tree make files in it meanwhile."""
    deadline = time.monotonic() + _DELETE_SECONDS
    while os.path.lexists(git):
        try:
            shutil.rmtree(git)
        except OSError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_POLL_SECONDS)


def _aside(folder: str) -> str:
    above, name = os.path.split(folder)
    return os.path.join(above, f".{name}{_ASIDE}")


def _find_git_obstacles(place: TreePlace) -> Iterator[Obstacle]:
    if place.is_main:
        yield Obstacle("main")
    if "locked" in place.words:
        yield Obstacle("locked")
    tree = place.tree
    if not tree.wait_for_git(_GIT_SECONDS):
        yield Obstacle("git_running")
    elif os.path.lexists(os.path.join(place.git, "index.lock")):
        yield Obstacle("index_locked", (os.path.join(place.git, "index.lock"),))
    unfinished = tuple(each for each in place.words if each in UNFINISHED)
    if unfinished:
        yield Obstacle("unfinished", unfinished)
    if place.head and not place.branch and not _is_reachable(place):
        yield Obstacle("commits", (place.head,))
    if not place.is_main and has_submodules(place.git):
        names = sorted(os.listdir(os.path.join(place.git, "modules")))
        yield Obstacle("submodules", tuple(names))


def _is_reachable(place: TreePlace) -> bool:
    """Return whether a branch, a tag or another ref contains the commit of HEAD."""
    done = run_git(
        ("for-each-ref", "--count=1", "--contains", place.head, "--format=%(refname)"),
        folder=place.common,
        variables={"GIT_DIR": place.common},
    )
    return bool(done.output.strip())


def _list_staged(place: TreePlace) -> list[str]:
    """Return the staged changes of a tree whose folder is gone."""
    if not place.head or not os.path.exists(os.path.join(place.git, "index")):
        return []
    done = run_git(
        ("diff-index", "--cached", "--name-only", "-z", place.head),
        folder=place.common,
        variables={"GIT_DIR": place.git},
    )
    return [os.fsdecode(each) for each in done.output.split(b"\0") if each]


def _list_nested(tree: GitTree) -> list[str]:
    """Return the folders of other repositories that git does not ignore."""
    done = run_git(
        ("ls-files", "--others", "--exclude-standard", "-z"),
        folder=tree.folder,
        variables={"GIT_DIR": tree.git, "GIT_WORK_TREE": tree.folder},
    )
    return [os.fsdecode(each) for each in done.output.split(b"\0") if each.endswith(b"/")]


def _find_in_git(tree: GitTree, names: Sequence[str]) -> set[str]:
    """Return those of the files ``names`` whose content is a blob of the repository."""

    def ask(*arguments: str, given: bytes) -> bytes:
        variables = {"GIT_DIR": tree.git, "GIT_WORK_TREE": tree.folder}
        return run_git(arguments, folder=tree.folder, variables=variables, given=given, accepted=None).output

    plain = [name for name in names if not _ODD_LINE.search(name)]
    blobs = ask("hash-object", "--stdin-paths", given=b"".join(os.fsencode(f"{each}\n") for each in plain))
    kinds = ask("cat-file", "--batch-check=%(objecttype)", given=blobs).splitlines()
    # There are fewer if a file was deleted in the meantime.
    return {name for name, kind in zip(plain, kinds, strict=False) if kind == b"blob"}


def _describe(data: bytes, *, executable: bool = False) -> FileContent:
    return describe_file(Inspected(FileStamp(0, 0, len(data)), 0, data, executable))


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return (found.st_ctime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else None
