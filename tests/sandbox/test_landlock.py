"""Calls that Landlock allows and its supervisor and filter refuse, and the differences to other kinds."""

from __future__ import annotations

import os
import select
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hostile.leftovers import deep_tree
from sandbox.processes import token
from watchroom.platform.sandbox.backend import SandboxBackend
from watchroom.platform.sandbox.limits import ResourceLimits
from watchroom.platform.sandbox.probe import SandboxProbe
from watchroom.platform.sandbox.runner import CommandResult, run_command


@pytest.fixture(scope="module")
def landlocked(probe: SandboxProbe) -> SandboxBackend:
    result = next(result for result in probe.results if result.name == "landlock")
    if result.backend is None:
        pytest.skip(f"Landlock does not work here: its isolation is not tested ({result.reason.strip()})")
    return result.backend


def closed(backend: SandboxBackend, folder: Path, command: str) -> CommandResult:
    return run_command(command, str(folder), backend=backend, limits=ResourceLimits(seconds=20))


def python(program: str) -> str:
    return f"python3 -c {shlex.quote(program)}"


def test_modes_owners_and_times_of_its_own_files_can_be_changed(
    landlocked: SandboxBackend, folder: Path
) -> None:
    finished = closed(
        landlocked,
        folder,
        "mkdir a; echo x > a/b; chmod 750 a; cd a; chmod 600 b; touch -d @5 b; ln -s b c; touch -h -d @6 c;"
        'cp -a . ../copy; chown "$(id -u):$(id -g)" b; cd ..; chmod 700 "$PWD/copy/b"; echo > "$TMPDIR/t";'
        'chmod 400 "$TMPDIR/t"; stat -c %a "$TMPDIR/t"',
    )
    assert (finished.stdout, finished.stderr, finished.exit_code) == ("400\n", "", 0)
    modes = {name: (folder / name).stat().st_mode & 0o777 for name in ("a", "a/b", "copy", "copy/b")}
    assert modes == {"a": 0o750, "a/b": 0o600, "copy": 0o750, "copy/b": 0o700}
    assert ((folder / "copy/b").stat().st_mtime, (folder / "copy/c").lstat().st_mtime) == (5, 6)


@pytest.mark.parametrize("reached", ["{0}", "../other", "link", "$PWD/../other", "/proc/self/cwd/../other"])
def test_those_of_others_cannot(
    landlocked: SandboxBackend, folder: Path, tmp_path: Path, reached: str
) -> None:
    """Landlock itself would allow the change."""
    other = tmp_path / "other"
    other.write_text("as it was")
    os.chmod(other, 0o640)
    os.utime(other, (1, 1))
    (folder / "link").symlink_to(other)
    path = reached.format(other)
    for attempt in ("chmod 777", "touch -c -d @9", 'chown "$(id -u)"'):
        closed(landlocked, folder, f"{attempt} {path}")
    assert (other.stat().st_mode & 0o777, other.stat().st_mtime) == (0o640, 1)


def test_those_of_a_file_that_is_open_for_reading_cannot(landlocked: SandboxBackend, folder: Path) -> None:
    """The history and all programs are such files."""
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    os.chmod(folder / ".git" / "config", 0o644)
    program = (
        "import os\n"
        "for path in ('.git/config', '/bin/sh'):\n"
        "  fd = os.open(path, os.O_RDONLY)\n"
        "  for change in (lambda: os.fchmod(fd, 0o600), lambda: os.utime(fd, (1, 1)), lambda: os.fchown(fd, -1, -1)):\n"
        "    try: change()\n"
        "    except PermissionError: print('no')"
    )
    assert closed(landlocked, folder, python(program)).stdout.split() == ["no"] * 6
    assert (folder / ".git" / "config").stat().st_mode & 0o777 == 0o644


def test_odd_calls_harm_the_supervisor_not(landlocked: SandboxBackend, folder: Path) -> None:
    program = (
        "import ctypes, platform\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for path in (1, 2**63, 2**64 - 1, 2**47 - 1): print(libc.syscall({0}, -100, ctypes.c_ulong(path), 0o600, 0))\n"
        "for path in (b'', b'/', b'a' * 5000, b'/proc/self/mem', b'\\xff\\n'): print(libc.syscall({0}, -100, path, 0o600))\n"
        "for fd in (-1, 99, 2**31): print(libc.fchmod(ctypes.c_int(fd), 0o600), libc.fchown(ctypes.c_int(fd), 0, 0))\n"
        "print(libc.utimensat(-100, b'.', ctypes.c_void_p(1), 0))\n"
        "open('last', 'w'); print(libc.chmod(b'last', 0o640))"
    ).format("{'x86_64': 268, 'aarch64': 53}[platform.machine()]")
    finished = closed(landlocked, folder, f"{python(program)}; echo here")
    *refusals, last, here = finished.stdout.split()
    assert (set(refusals), last, here, finished.stderr) == ({"-1"}, "0", "here", "")
    assert (folder / "last").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_services_behind_a_path_are_out_of_reach(
    landlocked: SandboxBackend, folder: Path, kind: socket.SocketKind
) -> None:
    """Such services start programs, or use keys."""
    with socket.socket(socket.AF_UNIX, kind) as service:
        service.bind(str(folder / "service"))
        if kind == socket.SOCK_STREAM:
            service.listen()
        service.setblocking(False)
        pair = f"socket.socketpair(socket.AF_UNIX, {int(kind)})[0]"
        for end in (f"socket.socket(socket.AF_UNIX, {int(kind)})", pair):
            program = f"import socket; end = {end}; end.connect('service'); end.send(b'x'); print('in')"
            finished = closed(landlocked, folder, python(program))
            assert (finished.exit_code, finished.stdout) == (1, "")
        with pytest.raises(BlockingIOError):
            service.recv(1) if kind == socket.SOCK_DGRAM else service.accept()


def test_other_processes_of_its_user_are_out_of_reach(landlocked: SandboxBackend, folder: Path) -> None:
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    program = (
        "import ctypes, os, resource\n"
        f"us = {os.getpid()}\n"
        "for reach in (lambda: os.kill(us, 0), lambda: resource.prlimit(us, resource.RLIMIT_NOFILE),\n"
        "              lambda: os.setpriority(os.PRIO_PROCESS, us, 19), lambda: os.sched_setaffinity(us, {0}),\n"
        "              lambda: os.setpriority(os.PRIO_USER, 0, 19), lambda: open(f'/proc/{us}/cmdline')):\n"
        "  try: reach()\n"
        "  except PermissionError: print('no')\n"
        "print(ctypes.CDLL(None).shmget(5309, 4096, 0o1600))"
    )
    finished = closed(landlocked, folder, python(program))
    assert finished.stdout.split() == ["no"] * 6 + ["-1"]
    assert os.getpriority(os.PRIO_PROCESS, 0) == niceness


def test_where_a_history_is_nothing_is_put_beside_it(landlocked: SandboxBackend, folder: Path) -> None:
    """Landlock cannot take back for an entry a right that it gives to the folder."""
    (folder / ".git").mkdir()
    (folder / "src").mkdir()
    (folder / "readme").write_text("old")
    assert closed(landlocked, folder, "echo new > readme; echo x > src/new; mkdir src/sub").exit_code == 0
    assert closed(landlocked, folder, "echo x > new").exit_code != 0
    assert (folder / "readme").read_text() == "new\n"
    assert sorted(os.listdir(folder)) == [".git", "readme", "src"]


def test_its_temporary_folder_is_gone_afterwards(landlocked: SandboxBackend, folder: Path) -> None:
    command = f'echo "$TMPDIR"; cd "$TMPDIR"; mkdir -p a/b; {deep_tree()}; chmod 0 a d .'
    finished = closed(landlocked, folder, command)
    path = finished.stdout.strip()
    assert os.path.basename(path).startswith("watchroom-")
    assert not os.path.exists(path)


def test_its_temporary_folder_goes_with_a_supervisor_that_is_killed(
    landlocked: SandboxBackend, folder: Path
) -> None:
    program = f"""
from watchroom.platform.sandbox.landlock import LandlockBackend
from watchroom.platform.sandbox.limits import CgroupFactory
from watchroom.platform.sandbox.runner import run_command
run_command('echo "$TMPDIR"; sleep {token()}', {str(folder)!r}, backend=LandlockBackend.detect(CgroupFactory()), on_output=lambda _, text: print(text, flush=True))
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        path = process.stdout.readline().strip()
        beneath = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
        )
        last = os.pidfd_open(int(beneath.stdout.split()[0]))
        process.send_signal(signal.SIGKILL)
    _ends(last)
    assert path
    assert not os.path.exists(path)


def _ends(process: int) -> None:
    assert select.select([process], [], [], 20)[0]
    os.close(process)
