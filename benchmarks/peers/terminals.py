"""First paint and memory of terminal programs, each in a real terminal, with little data."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from big_workspace import build
from dashboard import open_command, save_as
from measure import scratch
from timed_terminal import Terminal

from peers.comparison import Comparison, Contender, Group, Row, RunContext
from peers.peer import PythonProgram

# A PyPI package with the maker's own build. Debian has it from version 13 on.
_LAZYGIT: Final = PythonProgram("lazygit", "lazygit-py", ("lazygit-py",))
# It crashes with tree-sitter 0.26.
_POSTING: Final = PythonProgram("posting", "posting", ("posting", "tree-sitter<0.26"))
_HARLEQUIN: Final = PythonProgram("harlequin", "harlequin", ("harlequin",))
_TOAD: Final = PythonProgram("toad", "batrachian-toad", ("batrachian-toad",), python=14)
_ROUNDS: Final = 7
_PATIENCE: Final = 60.0
_LAST: Final = "the-last-row"
_QUIET: Final = 0.5


class _Program(NamedTuple):
    """A command, and the text on its screen once it is ready."""

    command: list[str]
    folder: str
    shown: str


class _Starts:
    """Starts a program repeatedly, and records its time to the text and its memory."""

    def __init__(self, program: _Program, surroundings: Mapping[str, str]) -> None:
        self._program = program
        self._surroundings = surroundings
        self.memory: list[list[float]] = []

    def __call__(self, n: int) -> float:
        command, folder, shown = self._program
        with Terminal(command, env=self._surroundings, cwd=folder) as terminal:
            painted = terminal.wait_for_bytes(shown.encode(), timeout=_PATIENCE) - terminal.started
            terminal.settle(_QUIET, timeout=3)
            self.memory.append([terminal.usage().rss])
            return painted


def _measure(context: RunContext) -> list[Row]:
    with scratch() as folder:
        surroundings = {
            "HOME": folder,
            # Installed programs have bytecode, so the comparison would be unfair without it.
            "PYTHONPYCACHEPREFIX": os.path.join(folder, "bytecode"),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        for name in ("CONFIG", "DATA", "STATE", "CACHE"):
            surroundings[f"XDG_{name}_HOME"] = os.path.join(folder, name.lower())
        ours = _Starts(_watchroom(folder), surroundings)
        programs = {
            _LAZYGIT: _lazygit(context, folder),
            _POSTING: _posting(context, folder),
            _HARLEQUIN: _harlequin(context, folder),
            _TOAD: _toad(context, folder),
        }
        starts = {
            peer: _Starts(program, surroundings) for peer, program in programs.items() if context.has(peer)
        }
        contenders = [Contender(peer, each, behind=_BEHIND.get(peer, "")) for peer, each in starts.items()]
        painted = context.compare("first paint", ours, contenders, rounds=_ROUNDS, warm=1)
        measured = {row.peer for row in painted if isinstance(row, Comparison)}
        memory = [
            context.row("memory", each, ours.memory[1:], starts[each.peer].memory[1:], "bytes")
            for each in contenders
            if isinstance(each.peer, PythonProgram) and each.name in measured
        ]
        return [*painted, *memory]


def _watchroom(folder: str) -> _Program:
    root = os.path.join(folder, "workspace")
    build(root, 1_000)
    save_as(root, _LAST)
    return _Program(open_command(root), folder, _LAST)


def _lazygit(context: RunContext, folder: str) -> _Program:
    root = os.path.join(folder, "repository")
    for arguments in (
        ("init", "--quiet", "--initial-branch", "shown", root),
        ("-C", root, "config", "user.name", "bench"),
        ("-C", root, "config", "user.email", "bench@example.org"),
        *(("-C", root, "commit", "--quiet", "--allow-empty", "--message", f"work {n}") for n in range(50)),
    ):
        subprocess.run(["git", *arguments], check=True, capture_output=True)
    return _Program([_LAZYGIT.program(context.folder, "lazygit")], root, "shown")


def _posting(context: RunContext, folder: str) -> _Program:
    collection = Path(folder, "collection")
    collection.mkdir()
    request = "name: a-request\nmethod: GET\nurl: http://127.0.0.1:1/\n"
    (collection / "a-request.posting.yaml").write_text(request, "utf-8")
    command = [_POSTING.program(context.folder, "posting"), "default", "--collection", str(collection)]
    return _Program(command, folder, "a-request")


def _harlequin(context: RunContext, folder: str) -> _Program:
    path = os.path.join(folder, "data.sqlite")
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE rows_of_work (name, value)")
        database.executemany("INSERT INTO rows_of_work VALUES (?, ?)", [(n, "x") for n in range(1_000)])
        database.commit()
    program = _HARLEQUIN.program(context.folder, "harlequin")
    # The name of the only database in its catalogue.
    return _Program([program, "--locale", "C", "--adapter", "sqlite", path], folder, "main")


def _toad(context: RunContext, folder: str) -> _Program:
    return _Program([_TOAD.program(context.folder, "toad")], folder, "Choose your fighter")


_BEHIND: Final = {
    _LAZYGIT: "it is a native program (Go), here an interpreter and Textual are loaded first, and stay"
}

GROUP: Final = Group(
    "terminals",
    "Programs for the terminal",
    "In a terminal of 120×40 with something small to show (Watchroom: a workspace of 1,000 rows), from the "
    "start to the text that one came for, and the resident memory of all its processes once it is quiet.",
    (_LAZYGIT, _POSTING, _HARLEQUIN, _TOAD),
    _measure,
)
