"""`BlobReader`: reads blobs in the form that git checks out. Its git processes run until `BlobReader.close`.

Starting git takes longer than reading 50 files.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.features.trees.git import MAX_BLOB_BYTES, ODD_PATH
from watchroom.features.trees.git_process import (
    SettingsStamps,
    git_command,
    git_environment,
    stamp_settings,
)
from watchroom.platform.child_process import AnsweringChild

if TYPE_CHECKING:
    from watchroom.features.trees.git import GitTree, IndexEntry

_SECONDS: Final = 3.0
"""Timeout for all filters in one call. An agent waits for them, and clients wait six seconds for a hook."""
_MAX_SECONDS: Final = 60.0
"""Seconds after which the processes are restarted, because settings may be in files that are not checked
here."""
_MAX_BYTES: Final = 32 * 1024 * 1024
"""Maximum total size of the blobs in one call, in bytes."""
_log = logging.getLogger("watchroom")


class _Processes(NamedTuple):
    """The git processes: one returns sizes, the other contents.

    - ``stamps``: the stamps of the settings files when the processes were started.
    - ``started``: when they were started, by `time.monotonic`.
    """

    sizes: AnsweringChild
    contents: AnsweringChild
    stamps: SettingsStamps
    started: float


class _Blob(NamedTuple):
    """A blob. ``size``: in bytes, before the filters."""

    id: str
    size: int


class BlobReader:
    """Reads blobs for the working tree of ``git``. May be used from any thread.

    ``seconds``: timeout for all filters in one call, default 3.
    """

    def __init__(self, git: GitTree, seconds: float = _SECONDS) -> None:
        self._git = git
        self._seconds = seconds
        self._lock = Lock()
        self._processes: _Processes | None = None
        self._is_closed = False
        self._is_stuck = False
        """Whether a filter exceeded its timeout. Then no filters apply until settings change."""

    def start(self) -> None:
        """Start the processes, so that the first call of `read` is as fast as the others."""
        with self._lock, contextlib.suppress(OSError):
            self._start()

    def restart(self) -> None:
        """End the processes. They are started again when needed: call this when attributes have changed."""
        with self._lock:
            self._is_stuck = False
            self._close()

    def close(self) -> None:
        """End the processes. A thread that still reads does not start them again."""
        with self._lock:
            self._is_closed = True
            self._close()

    def _close(self) -> None:
        processes, self._processes = self._processes, None
        if processes is not None:
            processes.sizes.close()
            processes.contents.close()

    def read(self, entries: Mapping[str, IndexEntry]) -> dict[str, bytes | None]:
        """Return the bytes that git would check out at the paths of ``entries``; see `GitTree.read_blobs`. If
        a filter exceeds its timeout, the file is read without it. Raise `GitError`."""
        if not entries:
            return {}
        plain = {
            path: entry.blob
            for path, entry in entries.items()
            if entry.blob and not (entry.is_link or entry.is_submodule or ODD_PATH.search(path))
        }
        with self._lock:
            found = self._read_plain(plain)
        rest = [path for path in entries if path not in found]
        return found | self._git.read_blobs(rest, entries=entries)

    def read_commit(self, commit: str, paths: Sequence[str]) -> dict[str, bytes | None]:
        """Return the bytes that git would check out at ``paths`` of ``commit``, as `read` does. None for a
        path that is no file there. Raise `GitError`."""
        found: dict[str, bytes | None] = {}
        plain = [path for path in paths if not ODD_PATH.search(path)]
        with self._lock:
            sizes = self._find_blobs(commit, plain) if plain else {}
            blobs = {path: blob.id for path, blob in sizes.items() if blob is not None}
            found |= dict.fromkeys(path for path, blob in sizes.items() if blob is None)
            if blobs:
                found |= self._read_plain(blobs, {each.id: each.size for each in sizes.values() if each})
        rest = [path for path in paths if path not in found]
        return found | (self._git.read_blobs(rest, f"{commit}:") if rest else {})

    def _find_blobs(self, commit: str, paths: Sequence[str]) -> dict[str, _Blob | None]:
        """Return the blobs at ``paths``, None for a path without a blob. The result is empty if git's
        long-running process cannot answer."""
        try:
            lines = _ask_about(self._start().sizes, [f"{commit}:{path}" for path in paths], self._seconds)
        except OSError as error:
            _log.debug("git cat-file: %r", error)
            self._close()
            return {}
        return dict(zip(paths, map(_parse_blob, lines), strict=True))

    def _read_plain(
        self, blobs: Mapping[str, str], sizes: Mapping[str, int] | None = None
    ) -> dict[str, bytes | None]:
        """Return the contents of ``blobs``, by path; empty if git's long-running process cannot read them.
        ``sizes``: of the blobs, if they are known."""
        try:
            processes = self._start()
            if sizes is None:
                sizes = _read_sizes(processes.sizes, set(blobs.values()), self._seconds)
            readable = {path: blob for path, blob in blobs.items() if blob in sizes}
            if sum(sizes[blob] for blob in readable.values()) > _MAX_BYTES:
                return {}
            found: dict[str, bytes | None] = dict.fromkeys(blobs)
            if self._is_stuck:
                raw = self._git.read_raw(set(readable.values()))
                return found | {path: raw.get(blob) for path, blob in readable.items()}
            for path, data in _read_contents(processes.contents, readable, self._seconds):
                found[path] = data if len(data) <= MAX_BLOB_BYTES else None
            return found
        except TimeoutError:
            _log.warning("%s: a filter of git takes longer than %.0f s", self._git.folder, self._seconds)
            self._close()
            self._is_stuck = True
            return self._read_plain(blobs, sizes)
        except OSError as error:
            # For example, a failing filter ends git.
            _log.debug("git cat-file: %r", error)
            self._close()
            return {}

    def _start(self) -> _Processes:
        if self._is_closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        git = self._git
        stamps = stamp_settings(git.folder, git.git, git.common, "attributes", "attributes")
        known = self._processes
        if known is not None:
            is_old = time.monotonic() - known.started > _MAX_SECONDS
            if known.stamps == stamps and not is_old:
                return known
            self._is_stuck = self._is_stuck and known.stamps == stamps
            self._close()
        environment = git_environment({"GIT_DIR": self._git.git, "GIT_WORK_TREE": self._git.folder})

        def start(*arguments: str) -> AnsweringChild:
            return AnsweringChild(git_command(arguments), folder=self._git.folder, environment=environment)

        sizes = start("cat-file", "--batch-check")
        try:
            contents = start("cat-file", "--batch", "--filters")
        except BaseException:
            sizes.close()
            raise
        self._processes = _Processes(sizes, contents, stamps, time.monotonic())
        return self._processes


def _read_sizes(child: AnsweringChild, blobs: set[str], seconds: float) -> dict[str, int]:
    """Return the sizes of the ``blobs`` that exist and are at most 10 MB. Raise OSError."""
    found = map(_parse_blob, _ask_about(child, sorted(blobs), seconds))
    return {each.id: each.size for each in found if each is not None}


def _ask_about(child: AnsweringChild, names: Sequence[str], seconds: float) -> list[str]:
    """Return git's line about each of the objects ``names``. Raise OSError."""
    end = f"?{secrets.token_hex(16)}"
    given = b"".join(os.fsencode(f"{each}\n") for each in (*names, end))
    printed = child.ask(given, f"{end} missing\n".encode(), seconds, _MAX_BYTES)
    lines = printed.decode("utf-8", "surrogateescape").split("\n")[:-1]
    if len(lines) != len(names):
        raise OSError("git cat-file has left out an object")
    return lines


def _parse_blob(line: str) -> _Blob | None:
    """Return the blob of at most 10 MB that git has described in ``line``, None if it is another object."""
    fields = line.split(" ")
    if len(fields) != 3 or fields[1] != "blob" or not fields[2].isdecimal():
        return None
    found = _Blob(fields[0], int(fields[2]))
    return found if found.size <= MAX_BLOB_BYTES else None


def _read_contents(
    child: AnsweringChild, blobs: Mapping[str, str], seconds: float
) -> Iterator[tuple[str, bytes]]:
    """Yield each path of ``blobs`` with the bytes that git would check out there. Raise OSError."""
    # The size in git's own header is the size before the filters. So contents are separated by a line that
    # cannot be in them: the answer for an object that does not exist.
    mark, end = (f"?{secrets.token_hex(16)}".encode() for _ in range(2))
    paths = list(blobs)
    asked = (blobs[path].encode() + b" " + os.fsencode(path) + b"\n" + mark + b"\n" for path in paths)
    printed = child.ask(b"".join(asked) + end + b"\n", end + b" missing\n", seconds, 4 * _MAX_BYTES)
    pieces = printed.split(b"\n" + mark + b" missing\n")[:-1]
    if len(pieces) != len(paths):
        raise OSError("git cat-file has left out a file")
    for path, piece in zip(paths, pieces, strict=True):
        header, _, data = piece.partition(b"\n")
        if not header.startswith(blobs[path].encode() + b" blob "):
            raise OSError("git cat-file has no such blob")
        yield path, data
