"""`Trees`: the working trees of the workspace's repository, and the recording of their changes."""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable, Sequence
from threading import Condition, RLock
from typing import Final, NamedTuple

from watchroom.errors import JournalError, TreeGone, WatchroomError
from watchroom.features.config.store import Store
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.recorder import Busy, TreeRecorder, Window
from watchroom.features.trees.rows import is_landing_path, split_repo_path
from watchroom.features.trees.trials import is_trial
from watchroom.features.trees.watcher import TreeWatcher
from watchroom.features.trees.worktrees import list_worktrees
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.model import Appended, Row, Write
from watchroom.platform import Platform

FOLDER: Final = "watchroom"
"""The name of a workspace's folder in the git folder of its repository."""
_SCRATCH: Final = "trees"
MAX_LEASE_SECONDS: Final = 60.0
"""Age of a lease, in seconds, at which it no longer keeps others from writing."""
_LEASED_SECONDS: Final = 1.0
"""Seconds that the end of a command waits for agents that are writing changed files."""
_GIT_SECONDS: Final = 1.0
"""Maximum seconds that a call waits for a git command that is changing files."""
FOLLOW_SECONDS: Final = 30.0
"""Seconds between checks for new working trees."""
_MAX_ENDED: Final = 1000
"""Maximum number of ended commands that may have changed a tree which was not compared since."""
_log = logging.getLogger("watchroom")


class TreeFile(NamedTuple):
    """A file in a working tree: its tree, and its name there."""

    tree: TreeRecorder
    name: str

    @property
    def path(self) -> str:
        """The path of the file's rows."""
        return self.tree.path(self.name)


class Holder(NamedTuple):
    """The call of an agent that holds leases. ``call``: the id that the client gave it."""

    agent: str
    session: str
    call: str


class _Running(NamedTuple):
    """A running command.

    - ``number``: counts the beginnings and ends of commands.
    - ``rows``: the rows made since it began.
    """

    number: int
    rows: list[Row]


class _Ended(NamedTuple):
    """An ended command.

    - ``number``: see `_Running`.
    - ``trees``: the ids of the trees that were not compared since.
    - ``on_late``: called with the rows of their comparisons.
    """

    number: int
    trees: set[str]
    on_late: Callable[[list[Row]], object]


class Trees:
    """The working trees of a repository. Empty unless the workspace is in a repository. May be used from any
    thread.

    - ``store``: the rows.
    - ``root``: the workspace's folder, ``watchroom`` in the git folder that all trees share.
    - ``platform``: watches folders.
    - ``is_kept_elsewhere``: returns whether another process records changes. That process knows the running
      commands.
    """

    def __init__(
        self, store: Store, root: str, platform: Platform, is_kept_elsewhere: Callable[[], bool]
    ) -> None:
        self._store = store
        self._root = root
        self._platform = platform
        self._lock = RLock()
        self._recorders: dict[str, TreeRecorder] = {}
        """The recorders, by the real path of the tree's folder."""
        self._trials: set[str] = set()
        """Folders of trees that are not recorded, because they are copies for tries."""
        self._watchers: dict[str, TreeWatcher] = {}
        self._is_kept_elsewhere = is_kept_elsewhere
        self._is_kept = False
        self.is_open = True
        """False after `close`."""
        self._numbers = itertools.count()
        self._windows: dict[Window, _Running] = {}
        """The running commands."""
        self._uncompared: dict[Window, _Ended] = {}
        """The newest ended commands with trees that were not compared since, at most `_MAX_ENDED`."""
        self._listeners: list[Callable[[list[Row]], object]] = []
        self._leases: dict[tuple[str, str], dict[Holder, float]] = {}
        """By tree and name of the file: the holders, each with the time at which its lease began, by
        `time.monotonic`."""
        self._released = Condition(self._lock)

    @property
    def common(self) -> str:
        """The git folder that all trees share, empty if the workspace is in no repository."""
        above, name = os.path.split(self._root)
        is_git = name == FOLDER and os.path.isfile(os.path.join(above, "HEAD"))
        return above if is_git and os.path.isdir(os.path.join(above, "objects")) else ""

    def all(self) -> list[TreeRecorder]:
        """Return the trees whose folders exist, except copies for tries."""
        found = []
        for folder in self._list_folders():
            try:
                tree = self._open(folder)
            except (WatchroomError, OSError) as error:
                # The other trees are still recorded.
                _log.warning("%s is not recorded: %s", folder, error)
            else:
                found += [] if tree is None else [tree]
        return found

    def _list_folders(self) -> list[str]:
        common = self.common
        return [os.path.realpath(each) for each in list_worktrees(common)] if common else []

    def find(self, path: str) -> TreeFile | None:
        """Return the file at the absolute ``path``, even if it does not exist.

        None if the path is in no tree of this repository, or in another repository within a tree. Links in
        the path are followed, but not a link at its end.
        """
        if not self.common:
            return None
        folder, name = os.path.split(os.path.normpath(path))
        real = os.path.join(os.path.realpath(folder), name)
        for tree in sorted(self.all(), key=lambda each: len(each.git.folder), reverse=True):
            found = tree.name_of(real)
            if found is not None:
                return None if tree.is_nested(found) else TreeFile(tree, found)
        return None

    def tree_at(self, folder: str) -> TreeRecorder | None:
        """Return the tree that the absolute path ``folder`` is in, None if it is in no tree of this
        repository."""
        found = self.find(os.path.join(os.path.realpath(folder), "file"))
        return found.tree if found is not None else None

    def tree(self, tree: str) -> TreeRecorder | None:
        """Return the tree with this id, None if it was removed."""
        return next((each for each in self.all() if each.id == tree), None)

    def _open(self, folder: str) -> TreeRecorder | None:
        self._forget_replaced(folder)
        with self._lock:
            known = self._recorders.get(folder)
            if known is None and folder in self._trials:
                return None
            if known is None:
                git = GitTree.find(folder)
                if git is None:
                    raise FileNotFoundError(folder)
                if git.common != os.path.realpath(self.common):
                    # Another repository is in the place of a tree that was removed by hand.
                    return None
                if is_trial(git):
                    self._trials.add(folder)
                    return None
                scratch = os.path.join(self._root, CONTROL, _SCRATCH)
                known = self._recorders[folder] = TreeRecorder(self._store, git, scratch)
            if self._is_kept and folder not in self._watchers:
                known.git.recover()
                watcher = TreeWatcher(known, self._platform, lambda: self.record(known))
                self._watchers[folder] = watcher
                watcher.start()
            return known

    def _forget_replaced(self, folder: str) -> None:
        """Close the tree that was in ``folder`` if another one has replaced it."""
        with self._lock:
            known = self._recorders.get(folder)
            if known is None or not known.was_replaced():
                return
            del self._recorders[folder]
            self._note_compared(known.id, [*self._uncompared])
            watcher = self._watchers.pop(folder, None)
        # Without the lock, because a thread that records in the tree needs it.
        known.close()
        if watcher is not None:
            watcher.stop()

    def keep(self) -> None:
        """Start recording changes in all trees. This process becomes the only recorder."""
        with self._lock:
            self._is_kept = True
        self.look_after()

    def look_after(self) -> None:
        """Begin to record new trees, and forget trees whose folders no longer exist."""
        there = {tree.git.folder for tree in self.all()} | {*self._list_folders()}
        with self._lock:
            gone = [folder for folder in self._recorders if folder not in there]
            for folder in gone:
                self._note_compared(self._recorders[folder].id, [*self._uncompared])
            closing = [self._watchers.pop(each) for each in gone if each in self._watchers]
            recorders = [self._recorders.pop(each) for each in gone]
        for watcher in closing:
            watcher.close()
        for recorder in recorders:
            recorder.close()

    def close(self) -> None:
        """Stop recording, and close all folders."""
        with self._lock:
            self._is_kept = self.is_open = False
            watchers, recorders = [*self._watchers.values()], [*self._recorders.values()]
            self._watchers.clear()
            self._recorders.clear()
        for watcher in watchers:
            watcher.close()
        for recorder in recorders:
            recorder.close()

    # -- recording

    def refresh(self, tree: TreeRecorder, holder: Holder | None = None) -> list[Row]:
        """Record every change in ``tree`` that was made before this call. Return the rows.

        ``holder``: the files that it has leased are compared too, because it has not written them yet.

        While a git command changes files, wait at most a second. Then compare only the files leased by
        ``holder``, because half of a checkout would look like the work of somebody else.
        """
        is_whole = tree.git.wait_for_git(_GIT_SECONDS)
        with self._lock:
            watcher = self._watchers.get(tree.git.folder)
        if watcher is None:
            tree.suspect_all()
        else:
            watcher.sync()
        return self.record(tree, holder, is_whole=is_whole)

    def record(self, tree: TreeRecorder, holder: Holder | None = None, *, is_whole: bool = True) -> list[Row]:
        """Record the changes in ``tree`` that were noticed, see `refresh`. Return the rows; none if another
        process records changes, or the tree is gone.

        ``is_whole``: all changes, not only those of files that ``holder`` has leased.
        """
        if self.is_recorded_elsewhere or tree.was_replaced():
            return []
        windows: list[Window] = []
        compared: list[Window] = []
        late: list[Callable[[list[Row]], object]] = []
        committed: list[Row] = []

        def find_busy() -> Busy:
            with self._lock:
                ended = {
                    each: left.number for each, left in self._uncompared.items() if tree.id in left.trees
                }
                compared[:] = ended if is_whole else ()
                # Rows name the last command of their agent: the newest to end, unless another began later.
                numbers = {each: running.number for each, running in self._windows.items()} | ended
                windows[:] = sorted(numbers, key=numbers.__getitem__)
                held = {name: by for (each, name), by in self._leases.items() if each == tree.id}
                own = {name for name, by in held.items() if holder in by}
                return Busy(windows, held.keys() - own, own, is_whole)

        def add_to_windows(rows: list[Row]) -> None:
            committed.extend(rows)
            # This must precede the closing of a window by another thread: the window would miss the rows.
            with self._lock:
                for window in windows:
                    if window in self._windows:
                        self._windows[window].rows.extend(rows)
                    elif window in self._uncompared:
                        late.append(self._uncompared[window].on_late)

        try:
            rows = tree.record(find_busy, add_to_windows)
            if not tree.needs_look:
                self._note_compared(tree.id, compared)
            return rows
        finally:
            if committed:
                self.publish(committed)
                for on_late in late:
                    on_late(committed)

    def _note_compared(self, tree: str, windows: Sequence[Window]) -> None:
        """Note that ``tree`` was compared after the commands of ``windows`` had ended."""
        with self._lock:
            for window in windows:
                left = self._uncompared.get(window)
                if left is not None:
                    left.trees.discard(tree)
                    if not left.trees:
                        del self._uncompared[window]

    def publish(self, rows: list[Row]) -> None:
        """Call the listeners with the ``rows`` of changes."""
        with self._lock:
            listeners = [*self._listeners]
        for listener in listeners:
            listener(rows)

    def subscribe(self, listener: Callable[[list[Row]], object]) -> None:
        """Call ``listener`` with the rows of all changes that this process records."""
        with self._lock:
            self._listeners.append(listener)

    @property
    def is_recorded_elsewhere(self) -> bool:
        """Whether another process records changes."""
        return not self._is_kept and self._is_kept_elsewhere()

    def refresh_all(self) -> list[Row]:
        """Call `refresh` for all trees. Return the rows. Trees in which git fails are left out."""
        return self._record_all(self.refresh)

    def _record_all(self, record: Callable[[TreeRecorder], list[Row]]) -> list[Row]:
        """Call ``record`` for all trees. Return the rows. Raise `JournalError`."""
        rows: list[Row] = []
        for tree in self.all():
            try:
                rows += record(tree)
            except JournalError:
                raise
            except WatchroomError as error:
                # The other trees are still recorded.
                _log.warning("changes in %s could not be recorded: %s", tree.git.folder, error.message())
        return rows

    # -- commands

    def open_window(self, window: Window) -> None:
        """Remember that a command runs. Changes from now on may be its work."""
        self.refresh_all()
        with self._lock:
            self._windows.setdefault(window, _Running(next(self._numbers), []))

    def close_window(self, window: Window, on_late: Callable[[list[Row]], object]) -> list[Row]:
        """Record the changes made while the command of ``window`` ran, and note that it has ended.

        Return the rows of all changes since it began; none if it was not open. Changed files that other
        agents are writing are compared after the write, or after a second. A tree that cannot be compared
        now, because git is changing files or the journal refuses rows, is compared later, or when this is
        called again. Until then its changes still count as made while the command ran, see `is_uncompared`.

        ``on_late``: called with the rows of a later comparison, and with all rows if this raises an error.
        """
        with self._lock:
            if window not in self._windows and window not in self._uncompared:
                return []
        deadline = time.monotonic() + _LEASED_SECONDS
        try:
            self._note_uncompared(window, on_late)
            self.refresh_all()
            while self._has_leased_suspects() and time.monotonic() < deadline:
                with self._released:
                    self._released.wait(deadline - time.monotonic())
                self._record_all(lambda tree: self.record(tree, is_whole=not tree.git.is_changing()))
        except BaseException:
            on_late(self._end_window(window))
            raise
        return self._end_window(window)

    def _end_window(self, window: Window) -> list[Row]:
        """Remove ``window`` from the running commands. Return its rows."""
        with self._lock:
            running = self._windows.pop(window, None)
            left = self._uncompared.get(window)
            for folder, watcher in self._watchers.items():
                if left is not None and self._recorders[folder].id in left.trees:
                    watcher.request()
        return running.rows if running is not None else []

    def is_uncompared(self, window: Window) -> bool:
        """Return whether the command of ``window`` has ended, and a tree was not compared since."""
        with self._lock:
            return window in self._uncompared

    def _note_uncompared(self, window: Window, on_late: Callable[[list[Row]], object]) -> None:
        """Note that no tree was compared since the command of ``window`` ended."""
        trees = {tree.id for tree in self.all()}
        if trees and not self.is_recorded_elsewhere:
            with self._lock:
                self._uncompared[window] = _Ended(next(self._numbers), trees, on_late)
                if len(self._uncompared) > _MAX_ENDED:
                    del self._uncompared[next(iter(self._uncompared))]

    def _has_leased_suspects(self) -> bool:
        with self._lock:
            leased = [*self._leases]
        return any(tree.suspects([name for own, name in leased if own == tree.id]) for tree in self.all())

    # -- leases

    def lease(self, file: TreeFile, holder: Holder, seconds: float) -> Holder | None:
        """Give ``holder`` the exclusive right to write ``file``. Wait at most ``seconds`` for another holder.

        Return the other holder if it still has the lease, else None. A lease keeps others from writing for at
        most a minute, because a client may drop a call without reporting this. Until it is released, changes
        of the file are not recorded, because they may be the work of its call.
        """
        key = (file.tree.id, file.name)
        with self._released:
            self._released.wait_for(lambda: self._find_other(key, holder) is None, seconds)
            other = self._find_other(key, holder)
            if other is None:
                self._leases.setdefault(key, {})[holder] = time.monotonic()
            return other

    def _find_other(self, key: tuple[str, str], holder: Holder) -> Holder | None:
        """Return the call that keeps ``holder`` from writing, None if there is none."""
        latest = time.monotonic() - MAX_LEASE_SECONDS
        # A client makes the calls of one session for one file in turn.
        others = (
            each
            for each, began in self._leases.get(key, {}).items()
            if (each.agent, each.session) != (holder.agent, holder.session) and began >= latest
        )
        return next(others, None)

    def release(self, should_end: Callable[[Holder], bool]) -> None:
        """End the leases of the holders for which ``should_end`` returns True. Changes by others in these
        files are recorded soon."""
        with self._released:
            trees = set()
            for key, held in [*self._leases.items()]:
                for holder in [each for each in held if should_end(each)]:
                    del held[holder]
                    trees.add(key[0])
                if not held:
                    del self._leases[key]
            for folder, watcher in self._watchers.items():
                if self._recorders[folder].id in trees:
                    watcher.request()
            self._released.notify_all()

    # -- writing

    def write(self, draft: Write) -> Appended:
        """Write a file into its tree, and commit ``draft`` as its version. Return the outcome.

        An external edit that has no row yet is recorded first, so that ``draft`` conflicts with it. The texts
        of a landing conflict are only committed, because no tree has a file for them. Raise `FolderDenied`,
        `TreeGone`.
        """
        if is_landing_path(draft.path):
            return self._store.write(draft)
        tree, name = split_repo_path(draft.path)
        found = self.tree(tree)
        if found is None:
            raise TreeGone(tree=tree)
        self.refresh(found)
        return found.write_version(name, draft)

    def materialize_revert(self, tree: str, name: str) -> None:
        """Write the newest version of the file ``name`` into its tree, if a revert made it and the file is
        unchanged since.

        Do nothing if the tree was removed. Raise `FolderDenied`.
        """
        found = self.tree(tree)
        if found is not None:
            found.materialize_revert(name)
