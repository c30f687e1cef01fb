"""A child process for one job ends: by itself, after its timeout, when it is stopped, and with its parent."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Timer

import pytest
from child_processes import ends
from timeouts import run_until_begun
from watchroom.platform.child_process import AnsweringChild, module_command, run_child, run_module

PATIENCE = 30


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


def test_a_child_gets_its_input_and_returns_what_it_prints() -> None:
    large = b"x" * 3_000_000
    done = run_child(["cat"], given=large, timeout=PATIENCE)
    assert (done.status, done.output, done.errors) == (0, large, b"")


def test_a_child_that_reads_no_input_says_why_it_failed() -> None:
    done = run_child(
        ["/bin/sh", "-c", "echo one >&2; echo two >&2; exit 3"], given=b"x" * 3_000_000, timeout=PATIENCE
    )
    assert (done.status, done.last_error) == (3, "two")


def test_the_errors_of_a_child_are_bounded() -> None:
    done = run_child(python("import sys; sys.stderr.write('x' * 1_000_000 + 'the end')"), timeout=PATIENCE)
    assert len(done.errors) == 64 * 1024
    assert len(done.last_error) == 500
    assert done.last_error.endswith("the end")


def test_a_signal_is_a_negative_status() -> None:
    assert run_child(["/bin/sh", "-c", "kill -9 $$"], timeout=PATIENCE).status == -signal.SIGKILL


def test_a_child_that_prints_too_much_is_killed() -> None:
    with pytest.raises(OSError, match="more than 1,000 bytes") as caught:
        run_child(["cat", "/dev/zero"], timeout=PATIENCE, max_output=1000)
    assert caught.value.errno == errno.EFBIG


def test_after_its_timeout_a_child_is_killed_with_what_it_started(tmp_path: Path) -> None:
    noted = tmp_path / "pid"

    def run(seconds: float) -> str:
        noted.write_text("")
        with pytest.raises(TimeoutError):
            run_child(["/bin/sh", "-c", f"sleep 1000 & echo $! > {noted}; wait"], timeout=seconds)
        return noted.read_text()

    assert ends(int(run_until_begun(run, bool)), PATIENCE)


def test_a_child_that_closes_its_streams_and_goes_on_has_a_timeout_too() -> None:
    with pytest.raises(TimeoutError):
        run_child(["/bin/sh", "-c", "exec sleep 1000 <&- >&- 2>&-"], timeout=0.5)


def test_a_missing_program_is_named() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        run_child(["no-such-program"])
    assert caught.value.filename == "no-such-program"


ANSWERER = """
import sys, time
for line in sys.stdin:
    count, seconds = line.split()
    for number in range(int(count)):
        time.sleep(float(seconds))
        print(number, flush=True)
"""


def test_a_child_that_goes_on_printing_is_not_stuck() -> None:
    child = AnsweringChild(python(ANSWERER), folder=None)
    try:
        assert child.ask(b"1 0\n", b"0\n", PATIENCE, 100) == b""
        assert child.ask(b"12 0.1\n", b"11\n", 1.0, 100) == b"".join(b"%d\n" % each for each in range(11))
        answers = child.ask_each(b"3 0\n3 1000\n", b"\n", 4, 0.5, 100)
        assert [next(answers) for _ in range(3)] == [b"0", b"1", b"2"]
        with pytest.raises(TimeoutError):
            next(answers)
    finally:
        child.close()


def test_a_child_that_goes_on_printing_has_a_deadline() -> None:
    child = AnsweringChild(python(ANSWERER), folder=None)
    try:
        answers = child.ask_each(b"1000 0.01\n", b"\n", 1000, PATIENCE, 100, time.monotonic() + 1.0)
        with pytest.raises(TimeoutError):
            list(answers)
    finally:
        child.close()


WORKER = """
import sys, threading
from watchroom.platform.child_process import watch_parent
stopping = threading.Event()
job = watch_parent(stopping.set)
print(job.decode(), flush=True)
if job == b"work":
    stopping.wait()
    print("stopped")
"""


def test_a_worker_gets_its_job_and_is_asked_to_stop() -> None:
    stopping = Event()
    Timer(0.3, stopping.set).start()
    done = run_child(
        python(WORKER), given=b"work\n", timeout=PATIENCE, stopping=stopping, keeps_input_open=True
    )
    assert (done.status, done.output.split()) == (0, [b"work", b"stopped"])


def test_a_worker_that_is_done_ends_while_its_input_is_open() -> None:
    done = run_child(python(WORKER), given=b"rest\n", timeout=PATIENCE, keeps_input_open=True)
    assert (done.status, done.output.split()) == (0, [b"rest"])


def test_a_worker_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    worker = WORKER + f"\nopen({str(tmp_path / 'ended')!r}, 'w').close()"
    worker = worker.replace(
        "print(job", f"open({str(noted)!r}, 'w').write(str(__import__('os').getpid())); print(job"
    )
    parent = (
        "import sys; from watchroom.platform.child_process import run_child;"
        f"run_child([sys.executable, '-c', {worker!r}], given=b'work\\n', keeps_input_open=True)"
    )
    with subprocess.Popen([sys.executable, "-c", parent]) as process:
        deadline = time.monotonic() + PATIENCE
        while not noted.exists() or not noted.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.kill()
    assert ends(int(noted.read_text()), PATIENCE)


def test_a_module_in_the_working_directory_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "__init__.py").write_text("raise SystemExit('planted')")
    (tmp_path / "platform.py").write_text("raise SystemExit('planted')")
    monkeypatch.chdir(tmp_path)
    assert module_command("platform")[1] == "-P"
    done = run_module("platform", timeout=PATIENCE)
    assert (done.status, done.errors) == (0, b"")


def test_no_process_of_ours_imports_from_its_working_directory() -> None:
    root = Path(__file__).parents[2]
    modules = [path for folder in ("core", "tui", "whiteboards") for path in (root / folder).rglob("*.py")]
    assert modules
    found = [str(path.relative_to(root)) for path in modules if 'sys.executable, "-m"' in path.read_text()]
    assert found == []
