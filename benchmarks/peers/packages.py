"""What an installation takes: time, disk space, and the start of the smallest command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from measure import scratch

from peers.comparison import Comparison, Contender, Group, Row, RunContext
from peers.peer import PythonProgram

_POSTING: Final = PythonProgram("posting", "posting", ("posting",))
_HARLEQUIN: Final = PythonProgram("harlequin", "harlequin", ("harlequin",))
# The release on PyPI is a fork of mcp_agent_mail, which has none.
_MAIL: Final = PythonProgram("mcp-agent-mail", "mcp-agent-mail", ("mcp-agent-mail",))
_ROUNDS: Final = 3
_STARTS: Final = 9


class _Package(NamedTuple):
    """A package, and the smallest command that it installs."""

    name: str
    requirement: str
    command: tuple[str, ...]


class _Installation:
    """Installs a package repeatedly, each time in a new environment, and records the size."""

    def __init__(self, folder: str, package: _Package) -> None:
        self._environment = os.path.join(folder, package.name)
        self._requirement = package.requirement
        program, *arguments = package.command
        self._command = [os.path.join(self._environment, "bin", program), *arguments]
        self.sizes: list[list[float]] = []

    def __call__(self, n: int) -> float:
        shutil.rmtree(self._environment, ignore_errors=True)
        began = time.perf_counter()
        _run([sys.executable, "-m", "venv", self._environment])
        _run([os.path.join(self._environment, "bin", "pip"), "install", "--quiet", self._requirement])
        seconds = time.perf_counter() - began
        self.sizes.append([float(_size(self._environment))])
        return seconds

    def start(self, n: int) -> float:
        """Run the smallest command. Return its seconds."""
        began = time.perf_counter()
        _run(self._command)
        return time.perf_counter() - began


def _measure(context: RunContext) -> list[Row]:
    with scratch() as folder:
        ours = _Installation(folder, _Package("watchroom", _build_wheel(folder), ("watchroom", "--version")))
        theirs = {
            peer: _Installation(folder, _Package(peer.name, peer.requirements[0], command))
            for peer, command in (
                (_POSTING, ("posting", "--help")),
                (_HARLEQUIN, ("harlequin", "--version")),
                (_MAIL, ("python", "-m", "mcp_agent_mail", "--help")),
            )
            if context.has(peer)
        }

        def contenders(sample: Callable[[_Installation], Callable[[int], float]]) -> list[Contender]:
            return [
                Contender(peer, sample(each), remark=_REMARKS.get(peer, ""), behind=_BEHIND)
                for peer, each in theirs.items()
            ]

        installed = context.compare(
            "installing it", ours, contenders(lambda each: each), rounds=_ROUNDS, warm=1
        )
        measured = {row.peer for row in installed if isinstance(row, Comparison)}
        sizes = [
            context.row(
                "size of its environment",
                Contender(peer, each, behind=_BEHIND),
                ours.sizes[1:],
                each.sizes[1:],
                "bytes",
            )
            for peer, each in theirs.items()
            if peer.name in measured
        ]
        started = [each for each in contenders(lambda each: each.start) if each.name in measured]
        return [
            *installed,
            *sizes,
            *context.compare("starting its smallest command", ours.start, started, rounds=_STARTS, warm=2),
        ]


def _build_wheel(folder: str) -> str:
    """Build Watchroom's wheel. Return its path."""
    source = Path(__file__).parents[2]
    _run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, str(source)])
    (wheel,) = Path(folder).glob("watchroom-*.whl")
    return str(wheel)


def _run(command: list[str]) -> None:
    subprocess.run(
        command, check=True, capture_output=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    )


def _size(folder: str) -> int:
    """Return the bytes of all files in ``folder``."""
    return sum(
        os.lstat(os.path.join(place, name)).st_size for place, _, names in os.walk(folder) for name in names
    )


_BEHIND: Final = "61 packages, among them git, cryptography and realtime documents in native code"
_REMARKS: Final = {_MAIL: "the release on PyPI, a fork of mcp_agent_mail"}

GROUP: Final = Group(
    "packages",
    "Installation",
    "A new environment, and the package in it, from pip's cache (`python -m venv`, `pip install`: what pipx "
    "does). The size of the environment with pip itself, and the smallest command (`--version` or `--help`).",
    (_POSTING, _HARLEQUIN, _MAIL),
    _measure,
)
