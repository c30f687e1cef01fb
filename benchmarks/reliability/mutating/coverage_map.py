"""Which tests run which lines: one run of the tests under coverage, and what is asked of it."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from functools import cache, cached_property
from pathlib import Path

from coverage import CoverageData

from reliability.mutating.places import Mutant


class CoverageMap:
    """What the tests ran.

    Args:
        core: the folder of the core's packages, as it was then.
        data: what coverage kept, with the tests as contexts.
        seconds: the file of how long each test took that passed; no other test counts.
    """

    def __init__(self, core: Path, data: Path, seconds: Path) -> None:
        self.core = core
        self.seconds: dict[str, float] = json.loads(seconds.read_text())
        self._data = CoverageData(str(data))
        self._data.read()
        self._modules = {name.partition(f"{core.name}/")[2]: name for name in self._data.measured_files()}
        self._of_file = defaultdict(set)
        for test in self.seconds:
            self._of_file[test.split("::")[0]].add(test)

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests that run that place: first those whose file imports its module, then those of its
        package, and the quickest first.

        What runs when its module is imported is run by all tests that run the function it belongs to (a
        decorator, a default), else any function of the module, else of a module that imports it.
        """
        tree = ast.parse((self.core / mutant.module).read_text())
        line = mutant.position[0]
        if any(line in body for body in _bodies(tree)):
            found = self._tests(mutant.module, [range(line, line + 1)])
            found = found or self._tests(mutant.module, [_statement(tree, line)])
        else:
            declared = [body for head, body in _functions(tree) if line in head]
            found = self._tests(mutant.module, declared) or self._tests(mutant.module, _bodies(tree))
            for module in [] if found else self._importers[mutant.module]:
                found |= self._tests(module, _bodies(ast.parse((self.core / module).read_text())))
        near, beside = self._near(mutant.module), f"tests/{mutant.package}/"
        return sorted(
            found,
            key=lambda test: (
                test.split("::")[0] not in near,
                not test.startswith(beside),
                self.seconds[test],
            ),
        )

    def _near(self, module: str) -> set[str]:
        """The files of tests that import it."""
        name = "watchroom." + module.removesuffix(".py").replace("/", ".")
        return {file for file, text in self._files.items() if f"from {name} import" in text}

    @cached_property
    def _files(self) -> dict[str, str]:
        """All files of tests, those that were not measured, too."""
        root = self.core.parents[1]
        found = sorted((root / "tests").rglob("test_*.py"))
        return {path.relative_to(root).as_posix(): path.read_text() for path in found}

    def elsewhere(self, mutant: Mutant) -> list[str]:
        """Files of tests that were not measured, and import its module."""
        return sorted(self._near(mutant.module) - self._of_file.keys())

    def _tests(self, module: str, ranges: list[range]) -> set[str]:
        lines = self._lines(module)
        return {test for each in ranges for line in each for test in lines.get(line, ())}

    @cache  # noqa: B019  # as long as the command runs
    def _lines(self, module: str) -> dict[int, set[str]]:
        """For each line the tests that ran it. What prepared a test may have prepared all tests of
        its file: it counts for all of them."""
        lines: dict[int, set[str]] = defaultdict(set)
        if module in self._modules:
            for line, contexts in self._data.contexts_by_lineno(self._modules[module]).items():
                for test, _, when in (each.rpartition("|") for each in contexts if each):
                    lines[line] |= {test} if when == "run" else self._of_file[test.split("::")[0]]
                lines[line] &= self.seconds.keys()
        return lines

    @cached_property
    def _importers(self) -> dict[str, list[str]]:
        """For each module those of the measured ones that import it."""
        found = defaultdict(list)
        for importer in sorted(self._modules):
            for node in ast.walk(ast.parse((self.core / importer).read_text())):
                if isinstance(node, ast.ImportFrom) and node.module:
                    found[node.module.removeprefix("watchroom.").replace(".", "/") + ".py"].append(importer)
        return found


def _functions(tree: ast.Module) -> list[tuple[range, range]]:
    """Of each function the lines of its decorators and parameters, and those of its body."""
    return [
        (range(min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.body[0].lineno), body)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for body in [range(node.body[0].lineno, (node.end_lineno or 0) + 1)]
    ]


def _bodies(tree: ast.Module) -> list[range]:
    return [body for _, body in _functions(tree)]


def _statement(tree: ast.Module, line: int) -> range:
    """The lines of the innermost statement there; of one with a body, its head."""
    found = range(line, line + 1)
    for node in ast.walk(tree):  # from the outermost inward
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or 0
            found = range(node.lineno, max(end, line) + 1)
    return found
