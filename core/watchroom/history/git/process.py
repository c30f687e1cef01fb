"""Runs git as a process, without the user's settings and hooks, and with timeouts."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Final, Self, cast

from watchroom.errors import GitError, GitMissing, InvalidRepository
from watchroom.features.tasks.ignored_files import SAFE_SETTINGS
from watchroom.history.git.stream import one_line

SECONDS: Final = 60.0
"""The timeout of a call, and of a write to `git fast-import`."""
_END_SECONDS: Final = 600.0
"""The timeout for `git fast-import` to end after the last write."""
_BUFFER_BYTES: Final = 1 << 18
_MAX_REASON: Final = 500


class GitRepository:
    """A repository. Its work tree is never touched.

    ``path``: the folder of a bare repository, or the ``.git`` of a work tree (a file in a linked work tree).
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    @classmethod
    def find(cls, path: str) -> GitRepository:
        """Return the repository at ``path``, bare or not. Raise `InvalidRepository`, `GitError`."""
        for each in (path, os.path.join(path, ".git")):
            repository = cls(each)
            if os.path.exists(each) and repository.ask("rev-parse", "--git-dir", absent=None) is not None:
                return repository
        raise InvalidRepository(path=one_line(path, _MAX_REASON), rule="not_a_repository")

    @classmethod
    def open_bare(cls, path: str) -> GitRepository:
        """Return the bare repository at ``path``. Create it if the path does not exist. Raise
        `InvalidRepository`, `GitError`."""
        repository = cls(path)
        if not os.path.exists(path) or (os.path.isdir(path) and not os.listdir(path)):
            repository.ask("init", "--quiet", "--bare", "--template=", "--initial-branch=main")
        elif repository.ask("rev-parse", "--is-bare-repository", absent=None) != "true":
            raise InvalidRepository(path=one_line(path, _MAX_REASON), rule="not_bare")
        return repository

    def ask(self, *arguments: str, given: bytes = b"", absent: str | None = "fail") -> str | None:
        """Return the text that git prints, stripped. Raise `GitError` if git fails.

        - ``arguments``: the command line after ``git``.
        - ``given``: standard input.
        - ``absent``: with None, return None if git fails.
        """
        done = self.call(*arguments, given=given)
        if done.returncode == 0:
            return done.stdout.decode("utf-8", "replace").strip()
        if absent is None:
            return None
        raise GitError(reason=_reason(done.stderr))

    def read(self, *arguments: str, given: bytes = b"") -> bytes:
        """Return the bytes that git prints for ``arguments`` and the input ``given``. Raise `GitError`."""
        done = self.call(*arguments, given=given)
        if done.returncode:
            raise GitError(reason=_reason(done.stderr))
        return done.stdout

    def call(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run git with ``arguments`` and the input ``given``. Raise `GitError` if it does not start, or after
        60 seconds."""
        try:
            return subprocess.run(
                _command(arguments),
                input=given,
                capture_output=True,
                timeout=SECONDS,
                env=_environment(self.path),
                cwd=os.path.dirname(self.path),
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise GitError(reason=f"git {arguments[0]}: {SECONDS:.0f} s") from error
        except OSError as error:
            raise _unstartable(error) from error

    def head(self, ref: str) -> str | None:
        """Return the id of the commit that ``ref`` names, None if there is none. Raise `GitError`."""
        return self.ask(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", absent=None
        )

    def message(self, commit: str) -> str:
        """Return the message of ``commit``. Raise `GitError`."""
        return self.read("cat-file", "commit", commit).decode("utf-8", "replace").partition("\n\n")[2]

    def update_refs(self, commands: Sequence[str]) -> None:
        """Run ``commands`` of ``git update-ref --stdin`` atomically. Raise `GitError`."""
        self.ask("update-ref", "--stdin", given="".join(f"{each}\n" for each in commands).encode())


class FastImport:
    """A stream into `git fast-import` of ``repository``, used as a context manager.

    Objects and refs are created if the block ends without an error.
    """

    def __init__(self, repository: GitRepository) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # it is closed by __exit__
        self._buffer = bytearray()
        command = ("fast-import", "--quiet", "--done", "--force", "--date-format=raw")
        try:
            self._process = subprocess.Popen(
                _command(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env=_environment(repository.path),
                cwd=os.path.dirname(repository.path),
                bufsize=0,
            )
        except OSError as error:
            self._errors.close()
            raise _unstartable(error) from error
        self._pipe = cast("IO[bytes]", self._process.stdin)
        os.set_blocking(self._pipe.fileno(), False)

    def __enter__(self) -> Self:
        return self

    def write(self, data: bytes) -> None:
        """Add ``data`` to the stream. Raise `GitError`."""
        self._buffer += data
        if len(self._buffer) >= _BUFFER_BYTES:
            self._flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._buffer += b"done\n"
                self._flush()
                self._pipe.close()
                if self._process.wait(_END_SECONDS):
                    raise GitError(reason=self._reason())
        except subprocess.TimeoutExpired as late:
            raise GitError(reason=f"git fast-import: {_END_SECONDS:.0f} s") from late
        finally:
            self._end()

    def _flush(self) -> None:
        data = memoryview(bytes(self._buffer))
        self._buffer.clear()
        while data:
            if not select.select([], [self._pipe], [], SECONDS)[1]:
                raise GitError(reason=f"git fast-import: {SECONDS:.0f} s")
            try:
                data = data[os.write(self._pipe.fileno(), data) :]
            except BrokenPipeError as error:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(SECONDS)
                raise GitError(reason=self._reason()) from error

    def _reason(self) -> str:
        self._errors.seek(0)
        return _reason(self._errors.read(_MAX_REASON * 4))

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if not self._pipe.closed:
            self._pipe.close()
        self._errors.close()


def _command(arguments: Sequence[str]) -> list[str]:
    settings = [part for setting in SAFE_SETTINGS for part in ("-c", setting)]
    return ["git", "--no-pager", *settings, *arguments]


def _environment(path: str) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_DIR": path,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _reason(printed: bytes) -> str:
    return one_line(printed.decode("utf-8", "replace"), _MAX_REASON) or "?"


def _unstartable(error: OSError) -> GitError:
    if isinstance(error, FileNotFoundError) and error.filename == "git":
        return GitMissing()
    return GitError(reason=error.strerror or "?")
