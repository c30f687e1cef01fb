"""Limits on memory, processes, disk and descriptors of a command."""

from __future__ import annotations

import resource
import shlex
import threading
from pathlib import Path

import pytest
from sandbox.conftest import Run
from sandbox.processes import groups_left, marked_processes, token
from watchroom.platform.sandbox.backend import SandboxBackend
from watchroom.platform.sandbox.limits import ResourceLimits
from watchroom.platform.sandbox.probe import SandboxProbe
from watchroom.platform.sandbox.runner import run_command

MIB = 1024 * 1024
FORKING = """
import os, time
for n in range(1000):
    try:
        if not os.fork():
            time.sleep(60)
    except OSError as error:
        print(n, error.errno)
        break
"""


def python(program: str) -> str:
    return f"python3 -c {shlex.quote(program)}"


@pytest.fixture
def grouped(probe: SandboxProbe) -> None:
    if not probe.limits_processes_together:
        pytest.skip("no control groups can be made here: what needs them is not tested")


@pytest.mark.usefixtures("grouped")
def test_processes_are_counted(inside: Run) -> None:
    finished = inside(python(FORKING), limits=ResourceLimits(seconds=20, processes=40))
    count, error = map(int, finished.stdout.split())
    assert 30 <= count < 40
    assert error == 11


@pytest.mark.usefixtures("grouped")
def test_a_fork_bomb_ends_at_the_timeout(inside: Run) -> None:
    """It can still be ended, and the number of processes stays within the limit until then."""
    marked = token()
    bomb = f"b() {{ b | b & }}; b; sleep {marked}"
    finished = inside(bomb, limits=ResourceLimits(seconds=0.5, processes=40))
    assert finished.exit_code == 137 or finished.stderr
    assert marked_processes(marked) == []
    assert groups_left() == []


def test_too_many_processes_are_ended_without_control_groups(ungrouped: SandboxBackend, folder: Path) -> None:
    """They are started one after the other, and their number is finite: nothing else would limit root."""
    marked = token()
    finished = run_command(
        f"n=0; while [ $n -lt 90 ]; do sleep {marked} & n=$((n + 1)); done; wait",
        str(folder),
        backend=ungrouped,
        limits=ResourceLimits(seconds=20, processes=40),
    )
    assert not finished.timed_out
    assert finished.exit_code != 0
    assert marked_processes(marked) == []


GREEDY = {
    "at once": python("x = bytearray(4 << 30); print('got it')"),
    "bit by bit": python("x = []\nwhile len(x) < 4096: x.append(b'x' * (1 << 20))\nprint('got it')"),
}


@pytest.mark.parametrize("way", GREEDY)
def test_memory_is_bounded(inside: Run, way: str) -> None:
    finished = inside(GREEDY[way], limits=ResourceLimits(seconds=20, memory_bytes=256 * MIB))
    assert finished.exit_code != 0
    assert finished.stdout == ""
    assert not finished.timed_out


@pytest.mark.parametrize("way", GREEDY)
def test_memory_is_bounded_without_control_groups(ungrouped: SandboxBackend, folder: Path, way: str) -> None:
    limits = ResourceLimits(seconds=20, memory_bytes=256 * MIB)
    finished = run_command(GREEDY[way], str(folder), backend=ungrouped, limits=limits)
    assert (finished.exit_code, finished.stdout) == (1, "")
    assert "MemoryError" in finished.stderr


@pytest.mark.usefixtures("grouped")
def test_memory_of_all_processes_together_is_bounded(inside: Run) -> None:
    """Eight times 100 MiB, each of which is within the limit. A process that was ended prints nothing more."""
    program = (
        "import os\nchildren = []; waiting, going = os.pipe()\n"
        "for _ in range(8):\n"
        "  r, w = os.pipe()\n"
        "  if not os.fork():\n"
        "    os.close(going); x = b'x' * (100 << 20); os.write(w, b'1'); os.read(waiting, 1); os.write(w, b'2'); os._exit(0)\n"
        "  os.close(w); children.append(r)\n"
        "for r in children: os.read(r, 1)\n"
        "os.close(going); print(sum(len(os.read(r, 1)) for r in children))"
    )
    finished = inside(python(program), limits=ResourceLimits(seconds=20, memory_bytes=512 * MIB))
    assert finished.stdout != "8\n"


def test_temporary_files_are_bounded(inside: Run, hides: bool) -> None:
    if not hides:
        pytest.skip("a folder on disk, as this backend has it, cannot be bounded")
    limits = ResourceLimits(seconds=20, tmp_bytes=8 * MIB)
    for place in ("/tmp", "/dev/shm"):
        finished = inside(f"head -c 20M /dev/zero > {place}/x; stat -c %s {place}/x", limits=limits)
        assert int(finished.stdout) <= 8 * MIB, place
        assert "No space left" in finished.stderr


def test_a_file_is_bounded(inside: Run, folder: Path) -> None:
    inside("head -c 20M /dev/zero > big", limits=ResourceLimits(seconds=20, file_bytes=MIB))
    assert (folder / "big").stat().st_size <= MIB


def test_output_without_end_costs_no_memory(inside: Run) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told: list[int] = []
    finished = inside(
        "head -c 300M /dev/zero | tr '\\0' a; echo done >&2",
        limits=ResourceLimits(seconds=120),
        on_output=lambda _, text: told.append(len(text)),
    )
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert finished.stdout == "a" * MIB
    assert (finished.stderr, finished.exit_code, finished.truncated) == ("done\n", 0, True)
    assert sum(told) == MIB + len("done\n")
    assert (after - before) * 1024 < 64 * MIB


def test_a_character_at_the_cap_is_kept_whole_or_not_at_all(inside: Run) -> None:
    finished = inside("printf 'aaä%s' b", limits=ResourceLimits(seconds=20, output_bytes=3))
    assert (finished.stdout, finished.truncated) == ("aa", True)


def test_output_that_just_fits_is_not_cut(inside: Run) -> None:
    finished = inside("printf abc", limits=ResourceLimits(seconds=20, output_bytes=3))
    assert (finished.stdout, finished.truncated) == ("abc", False)


def test_many_open_files_are_bounded(inside: Run) -> None:
    program = "import os\nx = []\ntry:\n  while len(x) < 5000: x.append(os.open('/dev/null', 0))\nexcept OSError as e: print(e.errno)"
    assert inside(python(program)).stdout == "24\n"


@pytest.mark.usefixtures("grouped")
def test_a_bomb_does_not_stop_another_command(inside: Run) -> None:
    stop = threading.Event()
    bomb = threading.Thread(
        target=inside,
        args=("b() { b | b & }; b; sleep 20",),
        kwargs={"stop": stop, "limits": ResourceLimits(20, processes=60)},
    )
    bomb.start()
    try:
        assert inside("echo well").stdout == "well\n"
    finally:
        stop.set()
        bomb.join()
