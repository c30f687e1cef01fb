"""Runs one command behind a backend, to its end or to the end of its time, with all that it starts."""

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

from watchroom.sandbox import resources
from watchroom.sandbox.backend import Launch, LaunchDescriptors, NetworkAccess, SandboxBackend
from watchroom.sandbox.cgroups import Cgroup
from watchroom.sandbox.errors import CommandNotStarted, InvalidCommand
from watchroom.sandbox.limits import ResourceLimits
from watchroom.sandbox.output import Line, OnOutput, Output, Source, drained
from watchroom.sandbox.watching import beyond

_CHILD_PID: Final = re.compile(rb'"child-pid": *(\d+)\D')
_STARTING: Final = 10.0
"""Seconds in which a backend must be up."""
_GOING: Final = 5.0
"""Seconds in which what was killed must be gone: it is the kernel that ends it."""
_KILLED: Final = 137
"""128 and the number of SIGKILL, which not every system has."""
_LOOKING: Final = 0.05
"""Seconds between two looks at ``stop``, and at what a command uses that no group holds."""


class CommandResult(NamedTuple):
    """What a command did. ``exit_code`` is 128 and the signal's number where a signal ended it, as in a
    shell; ``stopped`` says that it was ended because somebody wanted it so, ``cut`` that it printed more than
    was kept."""

    stdout: str
    stderr: str
    exit_code: int
    timed_out: bool
    stopped: bool
    seconds: float
    cut: bool


def run(
    command: str,
    folder: str,
    *,
    backend: SandboxBackend,
    limits: ResourceLimits = ResourceLimits(),  # noqa: B008  # immutable
    network: NetworkAccess = False,
    on_output: OnOutput | None = None,
    stop: threading.Event | None = None,
) -> CommandResult:
    """Run ``command`` as a shell would, in ``folder``, behind ``backend``.

    It returns when the command is over, when its time is, or when ``stop`` is set: in each case nothing that
    the command started is left. ``on_output`` is given what is printed as it comes, up to the cap.
    """
    begin = time.monotonic()
    if "\0" in command or not _is_encodable(command):
        raise InvalidCommand
    with ExitStack() as closing:
        descriptors = LaunchDescriptors()
        closing.callback(descriptors.close)
        try:
            out, printing = descriptors.output_pipe()
            err, complaining = descriptors.output_pipe()
            line, listening = descriptors.socket_pair()
            launch = backend.launch(command, folder, limits, network, descriptors)
            process = subprocess.Popen(
                launch.argv,
                stdin=listening,
                stdout=printing,
                stderr=complaining,
                env={},
                cwd="/",
                pass_fds=tuple(set(descriptors.inherited()) - {listening, printing, complaining}),
                start_new_session=True,
            )
            running = _Running(process, closing)
        except OSError as error:
            raise CommandNotStarted(reason=error.strerror or str(error)) from error
        descriptors.close_inherited()
        outputs = [
            Output("stdout", out, limits.output_bytes, on_output),
            Output("stderr", err, limits.output_bytes, on_output),
        ]
        told = running.begin(backend, launch, limits)
        running.watch([*outputs, Line(line)], begin + limits.seconds, limits, stop)
        exit_code = running.exit_code()
        stdout, stderr = (each.finish() for each in outputs)
        told += drained(launch.told) if launch.told >= 0 else b""
        reason = backend.start_failure(told, exit_code, stderr)
        if running.ended:
            # A backend that is ended while it starts complains of that with its own exit code.
            exit_code, stderr = _KILLED, stderr if reason is None else ""
        elif reason is not None:
            raise CommandNotStarted(reason=reason)
    cut = any(each.cut for each in outputs)
    seconds = time.monotonic() - begin
    return CommandResult(stdout, stderr, exit_code, running.timed_out, running.stopped, seconds, cut)


class _Running:
    """The processes of one command: the backend's own, which is our child, and all in it, of which we know
    the first. When ``closing`` closes they are gone, whatever happened."""

    def __init__(self, process: subprocess.Popen[bytes], closing: ExitStack) -> None:
        self._process = process
        self._process_fd: int | None = None
        self._first: int | None = None
        self._first_fd: int | None = None
        self._group: Cgroup | None = None
        self._gate: int | None = None
        self._leads = False
        self._looked = 0.0
        self.ended = self.timed_out = self.stopped = False
        closing.callback(self._leave)
        self._process_fd = _watched(process.pid)

    def begin(self, backend: SandboxBackend, launch: Launch, limits: ResourceLimits) -> bytes:
        """Bound the first process, then let it begin. Returns what the backend said up to then; nothing
        begins where it named no process, for which it has its reasons."""
        if launch.told < 0:
            self._leads = True
            return b""
        heard = _heard(launch.told)
        found = _CHILD_PID.search(heard)
        if found is None:
            return heard
        first = int(found[1])
        try:
            self._first_fd = os.pidfd_open(first)
            self._first = first
            self._group = backend.groups.create(limits)
            if self._group:
                self._group.add(first)
            apart = backend.counts_own_processes
            resources.bound(first, limits, together=self._group is not None, counts_own_processes=apart)
            os.write(launch.gate, b"\n")
            self._gate = launch.gate if launch.supervised else None
        except (ProcessLookupError, BrokenPipeError):
            # It is over already; the backend will say why.
            return heard
        except OSError as error:
            raise CommandNotStarted(reason=error.strerror or str(error)) from error
        return heard

    def watch(
        self, sources: Sequence[Source], until: float, limits: ResourceLimits, stop: threading.Event | None
    ) -> None:
        """Read what comes from ``sources`` until all is over, and end it where that comes too late."""
        last: float | None = None
        looks = stop is not None or self._group is None
        with selectors.DefaultSelector() as selector:
            for source in sources:
                selector.register(source.fd, selectors.EVENT_READ, source)
            if self._process_fd is not None:
                selector.register(self._process_fd, selectors.EVENT_READ)
            while (selector.get_map() or not self._is_over()) and (last is None or time.monotonic() < last):
                left = (until if last is None else last) - time.monotonic()
                for key, _ in selector.select(max(0.0, min(left, _LOOKING) if looks else left)):
                    if key.data is None or not key.data.read():
                        selector.unregister(key.fileobj)
                if last is None and self._is_over():
                    last = time.monotonic() + _GOING
                    self._end_group()
                if last is None:
                    self.timed_out = time.monotonic() >= until
                    self.stopped = not self.timed_out and stop is not None and stop.is_set()
                    if self.timed_out or self.stopped or self._is_beyond(limits):
                        self._end()
                        last = time.monotonic() + _GOING

    def exit_code(self) -> int:
        """How it ended, as a shell says it."""
        self._wait()
        code = self._process.returncode
        return 128 - code if code < 0 else code

    def _is_beyond(self, limits: ResourceLimits) -> bool:
        """Whether it uses more than it may, where no group holds it; not looked at more often than useful."""
        now = time.monotonic()
        if self._group or self._first is None or now < self._looked + _LOOKING:
            return False
        self._looked = now
        return beyond(self._first, limits)

    def _end(self) -> None:
        """Kill all of it. The backend's own process sees its first one go, and goes too."""
        self.ended = True
        if self._group:
            self._group.kill()
        if self._leads:
            self._end_group()
        elif self._gate is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._gate, b"\n")
        elif self._first_fd is None:
            self._process.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first_fd, signal.SIGKILL)

    def _is_over(self) -> bool:
        return self._process.poll() is not None

    def _end_group(self) -> None:
        """Kill what is left of a command that nothing but its group holds together."""
        if self._leads:
            # Where its first process is not waited for yet, the system may refuse.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _wait(self) -> None:
        try:
            self._process.wait(_GOING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _leave(self) -> None:
        if self._process.poll() is None:
            self._end()
            self._wait()
        if self._process_fd is not None:
            os.close(self._process_fd)
        if self._first_fd is not None:
            # The first process of a namespace is gone only when all others are.
            _is_readable(self._first_fd, _GOING)
            os.close(self._first_fd)
        if self._group:
            self._group.close()


def _watched(pid: int) -> int | None:
    """What becomes readable when that process descriptors, where the system has such a thing."""
    return os.pidfd_open(pid) if sys.platform == "linux" else None


def _heard(told: int) -> bytes:
    """What a backend says until it has named its first process, or has no more to say."""
    heard = b""
    until = time.monotonic() + _STARTING
    while not _CHILD_PID.search(heard) and _is_readable(told, until - time.monotonic()):
        piece = os.read(told, 4096)
        if not piece:
            break
        heard += piece
    return heard


def _is_readable(fd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))


def _is_encodable(command: str) -> bool:
    try:
        os.fsencode(command)
    except UnicodeEncodeError:
        return False
    return True
