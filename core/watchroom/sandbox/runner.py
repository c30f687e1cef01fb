"""Runs one command in a sandbox, to its end or to the end of its time, with all that it starts."""

from __future__ import annotations

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
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.sandbox.backend import (
    LaunchDescriptors,
    LaunchRequest,
    LaunchSpec,
    NetworkAccess,
    SandboxBackend,
)
from watchroom.sandbox.cgroups import Cgroup
from watchroom.sandbox.errors import CommandNotStarted, InvalidCommand
from watchroom.sandbox.limits import ResourceLimits, exceeds_limits, limit_process
from watchroom.sandbox.output import CapturedStream, OnOutput, StartSignal, StreamReader, read_available

_CHILD_PID: Final = re.compile(rb'"child-pid": *(\d+)\D')
_START_SECONDS: Final = 10.0
"""Time for a sandbox to be set up."""
_END_SECONDS: Final = 5.0
"""Time for killed processes to be gone: it is the kernel that ends them."""
_KILLED: Final = 137
"""128 and the number of SIGKILL, which not every system has."""
_POLL_SECONDS: Final = 0.05
"""Between two looks at ``stop``, and at what a command uses that has no control group."""


class CommandResult(NamedTuple):
    """What a command did, in ``seconds`` of wall-clock time. ``exit_code`` is 128 and the signal's number
    where a signal ended it, as in a shell; ``stopped`` says that the caller had it ended, ``truncated`` that
    it printed more than was kept."""

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
    """Run ``command``, a line for ``/bin/sh``, in ``folder`` with a sandbox of ``backend``.

    It returns when the command is over, when its time of ``limits`` is, or when ``stop`` is set: in each case
    nothing that the command started is left. ``network`` is what it can reach. ``on_output`` is given what is
    printed as it comes, up to the limit; what it raises ends the command and is raised here.

    Raises `InvalidCommand`, `CommandNotStarted`, `FolderNotFound`, `FolderTooWide`.
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
            CapturedStream("stdout", stdout_fd, limits.output_bytes, on_output),
            CapturedStream("stderr", stderr_fd, limits.output_bytes, on_output),
        ]
        status = processes.begin(backend, spec, limits)
        processes.watch([*streams, StartSignal(signal_fd)], begin + limits.seconds, limits, stop)
        exit_code = processes.exit_code()
        output, errors = (each.finish() for each in streams)
        status += read_available(spec.status_fd) if spec.status_fd >= 0 else b""
        reason = backend.start_failure(status, exit_code, errors)
        if processes.killed:
            # A sandbox that is killed while it starts reports that failure with its own exit code.
            exit_code, errors = _KILLED, errors if reason is None else ""
        elif reason is not None:
            raise CommandNotStarted(reason=reason)
    truncated = any(each.is_cut for each in streams)
    seconds = time.monotonic() - begin
    return CommandResult(
        output, errors, exit_code, processes.timed_out, processes.stopped, seconds, truncated
    )


class _ProcessTree:
    """The processes of one command: the sandbox's own, which is our child, and all in it, of which we know
    the first. When ``closing`` closes they are gone, whatever happened."""

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
        """Limit the first process, then let it begin. Returns the status up to then; nothing begins where
        that names no process: the sandbox says why later."""
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
            # It is over already; the sandbox will say why.
            return status
        except OSError as error:
            raise CommandNotStarted(reason=error.strerror or str(error)) from error
        return status

    def watch(
        self,
        readers: Sequence[StreamReader],
        until: float,
        limits: ResourceLimits,
        stop: threading.Event | None,
    ) -> None:
        """Read what comes from ``readers`` until all is over, and kill it where that comes too late."""
        deadline: float | None = None
        polls = stop is not None or self._cgroup is None
        with selectors.DefaultSelector() as selector:
            for reader in readers:
                selector.register(reader.fd, selectors.EVENT_READ, reader)
            if self._process_fd is not None:
                selector.register(self._process_fd, selectors.EVENT_READ)
            while (selector.get_map() or not self._is_over()) and (
                deadline is None or time.monotonic() < deadline
            ):
                left = (until if deadline is None else deadline) - time.monotonic()
                for key, _ in selector.select(max(0.0, min(left, _POLL_SECONDS) if polls else left)):
                    if key.data is None or not key.data.read():
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
        """How it ended, as a shell reports it."""
        self._wait()
        code = self._process.returncode
        return 128 - code if code < 0 else code

    def _uses_too_much(self, limits: ResourceLimits) -> bool:
        """Whether it uses more than it may, where it has no control group; not looked at more often than
        useful."""
        now = time.monotonic()
        if self._cgroup or self._first is None or now < self._last_check + _POLL_SECONDS:
            return False
        self._last_check = now
        return exceeds_limits(self._first, limits)

    def _kill(self) -> None:
        """Kill all of it. The sandbox's own process sees its first one go, and goes too."""
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
        """Kill what is left of a command that nothing but its process group holds together."""
        if self._is_group_leader:
            # Where its first process is not waited for yet, the system may refuse.
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
            # The first process of a namespace is gone only when all others are.
            _is_readable(self._first_fd, _END_SECONDS)
            os.close(self._first_fd)
        if self._cgroup:
            self._cgroup.close()


def _read_status(fd: int) -> bytes:
    """What a sandbox reports until it has named its first process, or has no more to report."""
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
