"""``history.json`` of every collaborative file: whole JSON at every moment, at a cost that stays flat.

A short history is rewritten with its commit. A long one is written behind the commits by one thread,
many versions at a time. Until then a marker file says that it is behind, so that whoever opens the
workspace after a crash catches up.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Lock, Thread
from typing import Final

from watchroom.checkout.layout import (
    CONTROL,
    HISTORY_END,
    HISTORY_START,
    history_line,
    history_place,
    history_text,
)
from watchroom.disk import Folder
from watchroom.errors import WorkspaceLocked
from watchroom.journal import Journal
from watchroom.locks import ProcessLock, incarnation, is_running
from watchroom.model import Row

SHORT: Final = 64
"""Up to this many versions, the history is rewritten with the commit."""

_CACHED: Final = 256
_PAUSE: Final = 0.2
_BEHIND: Final = "behind"

_log = logging.getLogger("watchroom")


class Histories:
    """Writes histories. `add` is called by one thread at a time; `close` catches up with all."""

    def __init__(self, folder: Folder, journal: Journal, control: str) -> None:
        self._folder = folder
        # The thread that writes behind has a folder of its own: one is not for two threads.
        self._behind_folder = Folder(folder.root, folder.scratch)
        self._journal = journal
        # A long history is written by one thread of one process at a time.
        self._lock = ProcessLock(os.path.join(control, "behind.lock"))
        self._turn = Lock()
        self._lines: OrderedDict[str, list[str]] = OrderedDict()
        self._changed = Condition()
        self._behind: set[str] = set()
        self._closing = False
        self._thread: Thread | None = None

    def add(self, row: Row) -> None:
        """Take in the newest version of a path."""
        version = row.version or 0
        if version > SHORT:
            self._fall_behind(row.path)
            return
        lines = self._lines.pop(row.path, None)
        if lines is None or len(lines) != version - 1:
            lines = [
                history_line(each) for each in self._journal.history("collab", row.path, limit=version - 1)
            ]
        lines.append(history_line(row))
        self._folder.write(history_place(row.path), history_text(lines))
        if version < SHORT:
            self._lines[row.path] = lines
            if len(self._lines) > _CACHED:
                self._lines.popitem(last=False)

    def rewrite(self, path: str) -> None:
        """Lay the whole history out anew from the journal."""
        self._lines.pop(path, None)
        with self._turn, self._locked():
            lines = [history_line(row) for row in self._journal.history("collab", path)]
            self._folder.write(history_place(path), history_text(lines))

    def catch_up_after_crash(self) -> None:
        """Write the histories that a process which is gone left behind."""
        for entry in list(self._folder.walk((CONTROL, _BEHIND))):
            if is_running(entry.parts[-1].partition("-")[0]):
                continue
            path = self._folder.read(entry.parts)
            if path is not None:
                self._catch_up(path.decode())
            self._folder.remove(entry.parts)

    def is_behind(self, path: str) -> bool:
        """Whether a process has yet to write this history."""
        digest = _digest(path)
        return any(entry.parts[-1].endswith(digest) for entry in self._folder.walk((CONTROL, _BEHIND)))

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread:
            self._thread.join()
        self._behind_folder.close()
        self._lock.close()

    def _fall_behind(self, path: str) -> None:
        with self._changed:
            if path in self._behind:
                return
            self._folder.write(_marker(path), path.encode())
            self._behind.add(path)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="watchroom-histories", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._behind)
                if self._closing and not self._behind:
                    return
                self._changed.wait_for(lambda: self._closing, timeout=_PAUSE)
                paths, self._behind = self._behind, set()
            for path in paths:
                try:
                    self._catch_up(path)
                except (OSError, WorkspaceLocked):
                    # The marker stays: the next to open the workspace tries again, `verify` tells meanwhile.
                    _log.exception("history of %r could not be written", path)
                    continue
                with self._changed:
                    if path not in self._behind:
                        self._behind_folder.remove(_marker(path))

    def _catch_up(self, path: str) -> None:
        """Add the versions that the file lacks, keeping the bytes that it has."""
        with self._turn, self._locked():
            data = self._behind_folder.read(history_place(path)) or b""
            kept, last = _kept(data)
            new = self._journal.history("collab", path, after_version=last)
            if new or not data:
                added = ",\n".join(history_line(row) for row in new).encode()
                joint = b",\n" if last and new else b""
                self._behind_folder.write(history_place(path), kept + joint + added + HISTORY_END)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()


def _kept(data: bytes) -> tuple[bytes, int]:
    """The bytes of an existing history that can stay, without their end, and the last version in them."""
    body = data.removesuffix(HISTORY_END)
    if body == data or not data.startswith(HISTORY_START):
        return HISTORY_START, 0
    try:
        return body, int(json.loads(body[body.rindex(b"\n") + 1 :])["version"])
    except (ValueError, KeyError, TypeError):
        return HISTORY_START, 0


def _marker(path: str) -> tuple[str, ...]:
    return (CONTROL, _BEHIND, f"{incarnation(os.getpid())}-{_digest(path)}")


def _digest(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:32]
