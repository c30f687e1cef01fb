"""Linux: watches folders recursively with inotify(7).

Three properties of inotify shape this module:

- A watch covers one folder. A new folder is first watched and then listed, so that files created in between
  are not missed.
- An event can be older than the listing that already shows its effect. So an event about a folder only means
  that the folder must be listed again.
- An event about a folder that was moved away does not name the files in it. So the names of all files are
  kept in memory.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import count
from threading import Condition
from typing import Final

from inotify_simple import Event, INotify, flags, parse_events

from watchroom.platform.posix import TreeChanges

_COOKIE: Final = ".watchroom-cookie-"
"""Prefix of the files of `barrier`. Such files are never reported, even if another process created them."""
_COOKIE_NUMBERS: Final = count(1)
_MAX_COOKIES: Final = 3
"""Maximum number of files that one call of `barrier` creates."""

_IN_FOLDER: Final = int(
    flags.MODIFY
    | flags.CLOSE_WRITE
    | flags.ATTRIB
    | flags.CREATE
    | flags.DELETE
    | flags.MOVED_FROM
    | flags.MOVED_TO
    | flags.EXCL_UNLINK
    | flags.DONT_FOLLOW
    | flags.ONLYDIR
    | flags.MASK_ADD
)
_ITSELF: Final = int(flags.DELETE_SELF | flags.MOVE_SELF)
_ABOVE: Final = _ITSELF | int(flags.ONLYDIR | flags.MASK_ADD)
_ENTRIES: Final = int(flags.CREATE | flags.DELETE | flags.MOVED_FROM | flags.MOVED_TO | flags.ATTRIB)
_GONE: Final = _ITSELF | int(flags.UNMOUNT | flags.IGNORED)
_REMOVED: Final = int(flags.DELETE | flags.MOVED_FROM)
_REPLACED: Final = int(flags.CREATE | flags.DELETE | flags.MOVED_FROM | flags.MOVED_TO)

_READ_BYTES: Final = 1 << 16
"""Bytes of events that are read at once, about 2,000 events."""
_SKIPPED: Final = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG}
)
"""Errors for a folder that is missing or cannot be read. All other errors are errors of the watch."""


class _Folder:
    """A watched folder.

    - ``parent``: the parent folder, None for a folder that was given to `InotifyTree`.
    - ``name``: its name in ``parent``, or its absolute path.
    - ``path``: its absolute path. A folder that was moved gets a new object.
    - ``watch``: the kernel's number for its watch.
    - ``is_partial``: whether it, or a folder in it, could not be read.
    """

    __slots__ = ("files", "folders", "is_partial", "name", "parent", "path", "watch")

    def __init__(self, parent: _Folder | None, name: str) -> None:
        self.parent = parent
        self.name = name
        self.path: str = name if parent is None else os.path.join(parent.path, name)
        self.watch = -1
        self.files: set[str] = set()
        self.folders: dict[str, _Folder] = {}
        self.is_partial = False

    def lineage(self) -> Iterator[_Folder]:
        """Yield this folder, its parent, and so on."""
        folder: _Folder | None = self
        while folder is not None:
            yield folder
            folder = folder.parent


class _Root:
    """A folder or a file that was given to `InotifyTree`.

    - ``folder``: the watched folder, None while it is missing or unreadable, and for a file.
    - ``identity``: device and inode of the folder, or of the file's folder, when it was last watched. None if
      the folder did not exist.
    """

    def __init__(self, path: str, *, is_file: bool = False) -> None:
        self.path = path
        self.is_file = is_file
        self.folder: _Folder | None = None
        self.identity: tuple[int, int] | None = None

    def find_identity(self) -> tuple[int, int] | None:
        try:
            known = os.stat(os.path.dirname(self.path)) if self.is_file else os.lstat(self.path)
        except OSError:
            return None
        return (known.st_dev, known.st_ino) if stat.S_ISDIR(known.st_mode) else None

    @property
    def is_present(self) -> bool:
        return self.identity is not None if self.is_file else self.folder is not None


class InotifyTree:
    """Implements `TreeWatch`. See `Platform.watch_tree` for the arguments.

    Raises OSError if the system has no inotify, or no watches left.
    """

    def __init__(
        self,
        folders: Sequence[str],
        files: Sequence[str] = (),
        left_out: Callable[[Sequence[str]], Collection[str]] = lambda paths: (),
    ) -> None:
        self._left_out = left_out
        self._roots = [_Root(each) for each in _outermost(folders)]
        self._roots += [_Root(os.path.abspath(each), is_file=True) for each in files]
        self._folders: dict[int, _Folder] = {}
        self._above: dict[int, dict[str, str]] = {}
        """The watches of folders above the roots. Each has the names whose events count: with the path of a
        file, or empty for a folder that leads to a root."""
        self._changed: set[str] = set()
        self._is_complete = True
        self._overflows = 0
        self._cookies: set[str] = set()
        """Names of the cookies whose events were not read yet."""
        self._failure: OSError | None = None
        self._lock = Condition()
        """Guards all attributes, and reading from inotify."""
        self._waiting = 0
        self._is_open = True
        self._is_woken = False
        self._inotify = INotify(nonblocking=True)
        try:
            self._waker = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        except BaseException:
            self._inotify.close()
            raise
        try:
            self._find_roots()
        except BaseException:
            self.close()
            raise
        self.take()

    def wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        # A single poll object for all threads would refuse the second thread.
        poll = select.poll()
        with self._lock:
            if self._is_open:
                poll.register(self._inotify.fileno(), select.POLLIN)
                poll.register(self._waker, select.POLLIN)
            while self._is_open:
                with suppress(BlockingIOError):
                    os.eventfd_read(self._waker)
                self._read()
                remaining = deadline - time.monotonic()
                if self._has_news() or self._is_woken or remaining <= 0:
                    break
                self._waiting += 1
                self._lock.release()
                try:
                    poll.poll(remaining * 1000)
                finally:
                    self._lock.acquire()
                    self._waiting -= 1
                    self._lock.notify_all()
            self._is_woken = False
            if self._failure is not None:
                raise self._failure

    def take(self) -> TreeChanges:
        with self._lock:
            taken = TreeChanges(self._changed, self._is_complete)
            self._changed, self._is_complete = set(), True
            return taken

    def barrier(self, folder: str, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        overflows = self._overflows
        # The cookie's event is lost if an earlier event causes a new watch of the folder.
        is_read = any(self._read_cookie(folder, deadline) for _ in range(_MAX_COOKIES))
        return is_read and self._overflows == overflows and self._failure is None

    def _read_cookie(self, folder: str, deadline: float) -> bool:
        """Create a cookie, and read events until its event arrives. Return False if it does not."""
        name = f"{_COOKIE}{os.getpid()}-{next(_COOKIE_NUMBERS)}"
        self._cookies.add(name)
        try:
            _touch(os.path.join(folder, name))
            # The kernel has queued the cookie's events when these calls return.
            if not self._lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
                return False
            try:
                while self._is_open and name in self._cookies and time.monotonic() < deadline:
                    if not self._read():
                        break
                if self._has_news() or self._failure is not None:
                    self._interrupt()
            finally:
                self._lock.release()
            return name not in self._cookies
        except OSError:
            return False
        finally:
            self._cookies.discard(name)

    def wake(self) -> None:
        with self._lock:
            self._is_woken = True
            self._interrupt()

    def close(self) -> None:
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
            # It is never reset, so it ends the waits of all threads.
            os.eventfd_write(self._waker, 1)
            while self._waiting:
                self._lock.wait()
            self._inotify.close()
            os.close(self._waker)

    def _interrupt(self) -> None:
        """Make a waiting thread check again."""
        if self._is_open:
            os.eventfd_write(self._waker, 1)

    def _has_news(self) -> bool:
        return bool(self._changed) or not self._is_complete

    def _read(self) -> bool:
        """Handle the queued events. Return whether there were any."""
        if self._failure is not None:
            return False
        try:
            data = os.read(self._inotify.fileno(), _READ_BYTES)
        except BlockingIOError:
            return False
        try:
            for event in parse_events(data):
                self._handle(event)
        except OSError as error:
            # The remaining events are lost, and so are folders without a watch.
            self._failure = error
        return True

    def _handle(self, event: Event) -> None:
        watch, mask, _, name = event
        if mask & flags.Q_OVERFLOW:
            self._start_again()
            return
        folder, names = self._folders.get(watch), self._above.get(watch)
        if mask & flags.IGNORED:
            self._folders.pop(watch, None)
            self._above.pop(watch, None)
        elif folder is None and names is None:
            # A folder that was moved out, and whose watch was lost in an overflow.
            self._remove_watch(watch)
        if folder is not None and mask & _GONE:
            self._handle_gone(folder, mask)
        elif folder is not None and name:
            self._handle_entry(folder, mask, name)
        elif folder is not None and folder.parent is None and folder.is_partial:
            # It may now be readable.
            self._lose_root(folder, is_complete=True)
        if names is not None:
            self._handle_above(names, mask, name)

    def _handle_above(self, names: dict[str, str], mask: int, name: str) -> None:
        if name.startswith(_COOKIE):
            # Otherwise a barrier in a folder above a missing folder would claim that the missing folder is
            # watched.
            if mask & flags.CREATE and any(names.values()):
                self._cookies.discard(name)
        elif names.get(name):
            self._changed.add(names[name])
        elif mask & _GONE or name in names:
            for root in self._roots:
                if mask & flags.ATTRIB and root.folder is None and os.path.basename(root.path) == name:
                    # It may now be readable.
                    root.identity = None
            self._find_roots()

    def _handle_gone(self, folder: _Folder, mask: int) -> None:
        if folder.parent is None:
            self._lose_root(folder)
        elif mask & flags.IGNORED:
            self._enter_again(folder.parent, folder.name)

    def _handle_entry(self, folder: _Folder, mask: int, name: str) -> None:
        if name.startswith(_COOKIE):
            if mask & flags.CREATE:
                self._cookies.discard(name)
            return
        path = os.path.join(folder.path, name)
        self._changed.add(path)
        if not mask & flags.ISDIR:
            # The last event of an exchange of two files reports that the second file was moved away.
            is_gone = mask & _REMOVED and (mask & flags.DELETE or not _is_file(path))
            (folder.files.discard if is_gone else folder.files.add)(name)
            return
        known = folder.folders.get(name)
        if mask & _REPLACED or known is None or known.is_partial:
            self._enter_again(folder, name)

    # -- folders

    def _find_roots(self) -> None:
        """Watch roots that appeared or were replaced, drop missing roots, and watch the folders above the
        roots."""
        is_settled = False
        while not is_settled:
            is_settled = True
            for root in self._roots:
                identity = root.find_identity()
                if identity != root.identity:
                    is_settled = False
                    root.identity = identity
                    self._enter_root(root)
            before = self._above
            self._watch_above()
            # Check again, because a root may have appeared before the folder above it was watched.
            is_settled = is_settled and self._above == before

    def _enter_root(self, root: _Root) -> None:
        self._changed.add(root.path)
        if root.is_file:
            return
        if root.folder is not None:
            self._leave(root.folder)
            self._is_complete = False
        folder = _Folder(None, root.path)
        self._enter(folder, root.path)
        root.folder = folder if folder.watch >= 0 else None

    def _lose_root(self, folder: _Folder, *, is_complete: bool = False) -> None:
        for root in self._roots:
            if root.folder is folder:
                self._leave(folder)
                root.folder, root.identity = None, None
                self._is_complete = self._is_complete and is_complete
        self._find_roots()

    def _watch_above(self) -> None:
        """Watch the folders above the roots.

        Entries count in the nearest folder and, if the root is missing, in the folder above it. Two folders
        are needed, because the removal of a folder is reported late if a process has it open. For the other
        folders, only their own move or removal counts: entries of folders such as /tmp would cause constant
        wake-ups.
        """
        before, self._above = self._above, {}
        for root in self._roots:
            counted = 1 if root.is_present else 2
            above, name = os.path.split(root.path)
            # Links are resolved once. A later change of a link's target is not noticed.
            above, path = os.path.realpath(above), root.path if root.is_file else ""
            mask = _ENTRIES | flags.CLOSE_WRITE if root.is_file else _ENTRIES
            while True:
                watch = self._add_watch(above, _ABOVE | (mask if counted else 0))
                if watch is not None:
                    names = self._above.setdefault(watch, {})
                    if counted:
                        names[name] = path or names.get(name, "")
                        counted -= 1
                if above == os.path.dirname(above):
                    break
                above, name = os.path.split(above)
                path, mask = "", _ENTRIES
        for watch in before:
            if watch not in self._above and watch not in self._folders:
                self._remove_watch(watch)

    def _enter_again(self, parent: _Folder, name: str) -> None:
        """Drop the folder ``name`` if it is known, and watch the folder that is now there, if any."""
        path = os.path.join(parent.path, name)
        known = parent.folders.get(name)
        if known is not None:
            if not known.is_partial and self._add_watch(path, _IN_FOLDER) == known.watch:
                # A listing has found it, and the event of its creation is only read now.
                return
            self._leave(known)
        if os.path.isdir(path) and not os.path.islink(path) and not self._watched([path]):
            return
        self._enter(_Folder(parent, name), path)

    def _enter(self, folder: _Folder, path: str) -> None:
        """Watch ``folder`` at ``path`` and all folders in it. Report all their entries."""
        entered = [(folder, path)]
        while entered:
            folder, path = entered.pop()
            if not self._watch(folder, path):
                continue
            if folder.parent is not None:
                folder.parent.folders[folder.name] = folder
            found: list[str] = []
            try:
                with os.scandir(path) as entries:
                    for entry in entries:
                        if entry.name.startswith(_COOKIE):
                            continue
                        self._changed.add(entry.path)
                        if entry.is_dir(follow_symlinks=False):
                            found.append(entry.path)
                        else:
                            folder.files.add(entry.name)
            except OSError:
                folder.is_partial = True
            entered += [(_Folder(folder, os.path.basename(each)), each) for each in self._watched(found)]

    def _watched(self, folders: list[str]) -> list[str]:
        """Return the ``folders``, all found in one folder, that are to be watched."""
        left_out = self._left_out(folders) if folders else ()
        return [each for each in folders if each not in left_out]

    def _watch(self, folder: _Folder, path: str) -> bool:
        """Watch ``folder``. Return False if it is missing or cannot be read."""
        watch = self._add_watch(path, _IN_FOLDER | (_ITSELF if folder.parent is None else 0))
        known = None if watch is None else self._folders.get(watch)
        if known is not None:
            if known in folder.lineage():
                # A mount can show a folder within itself.
                return False
            # It was moved here, and the event of its old place is still queued.
            self._leave(known)
            watch = self._add_watch(path, _IN_FOLDER | (_ITSELF if folder.parent is None else 0))
        if watch is None:
            if folder.parent is not None and os.path.isdir(path) and not os.path.islink(path):
                folder.parent.is_partial = True
            return False
        folder.watch = watch
        self._folders[watch] = folder
        return True

    def _leave(self, folder: _Folder) -> None:
        """Report ``folder`` with all its entries, and drop it and all folders in it."""
        if folder.parent is not None:
            folder.parent.folders.pop(folder.name, None)
        left = [(folder, folder.path)]
        while left:
            folder, path = left.pop()
            self._changed.add(path)
            self._changed.update(os.path.join(path, each) for each in folder.files)
            left.extend((each, os.path.join(path, name)) for name, each in folder.folders.items())
            if self._folders.pop(folder.watch, None) is not None and folder.watch not in self._above:
                self._remove_watch(folder.watch)

    def _start_again(self) -> None:
        """Watch all folders again after an overflow.

        No watch is removed: each removal is an event, and many events could overflow the queue again.
        """
        self._overflows += 1
        self._is_complete = False
        self._folders.clear()
        self._above.clear()
        for root in self._roots:
            root.folder, root.identity = None, None
        self._find_roots()
        # The caller compares all files anyway.
        self._changed.clear()

    def _add_watch(self, path: str, mask: int) -> int | None:
        """Return the number of the new or changed watch, None if ``path`` is not a folder or cannot be read.
        Raise OSError."""
        try:
            return int(self._inotify.add_watch(path, mask))
        except OSError as error:
            if error.errno in _SKIPPED:
                return None
            raise

    def _remove_watch(self, watch: int) -> None:
        # The kernel has already removed the watch if the folder was removed.
        with suppress(OSError):
            self._inotify.rm_watch(watch)


def _outermost(folders: Sequence[str]) -> list[str]:
    """Return the absolute paths of ``folders``, without folders that are inside another one."""
    found: list[str] = []
    for path in sorted(os.path.abspath(each) for each in folders):
        # Parents sort before their contents.
        if not any(os.path.commonpath((path, each)) == each for each in found):
            found.append(path)
    return found


def _is_file(path: str) -> bool:
    """Return whether something other than a folder is at ``path``."""
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _touch(path: str) -> None:
    """Create and remove the file ``path``. Raise OSError."""
    made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.close(made)
    finally:
        os.unlink(path)
