"""Runs tests in a tree of files, again and again, each time in a process that is forked for it.

`main` in that tree reads orders, one a line as JSON, and answers each with an outcome. What the tests need
besides Watchroom is imported once, before the first fork, which saves each trial most of its start.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Final, Literal, Self

import pytest

from reliability.mutating.plugins import Trial

Result = Literal["passed", "failed", "import", "time"]
_PRELOADED: Final = ("hypothesis", "httpx", "loro", "markdown_it", "pydantic", "rapidfuzz", "tomlkit")
_SERVER: Final = f"import sys; sys.path.append(sys.argv[1]); from {__name__} import main; main()"
"""What is here comes last: tests have packages of the names of benchmarks."""
_MEMORY: Final = 6 << 30
_STARTING: Final = 20.0
"""Seconds for what comes before the first test."""
_TOO_LONG: Final = "Timeout ("
"""What faulthandler writes where it ends a test that hangs."""


@dataclass(frozen=True, slots=True)
class Order:
    """Tests to run until the first failure.

    ``cpu`` and ``wall``: seconds that all of it may take, ``hang`` that one test may; ``first``: whether the
    first failure ends it.
    """

    tests: list[str]
    cpu: int
    wall: int
    hang: int
    first: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended: all passed; ``failed`` names those that failed; nothing could be imported; too long."""

    result: Result
    failed: list[str]


class TestRunner:
    """Runs tests in the tree at ``tree``, which is its own: whoever holds it may write there in between."""

    __test__ = False  # no test itself

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self._moments = count(int(time.time()))
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(Path(__file__).parents[2])],
            cwd=tree,
            env=environment(tree) | {"PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()

    @contextmanager
    def replaced(self, module: Path, text: str) -> Iterator[None]:
        """For a while, a module of the tree with another text, which no compiled one is taken for."""
        source, status = module.read_text(), module.stat()
        try:
            module.write_text(text)
            os.utime(module, (moment := next(self._moments), moment))
            yield
        finally:
            module.write_text(source)
            os.utime(module, ns=(status.st_atime_ns, status.st_mtime_ns))

    def run(self, order: Order) -> Outcome:
        if self._server.stdin is None or self._server.stdout is None:
            raise RuntimeError("the program has no pipes")
        self._server.stdin.write(json.dumps(asdict(order)) + "\n")
        self._server.stdin.flush()
        return Outcome(**json.loads(self._server.stdout.readline()))


def environment(tree: Path) -> dict[str, str]:
    """That of this process, with the packages of ``tree`` before those that are installed."""
    packages = [str(tree / each) for each in ("core", "whiteboards", "tui")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(packages)}


def _try(order: Order) -> Outcome:
    """Run the tests in a process of their own, and end all that they leave behind."""
    folder = Path.cwd() / ".trial"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    child = os.fork()
    if child == 0:
        try:
            _run(order, folder)
        finally:
            os._exit(70)
    status = _wait(child, time.monotonic() + order.wall)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
    return _outcome(status, folder)


def _wait(child: int, until: float) -> int | None:
    """The status with which it ended; None: it did not, by then."""
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.02)
    return None


def _run(order: Order, folder: Path) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (order.cpu, order.cpu + 2))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(output, stream)
    (folder / "tests").write_text("\n".join(order.tests))
    trial = Trial(order.tests)
    options = ["-p", "no:cacheprovider", "-o", f"faulthandler_timeout={order.hang}", "--tb=short"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning", f"--basetemp={folder / 'files'}"]
    status = pytest.main(
        [*options, *(["-x"] if order.first else []), f"@{folder / 'tests'}"], plugins=[trial]
    )
    (folder / "failed").write_text(json.dumps(trial.failed))
    os._exit(status)


def _was_stopped(status: int) -> bool:
    """By the kernel, for its time."""
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)


def _outcome(status: int | None, folder: Path) -> Outcome:
    if status is None or _was_stopped(status):
        return Outcome("time", [])
    code = os.waitstatus_to_exitcode(status)
    if code == pytest.ExitCode.OK:
        return Outcome("passed", [])
    if (folder / "failed").exists() and (failed := json.loads((folder / "failed").read_text())):
        return Outcome("failed", failed)
    hung = _TOO_LONG in (folder / "output").read_text(errors="replace")
    return Outcome("time" if hung else "import", [])


def main() -> None:
    for name in _PRELOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(asdict(_try(Order(**json.loads(line))))), flush=True)
