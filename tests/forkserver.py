"""Start commands of the tests by forking a process that has already imported their modules.

An interpreter takes half a second to import the server of tools or the dashboard, and the tests start some
hundred of them. The caller of `subprocess` still gets a child of its own: the process in between ends at
once, and its child is adopted by the caller (PR_SET_CHILD_SUBREAPER, Linux).
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import json
import locale
import os
import runpy
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, NamedTuple, Never

MODULES: Final = (
    "watchroom_cli.main",
    "watchroom_tui.worker.main",
    "watchroom.agents.simulation.process_main",
    "crash.document_writer",
    "journal.machine",
    "realtime.edit_many",
)
"""Modules that are forked when they are run with ``python -m``."""
TESTS: Final = os.path.dirname(__file__)
SCRIPTS: Final = tuple(
    os.path.join(TESTS, each) for each in ("requirements/boards/board_writer.py", "processes/")
)
"""Programs of the tests that are forked."""
LOADED: Final = (
    *MODULES,
    "anyio._backends._asyncio",
    "inotify_simple",
    "pygit2",
    "watchroom_tui.app",
    "watchroom_cli.start.dashboard",
    "watchroom_cli.agents.mcp",
    "watchroom_cli.machines.service",
    "watchroom_cli.start.task",
    "watchroom_cli.watch.watch",
    "watchroom_tui.formatters.board_summary",
    "watchroom.agents.clients.attendant",
    "watchroom.platform.linux",
    "watchroom.serving.service.service",
    "watchroom.serving.stdio",
    "watchroom.agents.society",
    "watchroom.workspace",
    "watchroom_whiteboards.tools",
)
"""Modules that are imported before the first command."""
_SUBREAPER: Final = 36
_DIFFERENT: Final = ("PYTHON", "LC_ALL", "LC_CTYPE", "LANG", "TEXTUAL")
"""Prefixes of variables that matter when an interpreter starts, or a module is imported."""


class Command(NamedTuple):
    """The command of a forked process, and its environment."""

    arguments: list[str]
    folder: str
    variables: dict[str, str]
    has_session: bool
    has_terminal: bool


class Start(NamedTuple):
    """The arguments of `subprocess._fork_exec` (Python 3.11 to 3.13)."""

    command: Sequence[str | bytes]
    programs: Sequence[bytes]
    close_fds: bool
    kept: Sequence[int]
    folder: str | bytes | None
    variables: Sequence[bytes] | None
    input_read: int
    input_write: int
    output_read: int
    output_write: int
    errors_read: int
    errors_write: int
    failed_read: int
    failed_write: int
    restore_signals: bool
    new_session: bool
    process_group: int
    group: int | None
    groups: Sequence[int] | None
    user: int | None
    mask: int
    prepare: Callable[[], object] | None
    vfork: bool


class ForkServer:
    """The process that forks. It is started with the first command."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None

    def fork(self, command: Command, streams: list[int]) -> int:
        """Return the id of a new child of this process, which runs ``command`` with these streams."""
        with self._lock:
            connection = self._connection or self._start(command.variables)
            _adopt_orphans(True)
            try:
                socket.send_fds(connection, [json.dumps(command._asdict()).encode()], streams)
                return int(connection.recv(64))
            finally:
                _adopt_orphans(False)

    def close(self) -> None:
        """End the process. Its forked commands continue."""
        if self._connection is not None and self._process is not None:
            self._connection.close()
            self._process.wait()

    def _start(self, variables: dict[str, str]) -> socket.socket:
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=variables,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
            )
        return self._connection


def _adopt_orphans(is_wanted: bool) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, int(is_wanted), 0, 0, 0)


@contextmanager
def forked_commands() -> Iterator[None]:
    """Fork the commands of Watchroom that `subprocess` starts, if that makes no difference for them, while
    the context lasts."""
    server, usual = ForkServer(), _counts(os.environ)
    start: Callable[..., int] = subprocess._fork_exec  # type: ignore[attr-defined]

    def fork_exec(*given: Any) -> int:
        if len(given) != len(Start._fields):
            # Another version of Python.
            return start(*given)
        asked = Start(*given)
        command = _command(asked, usual)
        return start(*given) if command is None else server.fork(command, _streams(asked))

    subprocess._fork_exec = fork_exec  # type: ignore[attr-defined]
    try:
        yield
    finally:
        subprocess._fork_exec = start  # type: ignore[attr-defined]
        server.close()


def _command(start: Start, usual: Mapping[str, str]) -> Command | None:
    """Return the command to fork, None if it must be started as usual, for instance because variables that
    matter differ from the ``usual`` ones."""
    typed = [os.fsdecode(each) for each in start.command]
    if typed[1:2] == ["-P"]:
        # A forked process has its working directory in the module path anyway.
        del typed[1]
    variables = dict(os.environ) if start.variables is None else dict(map(_split, start.variables))
    is_module = typed[1:2] == ["-m"] and typed[2] in MODULES
    is_ours = typed[0] == sys.executable and (is_module or "".join(typed[1:2]).startswith(SCRIPTS))
    is_same_user = (start.group, start.groups, start.user, start.mask) == (None, None, None, -1)
    if not is_ours or not is_same_user or len(start.kept) > 1 or _counts(variables) != usual:
        return None
    if start.prepare is not None and start.prepare.__module__ != "pty_driver":
        return None
    return Command(
        arguments=typed[2:] if typed[1] == "-m" else typed[1:],
        folder=os.fsdecode(start.folder or os.getcwd()),
        variables=variables,
        has_session=bool(start.new_session),
        has_terminal=start.prepare is not None,
    )


def _split(entry: bytes) -> tuple[str, str]:
    name, _, value = os.fsdecode(entry).partition("=")
    return name, value


def _counts(variables: Mapping[str, str]) -> dict[str, str]:
    counted = {name: variables[name] for name in variables if name.startswith(_DIFFERENT)}
    if counted.get("PYTHONUTF8") == "1" and locale.getencoding().lower() == "utf-8":
        # It is the default anyway.
        del counted["PYTHONUTF8"]
    return counted


def _streams(start: Start) -> list[int]:
    ends = (start.input_read, start.output_write, start.errors_write)
    return [end if end >= 0 else usual for usual, end in enumerate(ends)]


def serve(connection: socket.socket) -> Command:
    """Fork for each requested command. Return the command in the process that must run it."""
    gc.disable()
    for module in LOADED:
        import_module(module)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)
    gc.enable()
    while True:
        asked, streams, *_ = socket.recv_fds(connection, 1 << 20, 3)
        if not asked:
            sys.exit()
        number = _fork_orphan()
        if number is None:
            for standard, stream in enumerate(streams):
                os.dup2(stream, standard)
            connection.detach()
            os.closerange(3, 1024)
            return Command(**json.loads(asked))
        for stream in streams:
            os.close(stream)
        connection.send(str(number).encode())


def _fork_orphan() -> int | None:
    """Return the id of a new process whose parent has ended, and None in that process."""
    told, tell = os.pipe()
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        number = int(os.read(told, 64))
        os.close(told)
        os.close(tell)
        return number
    between = os.getpid()
    if number := os.fork():
        os.write(tell, str(number).encode())
        os._exit(0)
    while os.getppid() == between:
        time.sleep(0.0002)
    return None


def run(command: Command) -> None:
    """Run ``command`` in this process, as if an interpreter had just started with it."""
    if command.has_session:
        os.setsid()
    if command.has_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(command.folder)
    os.environ.clear()
    os.environ.update(command.variables)
    time.tzset()
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        usual = getattr(sys, f"__{name}__")
        stream = open(  # noqa: SIM115  # it stays open
            number,
            usual.mode,
            encoding=usual.encoding,
            errors=usual.errors,
            closefd=False,
            buffering=1 if name == "stderr" or os.isatty(number) else -1,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = command.arguments
    program = sys.argv[0]
    is_module = program in MODULES
    sys.path[0] = command.folder if is_module else os.path.dirname(program)
    try:
        if is_module:
            sys.modules.pop(program, None)
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        _end(int(end.code or 0))
    _end(0)


def _end(status: int) -> Never:
    """End as an interpreter does, but without destroying its modules, which would copy their memory and takes
    longest."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        status = 120
    os._exit(status)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as own_end:
        ordered = serve(own_end)
    run(ordered)
