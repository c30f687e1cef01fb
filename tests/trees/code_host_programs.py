"""Scripted programs in place of ``gh`` and ``glab``. They keep how they were called."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any, NamedTuple

_PROGRAM = """#!{python}
import json, pathlib, sys
folder = pathlib.Path({folder!r})
number = len([*folder.glob("call-*")])
call = {{"name": {name!r}, "arguments": sys.argv[1:], "given": sys.stdin.read()}}
folder.joinpath(f"call-{{number}}").write_text(json.dumps(call))
answers = json.loads(folder.joinpath("answers").read_text())
verb = sys.argv[2]
answer = answers.get(f"{name} {{verb}}", [1, "", "no pull requests found"])
sys.stdout.write(answer[1])
sys.stderr.write(answer[2])
sys.exit(answer[0])
"""


class Call(NamedTuple):
    """A call of a program. ``given``: its standard input."""

    name: str
    arguments: list[str]
    given: str


class HostPrograms:
    """Programs in ``folder``, which a test puts on PATH."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        folder.mkdir()
        self._answers: dict[str, tuple[int, str, str]] = {}
        self._write()
        for name in names:
            program = folder / name
            text = _PROGRAM.format(python=sys.executable, folder=str(folder), name=name)
            program.write_text(text)
            program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def answer(self, call: str, output: str = "", *, status: int = 0, errors: str = "") -> None:
        """Have the program answer ``call``, such as ``gh create``."""
        self._answers[call] = (status, output, errors)
        self._write()

    def answer_json(self, call: str, value: Any) -> None:
        self.answer(call, json.dumps(value))

    def calls(self) -> list[Call]:
        """Return the calls so far, and forget them."""
        paths = sorted(self.folder.glob("call-*"), key=lambda each: int(each.name.partition("-")[2]))
        found = [Call(**json.loads(each.read_text())) for each in paths]
        for each in paths:
            each.unlink()
        return found

    def _write(self) -> None:
        self.folder.joinpath("answers").write_text(json.dumps(self._answers))
