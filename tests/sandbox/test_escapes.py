"""Ways out of the sandbox, each one tried. Files outside are checked afterwards."""

from __future__ import annotations

import base64
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from child_processes import ends
from sandbox.conftest import Run
from sandbox.processes import marked_processes, token
from timeouts import run_until_begun
from watchroom.errors import CommandNotStarted
from watchroom.platform.sandbox.backend import SandboxBackend, python_prefix
from watchroom.platform.sandbox.blocklist import find_blocked_keyword
from watchroom.platform.sandbox.limits import ResourceLimits

SECRET = "watchroom-secret-5309"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another task's folder."""
    made = tmp_path / "other"
    made.mkdir()
    (made / "secret.txt").write_text(SECRET)
    return made


def python(program: str) -> str:
    return f"python3 -c {shlex.quote(program)}"


@pytest.mark.parametrize(
    "command",
    [
        "cat {0}/secret.txt",
        "cat ../other/secret.txt",
        "cd ..; cat other/*",
        "cat /proc/1/root{0}/secret.txt",
        "cat /proc/1/cwd{0}/secret.txt",
    ],
)
def test_another_tasks_folder_cannot_be_read(inside: Run, other: Path, command: str) -> None:
    finished = inside(command.format(other))
    assert finished.exit_code != 0
    assert SECRET not in finished.stdout + finished.stderr


def test_the_systems_secrets_cannot_be_read(inside: Run, hides: bool) -> None:
    for path in ("/etc/shadow", "/etc/ssh", "/etc/ssl/private", "/var/log", "/boot", "/sys", "/run"):
        finished = inside(f"ls {path}/ || cat {path}")
        assert (finished.exit_code, finished.stdout) == (1, ""), path
        assert not hides or inside(f"ls -d {path}").exit_code != 0, path
    assert inside("cat /etc/passwd").stdout.count("\n") == int(hides)


def test_the_home_folder_cannot_be_read(inside: Run) -> None:
    home = os.path.realpath(os.path.expanduser("~"))
    shown = python_prefix() or "/none"
    finished = inside(f"find {home} -path {shown} -prune -o ! -type d -print")
    assert finished.stdout == ""
    assert any(path.is_file() for path in Path(home).iterdir()) or not os.listdir(home)


def test_a_journal_beside_the_folder_cannot_be_read(tmp_path: Path, inside: Run, hides: bool) -> None:
    """A task's folder can be beneath the workspace's."""
    journal = tmp_path / ".watchroom" / "journal.db"
    journal.parent.mkdir()
    journal.write_text(SECRET)
    finished = inside(f"cat {journal} ../.watchroom/journal.db; ls -a ..; rm -rf ../.watchroom")
    assert SECRET not in finished.stdout
    assert finished.stdout.split() == ([".", "..", "task"] if hides else [])
    assert journal.read_text() == SECRET


def test_a_journal_in_the_folder_cannot_be_seen(folder: Path, inside: Run) -> None:
    journal = folder / ".watchroom" / "journal.db"
    journal.parent.mkdir()
    journal.write_text(SECRET)
    finished = inside(
        "ls -A .watchroom; cat .watchroom/journal.db; mv .watchroom x; rm -rf .watchroom; echo x > .watchroom/journal.db"
    )
    assert finished.stdout == ""
    assert finished.exit_code != 0
    assert journal.read_text() == SECRET


def test_nothing_outside_can_be_written(tmp_path: Path, inside: Run, other: Path) -> None:
    (tmp_path / "file").write_text("as it was")
    inside(
        f"echo x > ../file; echo x > {tmp_path}/file; echo x > {tmp_path}/new; echo x > {other}/secret.txt"
    )
    assert (tmp_path / "file").read_text() == "as it was"
    assert (other / "secret.txt").read_text() == SECRET
    assert sorted(os.listdir(tmp_path)) == ["file", "other", "task"]


def test_the_system_cannot_be_written(inside: Run) -> None:
    places = [
        "/",
        "/usr",
        "/usr/bin",
        "/etc",
        "/dev",
        "/proc",
        "/proc/sys/kernel",
        "/root",
        "/home",
        python_prefix() or "/usr/lib",
    ]
    for place in places:
        name = os.path.join(place, f"watchroom-{os.getpid()}")
        assert inside(f"echo x > {name}").exit_code != 0, place
        assert not os.path.exists(name)


def test_settings_of_the_kernel_cannot_be_changed(inside: Run) -> None:
    """Root in a namespace can write these settings, and this one would run a program outside. The file is only
    opened, so that a broken backend does no harm."""
    assert inside(": >> /proc/sys/kernel/core_pattern").exit_code != 0
    program = """
import os
for place, folders, files in os.walk('/proc'):
    if place == '/proc':
        folders[:] = [name for name in folders if not name.isdecimal() and 'self' not in name]
    for name in files:
        path = os.path.join(place, name)
        if os.path.isfile(path) and os.access(path, os.W_OK):
            print(path)
"""
    finished = inside(python(program))
    assert (finished.stdout, finished.exit_code) == ("", 0)


def test_no_program_is_left_that_runs_as_its_owner(inside: Run, folder: Path) -> None:
    """For root, it would run as root outside."""
    program = (
        "import os\n"
        "for make in (lambda: os.chmod('sh', 0o4755), lambda: os.fchmod(os.open('sh', 0), 0o2755), lambda: os.open('new', os.O_CREAT, 0o4755), lambda: os.mknod('node', 0o104755)):\n"
        "  try: make()\n"
        "  except PermissionError: print('no')"
    )
    finished = inside(f"cp /bin/sh sh; chmod 755 sh; {python(program)}; chmod u+s sh")
    assert finished.stdout.split() == ["no"] * 4
    assert [path.name for path in folder.iterdir()] == ["sh"]
    assert (folder / "sh").stat().st_mode & 0o7777 == 0o755


def test_temporary_files_are_its_own(inside: Run) -> None:
    name = f"watchroom-{os.getpid()}"
    assert inside(f"echo x > $TMPDIR/{name}; cat $TMPDIR/{name}").stdout == "x\n"
    assert not Path(tempfile.gettempdir(), name).exists()


def test_a_symlink_leads_nowhere(folder: Path, inside: Run, other: Path) -> None:
    (folder / "link").symlink_to(other)
    finished = inside(f"cat link/secret.txt; echo x > link/new; ln -s {other}/secret.txt own; cat own")
    assert SECRET not in finished.stdout
    assert os.listdir(other) == ["secret.txt"]


@pytest.mark.parametrize("name", [".git", ".watchroom"])
def test_a_symlink_in_a_special_place_leads_nowhere(
    folder: Path, inside: Run, other: Path, name: str
) -> None:
    """What is mounted at these names is the folder's own entry, not the target of a link."""
    (folder / name).symlink_to(other)
    finished = inside(f"cat {name}/secret.txt; echo x > {name}/new")
    assert SECRET not in finished.stdout
    assert os.listdir(other) == ["secret.txt"]


def test_the_history_is_read_only(folder: Path, inside: Run) -> None:
    """Its hooks and settings would run for the next person who uses git there."""
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".git" / "config").write_text("[core]\n")
    for attempt in (
        "echo x >> .git/config",
        "echo x > .git/hooks/pre-commit",
        "mv .git old",
        "rm -rf .git",
        "mount -o remount,rw .git",
    ):
        assert inside(attempt).exit_code != 0, attempt
    assert inside("cat .git/config").stdout == "[core]\n"
    assert (folder / ".git" / "config").read_text() == "[core]\n"
    assert os.listdir(folder / ".git" / "hooks") == []


def test_histories_of_what_was_cloned_into_it_are_read_only(folder: Path, inside: Run) -> None:
    """A file names the history of a submodule."""
    (folder / "vendored" / "lib" / ".git" / "hooks").mkdir(parents=True)
    (folder / "module").mkdir()
    (folder / "module" / ".git").write_text("gitdir: ../.git/modules/module\n")
    for attempt in (
        "echo x > vendored/lib/.git/config",
        "echo x > vendored/lib/.git/hooks/pre-commit",
        "mv vendored/lib/.git vendored/lib/old",
        "rm -rf vendored/lib/.git",
        "echo x > module/.git",
        "rm -f module/.git",
    ):
        assert inside(attempt).exit_code != 0, attempt
    assert os.listdir(folder / "vendored" / "lib" / ".git") == ["hooks"]
    assert os.listdir(folder / "vendored" / "lib" / ".git" / "hooks") == []
    assert (folder / "module" / ".git").read_text() == "gitdir: ../.git/modules/module\n"
    (folder / "src").mkdir()
    (folder / "vendored" / "lib" / "a.c").touch()
    assert inside("echo x > src/new; echo y > vendored/lib/a.c").exit_code == 0


@pytest.mark.parametrize("git", [".git", "repo", "vendored/repo"])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_a_link_to_a_history_names_is_read_only(folder: Path, inside: Run, git: str, kind: str) -> None:
    """For example the history of a worktree, or of a repository apart from its files."""
    (folder / git / "hooks").mkdir(parents=True)
    (folder / "tree").mkdir()
    if kind == "link":
        (folder / "tree" / ".git").symlink_to(Path("..") / git)
    else:
        (folder / "tree" / ".git").write_text(f"gitdir: {folder / git}\n")
    for attempt in (f"echo x > {git}/config", f"echo x > {git}/hooks/pre-commit", f"mv {git} old"):
        assert inside(attempt).exit_code != 0, attempt
    assert [path.name for path in (folder / git).iterdir()] == ["hooks"]


def test_histories_are_read_only_however_much_lies_nearer_to_the_top(folder: Path, inside: Run) -> None:
    for number in range(2_100):
        (folder / "many" / str(number)).mkdir(parents=True)
    deep = Path("a/b/c/d/e")
    (folder / deep / ".git" / "modules" / "m").mkdir(parents=True)
    (folder / deep / "bare" / "refs").mkdir(parents=True)
    (folder / deep / "bare" / "objects").mkdir()
    (folder / deep / "bare" / "HEAD").write_text("ref: refs/heads/main\n")
    for name in (".git/config", ".git/config.worktree", ".git/modules/m/config", "bare/config"):
        assert inside(f"echo x > {deep / name}").exit_code != 0
        assert not (folder / deep / name).exists()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


def connecting(listener: socket.socket) -> str:
    return python(
        f"import socket; socket.create_connection(('127.0.0.1', {listener.getsockname()[1]})); print('in')"
    )


def test_the_network_is_off(inside: Run, listener: socket.socket, hides: bool) -> None:
    finished = inside(connecting(listener))
    assert finished.exit_code != 0
    assert finished.stdout == ""
    with pytest.raises(BlockingIOError):
        listener.accept()
    refusal = "unreachable" if hides else "not supported"
    assert refusal in inside(python("import socket; socket.create_connection(('192.0.2.1', 80), 5)")).stderr


def test_the_network_is_there_when_it_is_asked_for(inside: Run, listener: socket.socket) -> None:
    assert inside(connecting(listener), network=True).stdout == "in\n"
    listener.accept()[0].close()


@pytest.mark.parametrize("network", [False, True])
def test_services_behind_abstract_sockets_are_out_of_reach(inside: Run, network: bool) -> None:
    name = f"\0watchroom-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(name)
        listening.listen()
        listening.setblocking(False)
        program = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r}); print('in')"
        finished = inside(python(program), network=network)
        assert finished.exit_code != 0
        with pytest.raises(BlockingIOError):
            listening.accept()


@pytest.mark.parametrize("network", [False, True])
def test_an_agent_that_holds_keys_is_out_of_reach(
    inside: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: bool
) -> None:
    path = str(tmp_path / "agent")
    monkeypatch.setenv("SSH_AUTH_SOCK", path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        program = f"import socket; socket.socket(socket.AF_UNIX).connect({path!r}); print('in')"
        finished = inside(f"{python(program)}; echo $SSH_AUTH_SOCK", network=network)
        assert finished.stdout.strip() == ""


def test_the_environments_secrets_are_not_there(inside: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", SECRET)
    finished = inside("env; cat /proc/*/environ; set")
    assert "PATH=" in finished.stdout
    assert SECRET not in finished.stdout + finished.stderr


def test_no_process_outside_can_be_seen_or_ended(inside: Run) -> None:
    """The process of this test would be ended."""
    finished = inside(
        f"kill -9 {os.getpid()}; kill -9 {os.getppid()}; echo here; ls /proc | grep -c '^[0-9]'; kill -9 -1"
    )
    assert finished.stdout.split()[0] == "here"
    assert int(finished.stdout.split()[1]) < 8
    assert inside("kill -9 1; echo still here").stdout == "still here\n"


def test_nothing_survives_the_timeout_but_what_was_printed(inside: Run) -> None:
    marked = token()
    ways = [
        "(setsid sleep {0} > /dev/null 2>&1 < /dev/null &)",
        "(setsid sleep {0} &); (trap '' TERM HUP INT; sleep {0}) &",
        "nohup setsid sh -c 'sh -c \"sleep {0} & sleep {0}\" & sleep {0}' & sleep {0} & wait",
    ]
    command = f"echo on; {'; '.join(ways).format(marked).replace('&;', '&')}"
    finished = run_until_begun(
        lambda seconds: inside(command, limits=ResourceLimits(seconds=seconds)), lambda done: done.stdout
    )
    assert (finished.timed_out, finished.stdout) == (True, "on\n")
    assert marked_processes(marked) == []


def test_nothing_survives_a_double_fork(inside: Run) -> None:
    marked = token()
    program = f"import os\nfor _ in range(2):\n  if os.fork(): os._exit(0)\n  os.setsid()\nos.execvp('sleep', ['sleep', '{marked}'])"
    assert not inside(f"{python(program)}; echo done").timed_out
    assert marked_processes(marked) == []


def supervisor(command: str, folder: Path, backend: SandboxBackend) -> str:
    """A program that runs a command, and prints when it starts and what the command prints."""
    kind = type(backend)
    return f"""
from {kind.__module__} import {kind.__name__}
from watchroom.platform.sandbox.limits import CgroupFactory
from watchroom.platform.sandbox.runner import run_command
backend = {kind.__name__}.detect(CgroupFactory.detect())
print("starting", flush=True)
run_command({command!r}, {str(folder)!r}, backend=backend, on_output=lambda _, text: print(text, flush=True))
"""


def test_everything_ends_with_the_one_that_started_it(backend: SandboxBackend, folder: Path) -> None:
    """A killed supervisor cannot end its commands."""
    marked = token()
    program = supervisor(f"echo on; sleep {marked}", folder, backend)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert [process.stdout.readline() for _ in range(2)] == ["starting\n", "on\n"]
        running = marked_processes(marked)
        assert running
        process.kill()
    assert [pid for pid in running if not ends(pid, 10)] == []


@pytest.mark.parametrize("after", [0.0, 0.002, 0.004, 0.006, 0.008, 0.01, 0.012, 0.015, 0.02])
def test_no_command_outlives_one_that_is_killed_while_it_starts(
    backend: SandboxBackend, folder: Path, after: float
) -> None:
    """By then the sandbox is partly set up, or about to start the command. A process of bubblewrap itself can
    remain, which waits forever for a killed one. The test ends it."""
    marked = token()
    program = supervisor(f"sleep {marked}", folder, backend)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "starting\n"
        select.select([process.stdout], [], [], after)
        process.kill()
    for pid in marked_processes(marked):
        ends(pid, 1)
    left: list[bytes] = []
    for pid in marked_processes(marked):
        with suppress(FileNotFoundError, ProcessLookupError):
            left.append(Path(f"/proc/{pid}/cmdline").read_bytes())
            os.kill(pid, signal.SIGKILL)
    assert [line for line in left if line.startswith(b"sleep")] == []


REFUSED_CALLS = {
    "ptrace": "libc.ptrace(0, 0, 0, 0)",
    "mount": "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
    "unshare": "libc.unshare(0x10000000)",
    "setns": "libc.setns(0, 0)",
    "keyctl": "libc.syscall(250 if x86 else 219, 0, 0)",
    "bpf": "libc.syscall(321 if x86 else 280, 0, 0, 0)",
    "io_uring_setup": "libc.syscall(425, 1, 0)",
    "perf_event_open": "libc.syscall(298 if x86 else 241, 0, 0, 0, 0, 0)",
    "userfaultfd": "libc.syscall(323 if x86 else 282, 0)",
    "clone": "libc.syscall(56 if x86 else 220, 0x10000000 | 17, 0, 0, 0, 0)",
    "ioctl(TIOCSTI)": "libc.ioctl(0, 0x5412, b'x')",
}


def test_system_calls_that_no_command_needs_are_refused(inside: Run) -> None:
    lines = [
        "import ctypes, errno, platform",
        "libc = ctypes.CDLL(None, use_errno=True); x86 = platform.machine() == 'x86_64'",
        *(
            f"print({name!r}, {call}, errno.errorcode[ctypes.get_errno()])"
            for name, call in REFUSED_CALLS.items()
        ),
        "print('clone3', libc.syscall(435, 0, 0), errno.errorcode[ctypes.get_errno()])",
    ]
    finished = inside(python("\n".join(lines)))
    assert finished.stderr == ""
    expected = [f"{name} -1 EPERM" for name in REFUSED_CALLS]
    assert finished.stdout.splitlines() == [*expected, "clone3 -1 ENOSYS"]


def test_sockets_of_odd_families_are_refused(inside: Run) -> None:
    program = "import socket\nfor family in (17, 38, 40):\n  try: socket.socket(family, 2)\n  except OSError as e: print(e.errno)"
    assert inside(python(program)).stdout.split() == ["97"] * 3


AROUND = {
    "quotes": "s''udo -n true; r''m -r''f {0}; echo x | tee {0}/new",
    "variables": "a=rm; b=-rf; $a $b {0}; c=su; $c''do -n true",
    "base64": "echo {1} | base64 -d | sh",
    "sh -c": "sh -c 'r\\m -rf {0}'",
    "full paths": "/usr/bin/env /bin/r?? -rf {0}; /u*/bin/sud? -n true",
    "python": "python3 -c \"import shutil; shutil.rmtree('{0}')\"",
    "eval": 'eval "$(printf "\\162\\155 -rf {0}")"',
    "find": "find {0} -delete",
    "tee": "echo x | tee {0}/secret.txt {0}/new",
}


@pytest.mark.parametrize("way", AROUND)
def test_who_walks_around_the_blocklist_does_no_harm(inside: Run, other: Path, way: str) -> None:
    hidden = base64.b64encode(f"sudo -n true; rm -rf {other}".encode()).decode()
    command = AROUND[way].format(other, hidden)
    assert find_blocked_keyword(command) is None
    inside(command)
    assert [(path.name, path.read_text()) for path in other.iterdir()] == [("secret.txt", SECRET)]


def test_a_folder_swapped_for_a_symlink_meanwhile_shows_nothing(
    inside: Run, folder: Path, other: Path
) -> None:
    """One command creates a folder and a symlink at .git in turn, while others start."""
    stop = threading.Event()
    swapping = threading.Thread(
        target=inside,
        args=(f"while :; do mkdir .git; rmdir .git; ln -s {other} .git; rm .git; done 2> /dev/null",),
        kwargs={"stop": stop},
    )
    swapping.start()
    try:
        for _ in range(20):
            # If it is gone before it can be mounted, nothing starts, which is safe as well.
            with suppress(CommandNotStarted):
                assert SECRET not in inside("cat .git/secret.txt").stdout
    finally:
        stop.set()
        swapping.join()
