"""`BlobReader`: reads blobs in the form that git checks out. Its git processes run until `BlobReader.close`.

Starting git takes longer than reading 50 files.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import secrets
import time
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.features.trees.git import MAX_BLOB_BYTES, ODD_PATH, IndexEntry, disable_filters
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
"""Maximum seconds between two outputs of git. A filter that takes longer is stuck."""
_FILTER_SECONDS: Final = 5.0
"""Timeout in seconds for all filters in one call. An agent waits for them, and clients wait six seconds for a
hook."""
_RETRY_SECONDS: Final = 20.0
"""Seconds for which a stuck filter is left out."""
_FILE_MODE: Final = 0o100644
_MAX_SECONDS: Final = 60.0
"""Seconds after which the processes are restarted, because settings may be in files that are not checked
here."""
_MAX_BYTES: Final = 128 * 1024 * 1024
"""Maximum size of one of git's answers in bytes. Filters can enlarge a file."""
_log = logging.getLogger("watchroom")


class _Processes(NamedTuple):
    """The git processes: one returns sizes, the other contents.

    - ``left_out``: the filters that do not apply.
    - ``started``: when the processes were started, by `time.monotonic`.
    """

    sizes: AnsweringChild
    contents: AnsweringChild
    left_out: frozenset[str]
    started: float


class _Blob(NamedTuple):
    """A blob. ``size``: in bytes, before the filters."""

    id: str
    size: int


class BlobReader:
    """Reads blobs for the working tree of ``git``. May be used from any thread.

    - ``max_silence``: maximum seconds between two outputs of git, default 3.
    - ``filter_seconds``: timeout for all filters in one call, default 5.
    """

    def __init__(
        self, git: GitTree, max_silence: float = _MAX_SILENCE, filter_seconds: float = _FILTER_SECONDS
    ) -> None:
        self._git = git
        self._max_silence = max_silence
        self._filter_seconds = filter_seconds
        self._lock = Lock()
        self._processes: _Processes | None = None
        self._is_closed = False
        self._stamps: SettingsStamps = ()
        """The stamps of the settings files when the processes were last started."""
        self._stuck: dict[str, float] = {}
        """The stuck filters, and when they apply again, by `time.monotonic`."""

    def start(self) -> None:
        """Start the processes, so that the first call of `read` is as fast as the others."""
        with self._lock, contextlib.suppress(OSError):
            self._start()

    def restart(self) -> None:
        """End the processes. They are started again when needed: call this when attributes have changed."""
        with self._lock:
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
        a filter exceeds a timeout, files are read without it, but with line end conversion. Raise
        `GitError`."""
        if not entries:
            return {}
        plain = {
            path: entry.blob
            for path, entry in entries.items()
            if entry.blob and not (entry.is_link or entry.is_submodule or ODD_PATH.search(path))
        }
        late: set[str] = set()
        with self._lock:
            found = self._read_plain(plain, late)
            left_out = self._list_left_out(late)
        rest = [path for path in entries if path not in found]
        return found | self._git.read_blobs(rest, entries=entries, left_out=left_out)

    def read_commit(self, commit: str, paths: Sequence[str]) -> dict[str, bytes | None]:
        """Return the bytes that git would check out at ``paths`` of ``commit``, as `read` does. None for a
        path that is no file there. Raise `GitError`."""
        found: dict[str, bytes | None] = {}
        late: set[str] = set()
        plain = [path for path in paths if not ODD_PATH.search(path)]
        with self._lock:
            sizes = self._find_blobs(commit, plain) if plain else {}
            blobs = {path: blob.id for path, blob in sizes.items() if blob is not None}
            found |= dict.fromkeys(path for path, blob in sizes.items() if blob is None)
            if blobs:
                known = {each.id: each.size for each in sizes.values() if each}
                found |= self._read_plain(blobs, late, known)
            left_out = self._list_left_out(late)
        rest = [path for path in paths if path not in found]
        return found | (self._git.read_blobs(rest, f"{commit}:", left_out=left_out) if rest else {})

    def _find_blobs(self, commit: str, paths: Sequence[str]) -> dict[str, _Blob | None]:
        """Return the blobs at ``paths``, None for a path without a blob. The result is empty if git's
        long-running process cannot answer."""
        try:
            lines = _ask_about(self._start().sizes, [f"{commit}:{path}" for path in paths], self._max_silence)
        except OSError as error:
            _log.debug("git cat-file: %r", error)
            self._close()
            return {}
        return dict(zip(paths, map(_parse_blob, lines), strict=True))

    def _read_plain(
        self, blobs: Mapping[str, str], late: set[str], sizes: Mapping[str, int] | None = None
    ) -> dict[str, bytes | None]:
        """Return the contents of ``blobs``, by path. Files that git's long-running process cannot read are
        left out.

        - ``late``: the filters that exceed the timeout for all filters are added.
        - ``sizes``: of the blobs, if they are known.
        """
        found: dict[str, bytes | None] = {}
        try:
            if sizes is None:
                sizes = _read_sizes(self._start().sizes, set(blobs.values()), self._max_silence)
            found |= dict.fromkeys(path for path, blob in blobs.items() if blob not in sizes)
            self._read_filtered(blobs, found, late)
        except OSError as error:
            # For example, git was killed, or the disk is slow.
            _log.debug("git cat-file: %r", error)
            self._close()
        return found

    def _read_filtered(
        self, blobs: Mapping[str, str], found: MutableMapping[str, bytes | None], late: set[str]
    ) -> None:
        """Add the contents of ``blobs`` to ``found``, except those that it has. ``late``: see `_read_plain`.
        Raise OSError."""
        git = self._git
        deadline = time.monotonic() + self._filter_seconds
        while rest := {path: blob for path, blob in blobs.items() if path not in found}:
            processes = self._start(late)
            try:
                for path, data in _read_contents(processes.contents, rest, self._max_silence, deadline):
                    found[path] = data if len(data) <= MAX_BLOB_BYTES else None
            except BrokenPipeError:
                # A failing filter ends git. The other files are read without `GitTree.read_blobs`, because it
                # waits a minute for a filter that hangs.
                self._close()
                left = [path for path in rest if path not in found]
                filters = git.list_filters(left)
                same = [path for path in left if filters[path] == filters[left[0]]]
                entries = {path: IndexEntry(_FILE_MODE, rest[path]) for path in same}
                found.update(git.read_blobs(same, entries=entries, left_out=processes.left_out))
            except TimeoutError:
                self._close()
                left = [path for path in rest if path not in found]
                is_late = time.monotonic() >= deadline
                slow = {*git.list_filters(left if is_late else left[:1]).values()}
                slow -= {"", *processes.left_out}
                if slow:
                    state = "slow" if is_late else "stuck"
                    _log.warning("%s: %s filters of git: %s", git.folder, state, ", ".join(sorted(slow)))
                if is_late:
                    # The other files need no filter.
                    late |= slow
                    deadline = math.inf
                elif slow:
                    self._stuck |= dict.fromkeys(slow, time.monotonic() + _RETRY_SECONDS)
                else:
                    # Git itself is slow, for example because of the disk.
                    raise

    def _list_left_out(self, late: Collection[str]) -> frozenset[str]:
        """Return the filters that do not apply now: stuck filters, and ``late``."""
        now = time.monotonic()
        return frozenset(late).union(each for each, end in self._stuck.items() if now < end)

    def _start(self, late: Collection[str] = ()) -> _Processes:
        """Return the processes, started if necessary. ``late``: filters that do not apply, in addition to
        stuck ones."""
        if self._is_closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        git, now = self._git, time.monotonic()
        stamps = stamp_settings(git.folder, git.git, git.common, "attributes", "attributes")
        if stamps != self._stamps:
            self._stuck.clear()
            self._close()
        left_out = self._list_left_out(late)
        known = self._processes
        if known is not None:
            if known.left_out == left_out and now - known.started <= _MAX_SECONDS:
                return known
            self._close()
        settings = disable_filters(sorted(left_out))
        environment = git_environment({"GIT_DIR": git.git, "GIT_WORK_TREE": git.folder})

        def start(*arguments: str) -> AnsweringChild:
            return AnsweringChild(
                git_command(arguments, settings), folder=git.folder, environment=environment
            )

        sizes = start("cat-file", "--batch-check")
        try:
            contents = start("cat-file", "--batch", "--filters")
        except BaseException:
            sizes.close()
            raise
        self._stamps = stamps
        self._processes = _Processes(sizes, contents, left_out, now)
        return self._processes


def _read_sizes(child: AnsweringChild, blobs: set[str], max_silence: float) -> dict[str, int]:
    """Return the sizes of the ``blobs`` that exist and are at most 10 MB. Raise OSError."""
    found = map(_parse_blob, _ask_about(child, sorted(blobs), max_silence))
    return {each.id: each.size for each in found if each is not None}


def _ask_about(child: AnsweringChild, names: Sequence[str], max_silence: float) -> list[str]:
    """Return git's line about each of the objects ``names``. Raise OSError."""
    end = f"?{secrets.token_hex(16)}"
    given = b"".join(os.fsencode(f"{each}\n") for each in (*names, end))
    printed = child.ask(given, f"{end} missing\n".encode(), max_silence, _MAX_BYTES)
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
    child: AnsweringChild, blobs: Mapping[str, str], max_silence: float, deadline: float
) -> Iterator[tuple[str, bytes]]:
    """Yield each path of ``blobs`` with the bytes that git would check out there. Raise OSError."""
    # The size in git's own header is the size before the filters. So contents are separated by a line that
    # cannot be in them: the answer for an object that does not exist.
    mark = f"?{secrets.token_hex(16)}".encode()
    asked = (blob.encode() + b" " + os.fsencode(path) + b"\n" + mark + b"\n" for path, blob in blobs.items())
    end = b"\n" + mark + b" missing\n"
    answers = child.ask_each(b"".join(asked), end, len(blobs), max_silence, _MAX_BYTES, deadline)
    for (path, blob), answer in zip(blobs.items(), answers, strict=True):
        header, _, data = answer.partition(b"\n")
        if not header.startswith(blob.encode() + b" blob "):
            raise OSError("git cat-file has no such blob")
        yield path, data
