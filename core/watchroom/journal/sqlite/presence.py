"""Who is there: each process that runs something holds a lease, a file that it keeps locked while it lives.

The kernel unlocks the file when its process dies, however it dies: this is known at once, and no number that
is used again can forge it.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from contextlib import suppress
from platform import node
from threading import Lock
from typing import Final

from watchroom.errors import JournalError
from watchroom.journal.protocol import Presence
from watchroom.platforms import Platform
from watchroom.process_lock import ProcessLock

_LONGEST_TEXT: Final = 4096


class PresenceFolder:
    """The leases in ``folder``, each a file. ``platform`` is the operating system. May be used from any
    thread."""

    def __init__(self, folder: str, platform: Platform) -> None:
        self._folder = folder
        self._platform = platform
        self._turn = Lock()
        self._own: ProcessLock | None = None
        self._id = ""

    def present(self, resume: str) -> str:
        """Hold a lease from now on, if this does not hold one; its id. Raises `JournalError`."""
        if self._id:
            return self._id
        with self._turn:
            if not self._id:
                try:
                    self._id = self._take(resume)
                except OSError as error:
                    raise JournalError(reason=f"{self._folder}: {error.strerror}") from error
        return self._id

    def _take(self, resume: str) -> str:
        identity = secrets.token_hex(6)
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        path = self._path(identity)
        # Under another name until it is locked: nobody may take it for that of a dead process meanwhile.
        lock = ProcessLock(f"{path}.new", self._platform)
        try:
            lock.acquire()
            about = {"process": os.getpid(), "machine": node(), "since": time.time_ns()}
            with open(f"{path}.new", "r+", encoding="utf-8") as file:
                json.dump({**about, "resume": resume}, file)
            os.replace(f"{path}.new", path)
        except BaseException:
            lock.close()
            raise
        self._own = lock
        return identity

    def all(self) -> list[Presence]:
        """The leases that are held, and those whose process died and that nobody took away since."""
        try:
            names = sorted(os.listdir(self._folder))
        except FileNotFoundError:
            return []
        found = (self._read(name) for name in names if "." not in name)
        return [each for each in found if each is not None]

    def _read(self, identity: str) -> Presence | None:
        path = self._path(identity)
        try:
            with open(path, "rb") as file:
                about = json.loads(file.read(_LONGEST_TEXT))
            is_held = identity == self._id or self._is_held(path)
            return Presence(
                identity,
                is_held,
                process=int(about["process"]),
                machine=str(about["machine"]),
                since=int(about["since"]),
                resume=str(about["resume"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            # Released at this moment, or no lease.
            return None

    def _is_held(self, path: str) -> bool:
        # Not by a lock of its own, which would make the file again if it has just gone.
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            return not self._platform.try_lock(file)
        finally:
            os.close(file)

    def forget(self, identity: str) -> None:
        """Take the lease away of a process that died; nothing where it is held, or gone."""
        found = self._read(identity)
        if found is not None and not found.is_alive:
            with suppress(FileNotFoundError):
                os.unlink(self._path(identity))

    def _path(self, identity: str) -> str:
        return os.path.join(self._folder, identity)

    def close(self) -> None:
        """Release the lease that this holds."""
        with self._turn:
            if self._own is not None:
                with suppress(FileNotFoundError):
                    os.unlink(self._path(self._id))
                self._own.close()
                self._own = None
