"""`IgnoreChecker`: asks git which files it ignores. Its git process runs until `IgnoreChecker.close`.

Starting git takes longer than asking about 50 files.
"""

from __future__ import annotations

import errno
import logging
import os
import secrets
import time
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.features.trees.git_process import (
    SettingsStamps,
    git_command,
    git_environment,
    stamp_settings,
)
from watchroom.platform.child_process import AnsweringChild

if TYPE_CHECKING:
    from watchroom.features.trees.git import GitTree

_MAX_SILENCE: Final = 3.0
"""Maximum seconds between two outputs of git. An agent waits for them, and clients wait six seconds for a
hook."""
_MAX_SECONDS: Final = 60.0
"""Seconds after which the process is restarted, because patterns may be in files that are not checked
here."""
_MAX_BYTES: Final = 32 * 1024 * 1024
"""Maximum output for one call, in bytes."""
_HERE: Final = b"./"
"""Keeps git from reading a path as a pattern with special characters."""
_FIELDS: Final = 4
"""Number of fields that git prints for each path: the file with the pattern, its line, the pattern, the
path."""
_log = logging.getLogger("watchroom")


class _Process(NamedTuple):
    """A running git. ``stamps``: of the settings when it was started. ``started``: by `time.monotonic`."""

    child: AnsweringChild
    stamps: SettingsStamps
    started: float


class IgnoreChecker:
    """Asks which files git ignores in the working tree of ``git``. May be used from any thread."""

    def __init__(self, git: GitTree) -> None:
        self._git = git
        self._lock = Lock()
        self._process: _Process | None = None
        self._is_closed = False

    def restart(self) -> None:
        """End the process. It is started again when needed: call this when a ``.gitignore`` has changed."""
        with self._lock:
            self._close()

    def close(self) -> None:
        """End the process. A thread that still asks does not start it again."""
        with self._lock:
            self._is_closed = True
            self._close()

    def ignored_among(self, paths: Sequence[str]) -> frozenset[str]:
        """Return which of the untracked ``paths`` git ignores. Raise `IgnoredFilesUnknown`."""
        if not paths:
            return frozenset()
        with self._lock:
            try:
                return _ask(self._start().child, paths)
            except OSError as error:
                # For example, a path beyond a symbolic link ends git.
                _log.debug("git check-ignore: %r", error)
                self._close()
        return self._git.ignored_among(paths)

    def _start(self) -> _Process:
        if self._is_closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        git = self._git
        stamps = stamp_settings(git.folder, git.git, git.common, "ignore", "exclude")
        known = self._process
        if known is not None:
            if known.stamps == stamps and time.monotonic() - known.started <= _MAX_SECONDS:
                return known
            self._close()
        command = git_command(("check-ignore", "-z", "--stdin", "--verbose", "--non-matching", "--no-index"))
        environment = git_environment(
            # Git refuses literal paths in this command.
            {"GIT_DIR": self._git.git, "GIT_WORK_TREE": self._git.folder, "GIT_LITERAL_PATHSPECS": "0"}
        )
        child = AnsweringChild(command, folder=self._git.folder, environment=environment)
        self._process = _Process(child, stamps, time.monotonic())
        return self._process

    def _close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.child.close()


def _ask(child: AnsweringChild, paths: Sequence[str]) -> frozenset[str]:
    """Return the ``paths`` that git ignores. Raise OSError."""
    end = _HERE + secrets.token_hex(16).encode() + b"\0"
    given = b"".join(_HERE + os.fsencode(path) + b"\0" for path in paths)
    fields = child.ask(given + end, end, _MAX_SILENCE, _MAX_BYTES).split(b"\0")
    # The last fields are about ``end``.
    patterns, answered = fields[2:-_FIELDS:_FIELDS], fields[3:-_FIELDS:_FIELDS]
    if answered != [_HERE + os.fsencode(path) for path in paths]:
        raise OSError("git check-ignore has left out a path")
    matched = zip(paths, patterns, strict=True)
    return frozenset(path for path, pattern in matched if pattern and not pattern.startswith(b"!"))
