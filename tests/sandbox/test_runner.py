"""A command's result: its output, its end, and that nothing of it remains (TASKS-P6, TASKS-P7)."""

from __future__ import annotations

import os
import shlex
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandbox.conftest import Run, detect_again
from sandbox.processes import Held, groups_left, marked_processes, token
from watchroom.errors import CommandNotStarted, FolderNotFound, FolderTooWide, InvalidCommand
from watchroom.platform.sandbox.backend import SandboxBackend
from watchroom.platform.sandbox.limits import ResourceLimits
from watchroom.platform.sandbox.runner import run_command

PRINTABLE = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=50)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder for all examples of a property."""
    return str(tmp_path_factory.mktemp("task"))


@pytest.fixture
def examples(backend: SandboxBackend) -> settings:
    """Use more examples for the best backend, because the others start much more slowly."""
    return settings(max_examples=60 if backend.name == "bubblewrap" else 25)


def test_a_result_is_whole(backend: SandboxBackend, shared: str, examples: settings) -> None:
    @examples
    @given(stdout=PRINTABLE, stderr=PRINTABLE, exit_code=st.integers(0, 125))
    def holds(stdout: str, stderr: str, exit_code: int) -> None:
        command = f"printf %s {shlex.quote(stdout)}; printf %s {shlex.quote(stderr)} >&2; exit {exit_code}"
        finished = run_command(command, shared, backend=backend)
        assert (finished.stdout, finished.stderr, finished.exit_code) == (stdout, stderr, exit_code)
        assert not finished.timed_out
        assert not finished.truncated

    holds()


def test_what_takes_longer_than_it_may_is_ended(
    backend: SandboxBackend, shared: str, examples: settings
) -> None:
    """The timeout can pass at any moment of its start or its run."""

    @examples
    @given(seconds=st.floats(0, 0.04))
    def holds(seconds: float) -> None:
        finished = run_command(
            "echo begun; sleep 60; echo done", shared, backend=backend, limits=ResourceLimits(seconds=seconds)
        )
        assert finished.timed_out
        assert finished.stdout in ("", "begun\n")
        assert finished.exit_code == 137

    holds()


def test_it_runs_in_its_folder_and_writes_there(inside: Run, folder: Path) -> None:
    finished = inside("pwd; mkdir -p a/b; echo hello > a/b/c.txt; rm -f none")
    assert finished.stdout == f"{folder}\n"
    assert (folder / "a/b/c.txt").read_text() == "hello\n"


def test_the_python_that_runs_us_is_there(inside: Run) -> None:
    assert inside("python3 -c 'import json; print(json.dumps([1]))'").stdout == "[1]\n"


def test_so_is_one_that_is_installed_elsewhere(
    backend: SandboxBackend, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "python/bin/python3"
    installed.parent.mkdir(parents=True)
    installed.write_text("installed")
    # The file is opened, because `test -r` does not ask Landlock.
    read = f"cat {shlex.quote(str(installed))}"
    assert run_command(read, str(folder), backend=backend).stdout == ""
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "python"))
    assert run_command(read, str(folder), backend=detect_again(backend)).stdout == "installed"


@pytest.mark.parametrize(
    ("command", "code"), [("kill -TERM $$", 143), ("kill -9 $$", 137), ("no-such-command", 127)]
)
def test_exit_codes_are_a_shells(inside: Run, command: str, code: int) -> None:
    assert inside(command).exit_code == code


def test_nothing_is_typed_into_it(inside: Run) -> None:
    assert inside("cat; tty").stdout == "not a tty\n"


def test_bytes_that_are_no_text_are_shown_as_broken(inside: Run) -> None:
    assert inside(r"printf 'a\377b\303'").stdout == "a�b�"


def test_output_is_told_as_it_comes(inside: Run, folder: Path) -> None:
    """The command continues only after its first line was received."""
    os.mkfifo(folder / "heard")
    told: list[tuple[str, str]] = []

    def hear(stream: str, text: str) -> None:
        told.append((stream, text))
        if "one" in text:
            (folder / "heard").write_text("on\n")

    finished = inside("echo one; read go < heard; echo two >&2", on_output=hear)
    assert told == [("stdout", "one\n"), ("stderr", "two\n")]
    assert (finished.stdout, finished.stderr) == ("one\n", "two\n")


def test_a_character_that_comes_in_two_pieces_is_one(inside: Run) -> None:
    told: list[str] = []
    finished = inside(
        r"printf '\344\275'; sleep 0.05; printf '\240'", on_output=lambda _, text: told.append(text)
    )
    assert "".join(told) == finished.stdout == "你"


def test_it_stops_when_it_is_told_to(inside: Run) -> None:
    stop = threading.Event()
    marked = token()
    finished = inside(f"echo on; sleep {marked}", stop=stop, on_output=lambda *_: stop.set())
    assert (finished.exit_code, finished.timed_out) == (137, False)
    assert marked_processes(marked) == []


def test_a_listener_that_fails_leaves_nothing_running(inside: Run) -> None:
    marked = token()

    def fail(*_: str) -> None:
        raise RuntimeError("heard enough")

    with pytest.raises(RuntimeError, match="heard enough"):
        inside(f"echo on; sleep {marked}", on_output=fail)
    assert marked_processes(marked) == []


def test_what_stays_in_the_background_ends_with_the_command(inside: Run) -> None:
    marked = token()
    finished = inside(f"(setsid sleep {marked} &) ; sleep {marked} & echo done")
    assert (finished.stdout, finished.exit_code, finished.timed_out) == ("done\n", 0, False)
    assert marked_processes(marked) == []


def test_several_run_at_once_and_leave_nothing_behind(
    backend: SandboxBackend, tmp_path: Path, hides: bool
) -> None:
    folders = [tmp_path / str(n) for n in range(8)]
    for each in folders:
        each.mkdir()
    before = Held.now()
    with ThreadPoolExecutor(4) as threads:
        finished = list(
            threads.map(
                lambda each: run_command(
                    f"echo {each.name} > name; cat name; ls ..", str(each), backend=backend
                ),
                folders,
            )
        )
    assert [each.stdout for each in finished] == [f"{n}\n" * (2 if hides else 1) for n in range(8)]
    assert not Held.now().since(before)
    assert groups_left() == []


def test_it_has_no_open_files_but_its_own(inside: Run) -> None:
    program = (
        "import os\nfor fd in range(256):\n  try: os.fstat(fd)\n  except OSError: pass\n  else: print(fd)"
    )
    assert inside(f"python3 -c {shlex.quote(program)}").stdout.split() == ["0", "1", "2"]


@pytest.mark.parametrize("command", ["echo \0", "echo \ud800"])
def test_a_command_that_cannot_be_given_is_refused(inside: Run, command: str) -> None:
    with pytest.raises(InvalidCommand):
        inside(command)


def test_a_command_that_is_too_long_is_refused(inside: Run) -> None:
    with pytest.raises(CommandNotStarted):
        inside("true " + "x" * 300_000)


def test_a_folder_that_is_none_is_refused(backend: SandboxBackend, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for each in ("none", "file"):
        with pytest.raises(FolderNotFound):
            run_command("true", str(tmp_path / each), backend=backend)


@pytest.mark.parametrize("folder", ["/", "/usr", "/etc", "/proc", "/proc/self", "~", "~/.."])
def test_a_folder_that_holds_too_much_is_refused(backend: SandboxBackend, folder: str) -> None:
    with pytest.raises(FolderTooWide):
        run_command("true", os.path.expanduser(folder), backend=backend)
