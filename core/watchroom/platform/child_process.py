"""Runs a child process for one job. Its output is limited, it has a timeout, and it ends together with this
process."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Event, Thread
from typing import IO, Final, NamedTuple, cast

MAX_OUTPUT: Final = 64 * 1024 * 1024
"""Default maximum output of a child in bytes."""
_MAX_ERRORS: Final = 64 * 1024
"""Maximum bytes of standard error that are kept. The last bytes are kept."""
_MAX_LINE: Final = 500
"""Maximum characters of `ChildResult.last_error`."""
_STOP_SECONDS: Final = 5.0
"""Seconds for a child to end after its standard input was closed. Then it is killed."""
_STOP_POLL_SECONDS: Final = 0.1
"""Seconds between two checks of ``stopping``."""
_PIECE_BYTES: Final = 1 << 16


class ChildResult(NamedTuple):
    """The result of a child process.

    - ``status``: its exit code; the negative number of the signal if a signal ended it.
    - ``output``: its standard output.
    - ``errors``: the last 64 KiB of its standard error.
    """

    status: int
    output: bytes
    errors: bytes

    @property
    def last_error(self) -> str:
        """The last line of the standard error, at most 500 characters."""
        return self.errors.decode(errors="replace").strip().rpartition("\n")[2][-_MAX_LINE:]


def module_command(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs ``module`` with ``arguments`` in this Python.

    ``-P`` keeps the working directory out of the module path, because agents can write modules there.
    """
    return sys.executable, "-P", "-m", module, *arguments


def run_module(
    module: str,
    *arguments: str,
    job: bytes = b"",
    timeout: float | None = None,
    stopping: Event | None = None,
) -> ChildResult:
    """Run a module of this package in a child process.

    The child's standard input stays open until the child ends. The child calls `watch_parent`, so that it
    also ends if this process is killed.

    - ``arguments``: its command line.
    - ``job``: the first line of its standard input.
    - ``timeout``: seconds, default none.
    - ``stopping``: when set, the child's standard input is closed. The child is killed if it does not end
      within 5 seconds.

    Raise the errors of `run_child`.
    """
    return run_child(
        module_command(module, *arguments),
        given=job + b"\n",
        timeout=timeout,
        stopping=stopping,
        keeps_input_open=True,
    )


def run_child(
    command: Sequence[str],
    *,
    given: bytes = b"",
    timeout: float | None = None,
    max_output: int = MAX_OUTPUT,
    folder: str | None = None,
    environment: Mapping[str, str] | None = None,
    keeps_input_open: bool = False,
    stopping: Event | None = None,
    on_output: Callable[[bytes], object] | None = None,
    on_errors: Callable[[bytes], object] | None = None,
) -> ChildResult:
    """Run a program until it ends, in its own session, which gets no signals from the terminal.

    - ``given``: its standard input.
    - ``timeout``: seconds, default none.
    - ``max_output``: maximum output in bytes, default 64 MiB.
    - ``folder``: its working directory, default the directory of this process.
    - ``environment``: all of its environment variables, default the variables of this process.
    - ``keeps_input_open``, ``stopping``: for `run_module`.
    - ``on_output``, ``on_errors``: called with each part of the output as soon as the child prints it. Output
      that is passed to ``on_output`` is not in the result, and has no maximum size.

    Raise TimeoutError, OSError with EFBIG if the child prints too much, and other OSErrors if it cannot be
    started. On any error, the child and its process group are killed.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment,
        bufsize=0,
        start_new_session=True,
    ) as process:
        try:
            output, errors = _Printed(on_output, is_kept=on_output is None), _Printed(on_errors)
            streams = output, errors, max_output
            return _communicate(process, given, deadline, streams, keeps_input_open, stopping)
        except BaseException:
            # The child was not reaped yet, so its id still identifies its group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise


class AnsweringChild:
    """A child that answers requests on its standard input, until `close` or the end of this process. For one
    thread at a time.

    See `run_child` for the arguments. The output on its standard error is dropped.
    """

    def __init__(
        self, command: Sequence[str], *, folder: str | None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environment,
            bufsize=0,
            start_new_session=True,
        )
        self._input = cast("IO[bytes]", self._process.stdin)
        self._output = cast("IO[bytes]", self._process.stdout)
        os.set_blocking(self._input.fileno(), False)

    def ask(self, given: bytes, end: bytes, max_silence: float, max_output: int) -> bytes:
        """Send ``given``. Return the child's output before ``end``. See `ask_each`."""
        (answer,) = self.ask_each(given, end, 1, max_silence, max_output)
        return answer

    def ask_each(
        self,
        given: bytes,
        end: bytes,
        count: int,
        max_silence: float,
        max_output: int,
        deadline: float = math.inf,
    ) -> Iterator[bytes]:
        """Send ``given``. Yield the child's answers as soon as they are complete.

        - ``end``: the child prints it after each answer.
        - ``count``: the number of answers.
        - ``max_silence``: timeout for the next output in seconds. A child that prints is slow, but not stuck.
        - ``max_output``: maximum size of an answer in bytes.
        - ``deadline``: the time by which all answers must be complete, by `time.monotonic`. Default none.

        Raise TimeoutError, and OSError if the child has ended (EPIPE) or prints too much (EFBIG). After an
        error, close the child.
        """
        silence_end = time.monotonic() + max_silence
        unsent = memoryview(given)
        printed = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._input, selectors.EVENT_WRITE)
            selector.register(self._output, selectors.EVENT_READ)
            while count:
                for key, _ in selector.select(_wait_seconds(min(silence_end, deadline), None)):
                    if key.fileobj is self._input:
                        unsent = unsent[os.write(key.fd, unsent) :]
                        if not unsent:
                            selector.unregister(self._input)
                    elif piece := os.read(key.fd, _PIECE_BYTES):
                        silence_end = time.monotonic() + max_silence
                        start = max(0, len(printed) - len(end))
                        printed += piece
                        while count and (size := printed.find(end, start)) >= 0:
                            yield bytes(printed[:size])
                            del printed[: size + len(end)]
                            start = 0
                            count -= 1
                    else:
                        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
                if len(printed) > max_output:
                    raise OSError(errno.EFBIG, f"the output has more than {max_output:,} bytes")
                if count and time.monotonic() >= min(silence_end, deadline):
                    raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))

    def close(self) -> None:
        """Kill the child and its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._input.close()
        self._output.close()
        self._process.wait()


class _Printed:
    """The output of a child on one of its streams. ``is_kept``: it is part of the result."""

    def __init__(self, on_piece: Callable[[bytes], object] | None, *, is_kept: bool = True) -> None:
        self.data = bytearray()
        self._on_piece = on_piece
        self._is_kept = is_kept

    def take(self, piece: bytes) -> None:
        if self._on_piece is not None:
            self._on_piece(piece)
        if self._is_kept:
            self.data.extend(piece)


def _communicate(
    process: subprocess.Popen[bytes],
    given: bytes,
    deadline: float | None,
    streams: tuple[_Printed, _Printed, int],
    keeps_input_open: bool,
    stopping: Event | None,
) -> ChildResult:
    pipe = cast("IO[bytes]", process.stdin)
    os.set_blocking(pipe.fileno(), False)
    unsent = memoryview(given)
    output, errors, max_output = streams
    open_streams = 2
    with selectors.DefaultSelector() as selector:
        if unsent:
            selector.register(pipe, selectors.EVENT_WRITE)
        selector.register(cast("IO[bytes]", process.stdout), selectors.EVENT_READ, output)
        selector.register(cast("IO[bytes]", process.stderr), selectors.EVENT_READ, errors)
        while open_streams:
            if stopping is not None and stopping.is_set():
                deadline = time.monotonic() + _STOP_SECONDS
                keeps_input_open, stopping = False, None
            if not unsent and not keeps_input_open and not pipe.closed:
                pipe.close()
            for key, _ in selector.select(_wait_seconds(deadline, stopping)):
                if key.fileobj is pipe:
                    unsent = _send(key.fd, unsent)
                    if not unsent:
                        selector.unregister(pipe)
                elif piece := os.read(key.fd, _PIECE_BYTES):
                    key.data.take(piece)
                    del errors.data[:-_MAX_ERRORS]
                else:
                    selector.unregister(key.fileobj)
                    open_streams -= 1
            if len(output.data) > max_output:
                raise OSError(errno.EFBIG, f"the output has more than {max_output:,} bytes")
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
    try:
        status = process.wait(_wait_seconds(deadline, None))
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from error
    return ChildResult(status, bytes(output.data), bytes(errors.data))


def _wait_seconds(deadline: float | None, stopping: Event | None) -> float | None:
    """Return the maximum seconds to wait, None for no limit."""
    limits = [] if deadline is None else [max(0.0, deadline - time.monotonic())]
    limits += [] if stopping is None else [_STOP_POLL_SECONDS]
    return min(limits, default=None)


def _send(fd: int, data: memoryview) -> memoryview:
    """Write as much as the pipe accepts. Return the rest, or nothing if the child has closed its standard
    input."""
    try:
        return data[os.write(fd, data) :]
    except BrokenPipeError:
        # A child that has ended early prints the reason on its standard error.
        return data[:0]


def watch_parent(on_end: Callable[[], object]) -> bytes:
    """In a child of `run_module`: return the job, and call ``on_end`` when standard input ends."""

    def watch() -> None:
        wait_for_input_end()
        on_end()

    job = sys.stdin.buffer.readline()
    Thread(target=watch, name="watchroom-parent", daemon=True).start()
    return job.rstrip(b"\n")


def wait_for_input_end() -> None:
    """Wait until standard input ends."""
    # Not with `sys.stdin`: Python cannot exit while a thread holds the lock of its buffer.
    while os.read(0, _PIECE_BYTES):
        pass
