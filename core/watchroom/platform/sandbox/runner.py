"""Runs one command, with all its child processes, in a sandbox until it ends or its timeout has passed."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import select
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom import validation
from watchroom.errors import CommandNotStarted, InvalidCommand
from watchroom.platform.sandbox.backend import (
    LaunchDescriptors,
    LaunchRequest,
    LaunchSpec,
    NetworkAccess,
    SandboxBackend,
)
from watchroom.platform.sandbox.limits import Cgroup, ResourceLimits, exceeds_limits, limit_process

Stream: TypeAlias = Literal["stdout", "stderr"]
OnOutput: TypeAlias = Callable[[Stream, str], None]
"""Called with the stream and a piece of text when a command prints it."""

_CHILD_PID: Final = re.compile(rb'"child-pid": *(\d+)\D')
_START_SECONDS: Final = 10.0
"""Timeout for the setup of a sandbox, in seconds."""
_END_SECONDS: Final = 5.0
"""Seconds for the kernel to end killed processes."""
_KILLED: Final = 137
"""The exit code for SIGKILL: 128 plus its number."""
_POLL_SECONDS: Final = 0.05
"""Seconds between two checks of ``stop``, and of the usage of a command without a control group."""
_READ_BYTES: Final = 256 * 1024


class CommandResult(NamedTuple):
    """The result of a command.

    - ``stdout``, ``stderr``: its output, up to the limit.
    - ``exit_code``: as in a shell: 128 plus the number of the signal if a signal ended it.
    - ``timed_out``: whether it exceeded its timeout.
    - ``stopped``: whether the caller ended it.
    - ``seconds``: its duration in wall-clock time.
    - ``truncated``: whether its output exceeded the limit.
    """

    stdout: str
    stderr: str
    exit_code: int
    timed_out: bool
    stopped: bool
    seconds: float
    truncated: bool


def run_command(
    command: str,
    folder: str,
    *,
    backend: SandboxBackend,
    limits: ResourceLimits = ResourceLimits(),  # noqa: B008  # immutable
    network: NetworkAccess = False,
    on_output: OnOutput | None = None,
    stop: threading.Event | None = None,
) -> CommandResult:
    """Run a command in a sandbox. When this returns or raises, no process of the command is left.

    - ``command``: a line for ``/bin/sh``.
    - ``folder``: its working directory, the only folder that is writable for it.
    - ``backend``: the kind of sandbox.
    - ``limits``: its timeout, and its resource limits.
    - ``network``: the network that it can reach, default none.
    - ``on_output``: called with the output as it is printed, up to the limit. If it raises, the command is
      ended, and the exception is raised here.
    - ``stop``: ends the command when set.

    Raise `InvalidCommand`, `CommandNotStarted`, `FolderNotFound`, `FolderTooWide`.
    """
    begin = time.monotonic()
    if "\0" in command or not validation.is_unicode(command):
        raise InvalidCommand
    with ExitStack() as closing:
        descriptors = LaunchDescriptors()
        closing.callback(descriptors.close)
        try:
            stdout_fd, stdout = descriptors.output_pipe()
            stderr_fd, stderr = descriptors.output_pipe()
            signal_fd, stdin = descriptors.socket_pair()
            spec = backend.prepare(LaunchRequest(command, folder, limits, network, descriptors))
            process = subprocess.Popen(
                spec.argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env={},
                cwd="/",
                pass_fds=tuple(set(descriptors.inherited()) - {stdin, stdout, stderr}),
                start_new_session=True,
            )
            processes = _ProcessTree(process, closing)
        except OSError as error:
            raise CommandNotStarted(reason=error.strerror or str(error)) from error
        descriptors.close_inherited()
        streams = [
            _CapturedStream("stdout", stdout_fd, limits.output_bytes, on_output),
            _CapturedStream("stderr", stderr_fd, limits.output_bytes, on_output),
        ]
        readers: dict[int, Callable[[], bool]] = {stream.fd: stream.read for stream in streams}
        readers[signal_fd] = partial(_answer_start, signal_fd)
        status = processes.begin(backend, spec, limits)
        processes.watch(readers, begin + limits.seconds, limits, stop)
        exit_code = processes.exit_code()
        output, errors = (each.finish() for each in streams)
        status += _read_available(spec.status_fd) if spec.status_fd >= 0 else b""
        reason = backend.start_failure(status, exit_code, errors)
        if processes.killed:
            # A sandbox that is killed during its setup reports this with an exit code of its own.
            exit_code, errors = _KILLED, errors if reason is None else ""
        elif reason is not None:
            raise CommandNotStarted(reason=reason)
    truncated = any(each.is_cut for each in streams)
    seconds = time.monotonic() - begin
    return CommandResult(
        output, errors, exit_code, processes.timed_out, processes.stopped, seconds, truncated
    )


def _answer_start(fd: int) -> bool:
    """Let the command start. It asks once on the socket ``fd``. Return False, because no more data will
    arrive."""
    # If the command was killed before the answer, `_ProcessTree` notices this.
    with contextlib.suppress(ConnectionError):
        if os.read(fd, 1):
            os.write(fd, b"\n")
    return False


class _CapturedStream:
    """One output stream of a command.

    - ``stream``: its name, for ``on_output``.
    - ``fd``: the pipe.
    - ``max_bytes``: the maximum number of bytes to keep. The rest is read and dropped, and ``is_cut`` is set.
    - ``on_output``: called with the kept output.
    """

    def __init__(self, stream: Stream, fd: int, max_bytes: int, on_output: OnOutput | None) -> None:
        self.fd = fd
        self.is_cut = False
        os.set_blocking(fd, False)
        self._stream: Stream = stream
        self._bytes_left = max_bytes
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._texts: list[str] = []

    def read(self) -> bool:
        """Read the available output. Return False at the end of the stream."""
        try:
            data = os.read(self.fd, _READ_BYTES)
        except BlockingIOError:
            return True
        kept = data[: self._bytes_left]
        self._bytes_left -= len(kept)
        self._add(self._decoder.decode(kept))
        if len(kept) < len(data):
            self.is_cut = True
        return bool(data)

    def finish(self) -> str:
        """Return the kept output.

        An incomplete character is dropped at the limit, and replaced at the end of the stream.
        """
        if not self.is_cut:
            self._add(self._decoder.decode(b"", final=True))
        return "".join(self._texts)

    def _add(self, text: str) -> None:
        if text:
            self._texts.append(text)
            if self._on_output:
                self._on_output(self._stream, text)


def _read_available(fd: int) -> bytes:
    """Return the bytes that can be read from the pipe ``fd`` without waiting."""
    data = b""
    os.set_blocking(fd, False)
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(fd, _READ_BYTES):
            data += piece
    return data


class _ProcessTree:
    """The processes of one command: ``process``, the sandbox, and all processes in it.

    Only the first process in the sandbox is known. When ``closing`` is closed, all processes have ended.
    """

    def __init__(self, process: subprocess.Popen[bytes], closing: ExitStack) -> None:
        self._process = process
        self._process_fd: int | None = None
        self._first: int | None = None
        self._first_fd: int | None = None
        self._cgroup: Cgroup | None = None
        self._start_fd: int | None = None
        self._is_group_leader = False
        self._last_check = 0.0
        self.killed = self.timed_out = self.stopped = False
        closing.callback(self._close)
        self._process_fd = os.pidfd_open(process.pid) if sys.platform == "linux" else None

    def begin(self, backend: SandboxBackend, spec: LaunchSpec, limits: ResourceLimits) -> bytes:
        """Set the limits of the first process, then let it start.

        Return the status so far. If it contains no process, the command does not start: the sandbox reports
        the reason later.
        """
        if spec.status_fd < 0:
            self._is_group_leader = True
            return b""
        status = _read_status(spec.status_fd)
        found = _CHILD_PID.search(status)
        if found is None:
            return status
        first = int(found[1])
        try:
            self._first_fd = os.pidfd_open(first)
            self._first = first
            self._cgroup = backend.cgroups.create(limits)
            if self._cgroup:
                self._cgroup.add(first)
            counted = backend.counts_own_processes
            limit_process(first, limits, in_cgroup=self._cgroup is not None, counts_own_processes=counted)
            os.write(spec.start_fd, b"\n")
            self._start_fd = spec.start_fd if spec.is_supervised else None
        except (ProcessLookupError, BrokenPipeError):
            # It has already ended. The sandbox reports the reason.
            return status
        except OSError as error:
            raise CommandNotStarted(reason=error.strerror or str(error)) from error
        return status

    def watch(
        self,
        readers: Mapping[int, Callable[[], bool]],
        until: float,
        limits: ResourceLimits,
        stop: threading.Event | None,
    ) -> None:
        """Read output until the command has ended. Kill it at its deadline.

        - ``readers``: by descriptor, a function that reads it without waiting, and returns False at its end.
        - ``until``: the deadline, by `time.monotonic`.
        - ``limits``: the limits of the command. They are checked here if it has no control group.
        - ``stop``: kills the command when set.
        """
        deadline: float | None = None
        polls = stop is not None or self._cgroup is None
        with selectors.DefaultSelector() as selector:
            for fd, read in readers.items():
                selector.register(fd, selectors.EVENT_READ, read)
            if self._process_fd is not None:
                selector.register(self._process_fd, selectors.EVENT_READ)
            while (selector.get_map() or not self._is_over()) and (
                deadline is None or time.monotonic() < deadline
            ):
                left = (until if deadline is None else deadline) - time.monotonic()
                for key, _ in selector.select(max(0.0, min(left, _POLL_SECONDS) if polls else left)):
                    if key.data is None or not key.data():
                        selector.unregister(key.fileobj)
                if deadline is None and self._is_over():
                    deadline = time.monotonic() + _END_SECONDS
                    self._kill_group()
                if deadline is None:
                    self.timed_out = time.monotonic() >= until
                    self.stopped = not self.timed_out and stop is not None and stop.is_set()
                    if self.timed_out or self.stopped or self._uses_too_much(limits):
                        self._kill()
                        deadline = time.monotonic() + _END_SECONDS

    def exit_code(self) -> int:
        """Wait for the end. Return the exit code in a shell's form."""
        self._wait()
        code = self._process.returncode
        return 128 - code if code < 0 else code

    def _uses_too_much(self, limits: ResourceLimits) -> bool:
        """Return whether a command without a control group exceeds its limits. Check at most every 50 ms."""
        now = time.monotonic()
        if self._cgroup or self._first is None or now < self._last_check + _POLL_SECONDS:
            return False
        self._last_check = now
        return exceeds_limits(self._first, limits)

    def _kill(self) -> None:
        """Kill all processes. The sandbox ends when its first process has ended."""
        self.killed = True
        if self._cgroup:
            self._cgroup.kill()
        if self._is_group_leader:
            self._kill_group()
        elif self._start_fd is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._start_fd, b"\n")
        elif self._first_fd is None:
            self._process.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first_fd, signal.SIGKILL)

    def _is_over(self) -> bool:
        return self._process.poll() is not None

    def _kill_group(self) -> None:
        """Kill the process group, if the sandbox has no other way to end all processes."""
        if self._is_group_leader:
            # macOS refuses if the leader is a zombie.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _wait(self) -> None:
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _close(self) -> None:
        if self._process.poll() is None:
            self._kill()
            self._wait()
        if self._process_fd is not None:
            os.close(self._process_fd)
        if self._first_fd is not None:
            # The first process of a namespace ends only after all others.
            _is_readable(self._first_fd, _END_SECONDS)
            os.close(self._first_fd)
        if self._cgroup:
            self._cgroup.close()


def _read_status(fd: int) -> bytes:
    """Return the report of a sandbox, up to its first process or the end of the report."""
    status = b""
    until = time.monotonic() + _START_SECONDS
    while not _CHILD_PID.search(status) and _is_readable(fd, until - time.monotonic()):
        piece = os.read(fd, 4096)
        if not piece:
            break
        status += piece
    return status


def _is_readable(fd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))
