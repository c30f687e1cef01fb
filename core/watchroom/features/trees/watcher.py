"""`TreeWatcher`: notices changes in a working tree. `TreeWatcher.sync` waits until all earlier changes are
noticed."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Sequence
from threading import Condition, Lock, Thread
from typing import Final

from watchroom.errors import WatchroomError
from watchroom.features.tasks.ignored_files import list_ignored
from watchroom.features.trees.recorder import TreeRecorder
from watchroom.platform import Platform, TreeWatch

_QUIET_SECONDS: Final = 0.05
"""Seconds without further changes after which changes are recorded."""
_LONGEST_SECONDS: Final = 0.5
"""Maximum seconds from a change to its recording, so that few texts are overwritten before they are
recorded."""
_MOVE_SECONDS: Final = 0.3
"""Seconds after a write of the index in which git also moves HEAD."""
_BARRIER_SECONDS: Final = 1.0
_WAIT_SECONDS: Final = 300.0
"""Seconds between comparisons of the whole tree. Some changes are not reported, such as a mount."""
UNWATCHED_SECONDS: Final = 30.0
"""Seconds between comparisons of a tree that cannot be watched, such as on a network file system."""
_RETRY_SECONDS: Final = 5.0
_GIT: Final = ".git"
_IGNORE_FILE: Final = ".gitignore"
_log = logging.getLogger("watchroom")


class TreeWatcher:
    """Passes changed files to ``recorder`` on one thread, from `start` until `close`.

    - ``platform``: watches folders. If it cannot, each `sync` causes a comparison of the whole tree.
    - ``record``: called to record the changes.
    """

    def __init__(self, recorder: TreeRecorder, platform: Platform, record: Callable[[], object]) -> None:
        self._recorder = recorder
        self._platform = platform
        self._record = record
        self._watch: TreeWatch | None = None
        self._turn = Condition()
        self._is_open = True
        self._is_requested = False
        self._noticing = Lock()
        """Held until the changes taken by one thread are suspects, and by the attributes below."""
        self._has_news = False
        self._has_new_rules = False
        """Whether the thread has not seen all changes, and whether rules of ignored files are among them."""
        self._thread: Thread | None = None
        self._ignored: set[str] = set()
        self._is_settled = False
        """Whether all folders that existed at the start are watched."""

    def start(self) -> None:
        """Begin to watch. A comparison of the whole tree finds the changes since the last comparison."""
        self._watch = self._open()
        self._thread = Thread(target=self._run, name="watchroom-tree", daemon=True)
        self._thread.start()

    def request(self) -> None:
        """Record the noticed changes soon, without waiting for further changes."""
        with self._turn:
            self._is_requested = True
            self._turn.notify_all()
        if self._watch is not None:
            self._watch.wake()

    def stop(self) -> None:
        """Tell the thread to end. Do not wait for it."""
        with self._turn:
            self._is_open = False
            self._turn.notify_all()
        if self._watch is not None:
            self._watch.wake()

    def close(self) -> None:
        """Stop watching."""
        self.stop()
        if self._thread is not None:
            self._thread.join()
        if self._watch is not None:
            self._watch.close()

    def sync(self) -> None:
        """Wait until the recorder has every change made before this call as a suspect."""
        watch = self._watch
        if watch is None or not watch.barrier(self._recorder.git.git, _BARRIER_SECONDS):
            self._recorder.suspect_all()
            return
        if self._notice(watch):
            # The thread records what the caller does not, such as files that an agent is writing.
            watch.wake()

    def _notice(self, watch: TreeWatch) -> bool:
        """Make the files that changed suspects. Return whether there are any."""
        with self._noticing:
            paths, is_complete = watch.take()
            has_new_rules = any(os.path.basename(each) == _IGNORE_FILE for each in paths)
            self._recorder.suspect(paths)
            if has_new_rules or not is_complete:
                self._recorder.suspect_all()
            has_news = bool(paths) or not is_complete
            self._has_news |= has_news
            self._has_new_rules |= has_new_rules
            return has_news

    def _open(self) -> TreeWatch | None:
        """Begin to watch. Return None if the tree cannot be watched."""
        git = self._recorder.git
        folder = git.folder
        self._is_settled = False
        files = [os.path.join(git.git, name) for name in ("HEAD", "index")]
        try:
            self._ignored = {os.path.join(folder, *parts) for parts in list_ignored(folder).folders}
            watch = self._platform.watch_tree([folder], files, left_out=self._find_left_out)
        except (OSError, WatchroomError) as error:
            _log.warning("%s is not watched: %s", folder, error)
            return None
        self._is_settled = True
        return watch

    def _find_left_out(self, folders: Sequence[str]) -> Collection[str]:
        """Return the ``folders`` that are not watched: git's own folders, other repositories, and ignored
        folders."""
        left_out = {
            each
            for each in folders
            if os.path.basename(each) == _GIT
            or each in self._ignored
            or os.path.lexists(os.path.join(each, _GIT))
        }
        if self._is_settled:
            # The folders at the start are known; git is asked about new folders. Not the recorder's process:
            # if it did not know the newest patterns, a folder would never be watched.
            new = [each for each in folders if each not in left_out]
            root = self._recorder.git.folder
            names = {os.path.relpath(each, root): each for each in new}
            try:
                left_out |= {names[name] for name in self._recorder.git.ignored_among(list(names))}
            except WatchroomError as error:
                _log.warning("%s", error)
        return left_out

    def _run(self) -> None:
        # Not in `start`: its caller has locks for which a thread that records may wait.
        self._recorder.suspect_all()
        while self._is_open:
            try:
                self._record_at_rest()
                self._recorder.blobs.start()
                self._follow()
            except Exception as error:  # noqa: BLE001  # whatever fails, changes are recorded once it works again
                reason = error.message() if isinstance(error, WatchroomError) else repr(error)
                _log.warning("changes in %s could not be recorded: %s", self._recorder.git.folder, reason)
                self._recorder.suspect_all()
                with self._turn:
                    self._turn.wait_for(lambda: not self._is_open, _RETRY_SECONDS)
        if self._watch is not None:
            self._watch.close()

    def _record_at_rest(self) -> None:
        """Record the changes so far, once git changes no files: half of a checkout would look like the work
        of somebody else."""
        while self._is_open and not self._recorder.git.wait_for_git(_BARRIER_SECONDS):
            pass
        if self._is_open:
            self._record()

    def _follow(self) -> None:
        """Collect changes, and record them once no more arrive. If the tree is not watched, return after
        `UNWATCHED_SECONDS`, or upon a request."""
        watch = self._watch
        if watch is None:
            with self._turn:
                self._turn.wait_for(lambda: self._is_requested or not self._is_open, UNWATCHED_SECONDS)
                self._is_requested = False
            self._recorder.suspect_all()
            return
        began = time.monotonic() if self._recorder.needs_look else None
        """The time of the first unrecorded change."""
        locked = -_MOVE_SECONDS
        """The time at which git was last seen changing files."""
        while self._is_open:
            watch.wait(_WAIT_SECONDS if began is None else _QUIET_SECONDS)
            self._notice(watch)
            with self._noticing:
                has_more, self._has_news = self._has_news, False
                has_new_rules, self._has_new_rules = self._has_new_rules, False
            if has_new_rules:
                # The ignored folders may be different now. Changes until the new watch begins are not seen.
                watch.close()
                self._watch = watch = self._open()
                self._recorder.suspect_all()
                if watch is None:
                    return
            now = time.monotonic()
            if began is None and (has_more or self._is_requested):
                began = now
            if began is not None and self._recorder.git.is_changing():
                # Half of a checkout would look like the work of somebody else.
                locked = now
            is_due = began is not None and (not has_more or now - began > _LONGEST_SECONDS)
            if is_due and now - locked > _MOVE_SECONDS:
                self._is_requested = False
                self._record()
                # Git has begun to change files.
                began = now if self._recorder.needs_look else None
