"""docs/requirements.md: what the code cites stands there, and the tests that it names exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/requirements.md").read_text("utf-8")
BENCHMARKS = set(re.findall(r'^    "(\w+)": ', (ROOT / "benchmarks/run.py").read_text("utf-8"), re.MULTILINE))
SYSTEMS = ("FILES", "TASKS", "BOARDS", "EDIT", "RUN", "REPO")
_ID = re.compile(rf"\b(?:{'|'.join(SYSTEMS)})-[A-Za-z0-9]+(?:\.[0-9]+)*")
_RANGE = re.compile(r"([A-Z]+-[A-Z])(\d+) … \1(\d+)")


def _promised() -> set[str]:
    found = set()
    for line in PAGE.splitlines():
        if not line.startswith("| ") or "-" not in (cell := line.split("|")[1]):
            continue
        if span := _RANGE.search(cell):
            found |= {f"{span[1]}{number}" for number in range(int(span[2]), int(span[3]) + 1)}
        found |= set(_ID.findall(cell))
    return found


def _cited() -> Iterator[tuple[str, str]]:
    for folder in ("core", "whiteboards", "tui", "tests", "benchmarks"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for cited in _ID.findall(file.read_text("utf-8")):
                yield str(file.relative_to(ROOT)), cited


def test_whatever_the_code_cites_is_a_requirement() -> None:
    promised = _promised()
    unknown = [
        (file, cited)
        for file, cited in _cited()
        if cited not in promised and not any(each.startswith(f"{cited}.") for each in promised)
    ]
    assert unknown == []
    assert len({cited for _, cited in _cited()}) > 20, "citations were found at all"


def test_each_requirement_names_tests_that_exist() -> None:
    for line in PAGE.splitlines():
        if not (line.startswith("| ") and _ID.search(line.split("|")[1])):
            continue
        shown = re.findall(r"`([^`]+)`", line.split("|")[3])
        assert shown, line
        for each in shown:
            if each.startswith("python -m benchmarks "):
                assert each.removeprefix("python -m benchmarks ") in BENCHMARKS, each
                continue
            file, _, name = each.partition("::")
            tree = ast.parse((ROOT / "tests" / f"{file}.py").read_text("utf-8"))
            names = {
                node.name
                for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            }
            assert not name or name in names, each


@pytest.mark.parametrize("folder", ["core", "whiteboards", "tui", "tests", "benchmarks", "screenshots"])
def test_nothing_is_cited_that_is_not_in_the_repository(folder: str) -> None:
    outside = re.compile(r"\bspec \d|\bDESIGN\b|\bFR-\d|§\d")
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in sorted((ROOT / folder).rglob("*.py"))
        if file != Path(__file__)
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if outside.search(line)
    ]
    assert found == []
