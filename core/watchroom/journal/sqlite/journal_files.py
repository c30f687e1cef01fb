"""Notices that the journal's files were removed or replaced while they are open, and puts the journal back.

SQLite goes on to use removed files: what it writes there no other process sees. The next process makes a
second write-ahead log, and of two logs the one that is written back later wins. Git does this (``git clean``,
``git stash``, ``git checkout``), and so do cleaners.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
import time
from contextlib import closing, suppress
from typing import Final, Literal, TypeAlias

from watchroom.errors import JournalError
from watchroom.journal.errors import JournalReplaced

Relation: TypeAlias = Literal["same", "longer", "shorter", "different", "damaged"]
"""How the journal at the path compares with the one that is open: it holds the same rows, more, or fewer;
each holds rows that the other has not; or it cannot be read."""
_SUFFIXES: Final = ("", "-wal", "-shm")
_RETIRED: Final = "SELECT 1 FROM sqlite_master WHERE type='trigger' AND name='rows_were_moved'"
_TICK_NS: Final = 100_000_000
"""Nanoseconds; Linux counts the times of files in steps of up to 10 ms."""
_COARSE_TICK_NS: Final = 3_000_000_000
"""Of file systems that count in seconds, such as FAT: two of them."""
_Identity: TypeAlias = "tuple[int, int] | None"
_log = logging.getLogger("watchroom")


class JournalFiles:
    """The files of the journal at ``path`` as they are now, which a connection has just opened.

    Device and inode identify a file. An inode is not used again while a file is open. They are never
    opened here: closing one drops the locks that SQLite holds on it.
    """

    def __init__(self, path: str) -> None:
        self._paths = tuple(path + suffix for suffix in _SUFFIXES)
        self._folder = os.path.dirname(path) or "."
        self._known = self._identify()
        self._stamp: tuple[int, int] | None = None
        """The inode and the time of change of the folder when the files were last seen in place."""

    def are_in_place(self) -> bool:
        """Whether the paths still name these files.

        Removing or renaming a file changes its folder's time, which costs one call of the system to ask for
        instead of three: 5 µs beside a commit of 50 µs without a sync.
        """
        try:
            folder = os.stat(self._folder)
        except OSError:
            return False
        stamp = folder.st_ino, folder.st_mtime_ns
        if stamp == self._stamp:
            return True
        are_known = self._identify() == self._known
        # A second change within one tick of the file system's clock leaves the same time.
        tick = _TICK_NS if folder.st_mtime_ns % 1_000_000_000 else _COARSE_TICK_NS
        is_settled = abs(time.time_ns() - folder.st_mtime_ns) > tick
        self._stamp = stamp if are_known and is_settled else None
        return are_known

    def find_displaced(self) -> list[str]:
        """The names of the files that were removed or replaced."""
        pairs = zip(self._paths, self._known, self._identify(), strict=True)
        return [os.path.basename(path) for path, known, found in pairs if known != found]

    @property
    def is_mixed(self) -> bool:
        """Whether another database stands beside this one's log: SQLite would read both as one."""
        (database, log, _), (other, found, _) = self._known, self._identify()
        return other not in (None, database) and found == log

    @property
    def is_other_database(self) -> bool:
        """Whether another database stands at the path."""
        return self._identify()[0] not in (None, self._known[0])

    def _identify(self) -> tuple[_Identity, ...]:
        return tuple(map(_identify, self._paths))


def _identify(path: str) -> _Identity:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def restore_journal(connection: sqlite3.Connection, path: str, files: JournalFiles) -> None:
    """Put the journal that ``connection`` has open back at ``path``, from which ``files`` were displaced.

    If the journal there holds all rows of this one, it stays. The connection is of no use afterwards: see
    `abandon`. The caller holds the lock of those who append.

    Raises `JournalReplaced` if each of the two holds rows that the other has not, or if the folder is gone.
    Then the rows of ``connection`` are kept in a copy. Raises `JournalError`, OSError.
    """
    names = ", ".join(files.find_displaced())
    if not os.path.isdir(os.path.dirname(path)):
        raise JournalReplaced(file=names, kept=_copy(connection, _copy_elsewhere(path)))
    kept = _copy(connection, f"{path}.kept-{time.time_ns():x}")
    try:
        is_whole = connection.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]
        relation = _compare(kept, path, files) if is_whole else "different"
        if relation == "different":
            raise JournalReplaced(file=names, kept=kept)
        _log.warning("%s was removed or replaced, and is put back (%s)", names, relation)
        if relation == "longer" and files.is_other_database:
            os.unlink(kept)
        else:
            _put_back(kept, path, is_damaged=relation == "damaged")
    except JournalReplaced:
        raise
    except BaseException:
        # It is tried again, with another copy.
        with suppress(FileNotFoundError):
            os.unlink(kept)
        raise


def _put_back(kept: str, path: str, *, is_damaged: bool) -> None:
    """Move ``kept`` to ``path``. What ``is_damaged`` there is kept under another name."""
    if is_damaged:
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                os.rename(path + suffix, f"{path}.replaced{kept.removeprefix(f'{path}.kept')}{suffix}")
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(path + suffix)
    os.replace(kept, path)
    _sync_folder(os.path.dirname(path))


def is_retired(connection: sqlite3.Connection) -> bool:
    """Whether the journal was moved to another backend, after which its files are renamed."""
    return connection.execute(_RETIRED).fetchone() is not None


def abandon(connection: sqlite3.Connection) -> None:
    """Leave ``connection`` open until the process ends.

    Closing it would write its log back into the database, and remove the log at the path, which is another
    process's by now. Nothing but its descriptors is lost.
    """
    # Slow to load, and seldom needed.
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _compare(kept: str, path: str, files: JournalFiles) -> Relation | None:
    """How the journal at ``path`` compares with the copy ``kept``; None if none is there.

    If it holds more, and the database is the one that is open here, ``kept`` becomes a copy of it. Another
    process reads it: within this one SQLite would use the index of the removed log for the new one.
    """
    # Slow to load, and seldom needed.
    import subprocess

    if not os.path.exists(path):
        return None
    if files.is_mixed:
        return "damaged"
    command = [sys.executable, "-m", "watchroom.journal.sqlite.comparison_process", kept, path]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True)
    relations: tuple[Relation, ...] = ("same", "longer", "shorter", "different", "damaged")
    found = next((each for each in relations if each == done.stdout.strip()), None)
    if done.returncode != 0 or found is None:
        raise JournalError(reason=f"{os.path.basename(path)} could not be compared: {done.stderr[-500:]}")
    return found


def _copy(connection: sqlite3.Connection, target: str) -> str:
    """Copy all that ``connection`` sees to the file ``target``, durably; return ``target``."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(sqlite3.connect(target)) as copy:
            connection.backup(copy)
        _sync_folder(os.path.dirname(target))
    except BaseException:
        os.unlink(target)
        raise
    return target


def _copy_elsewhere(path: str) -> str:
    """Where the rows of a journal are kept whose folder is gone."""
    from platformdirs import user_state_path

    folder = user_state_path("watchroom", appauthor=False) / "kept"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return str(folder / f"{os.path.basename(path)}.kept-{time.time_ns():x}")


def _sync_folder(folder: str) -> None:
    entry = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(entry)
    finally:
        os.close(entry)
