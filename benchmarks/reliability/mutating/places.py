"""Where the code can be broken, and how: the operators of cosmic-ray, at places drawn by a seed."""

from __future__ import annotations

import ast
import difflib
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import sqrt
from pathlib import Path
from typing import Final

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

PACKAGES: Final = ("rules", "zones", "journal", "merge", "crdt")
NEEDS_SERVER: Final = "journal/postgres/"
"""Runs with a server alone, and its tests are others."""
_SKIPPED: Final = ("Eq_Is", "Eq_IsNot", "NoOp", "VariableInserter", "VariableReplacer")
"""Operators that ask whether equal values are one object, which is up to Python, and that take arguments."""
_UNBROKEN: Final = frozenset(
    {
        "arglist",
        "atom_expr",
        "endmarker",
        "expr_stmt",
        "name",
        "newline",
        "simple_stmt",
        "string",
        "suite",
        "trailer",
    }
)
"""Nodes that no operator changes, which are most."""

Position = tuple[int, int]
"""Line, from 1, and column, from 0."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One place of a module, and what is done to it.

    ``occurrence``: the operator's n-th place in the module, from 0.
    """

    module: str
    position: Position
    operator: str
    occurrence: int

    @property
    def package(self) -> str:
        return self.module.split("/")[0]

    def apply(self, source: str) -> str:
        """The module's text, broken."""
        broken: str | None = mutate_code(source, get_operator(self.operator)(), self.occurrence)
        if broken is None:
            raise ValueError(f"{self.operator} has no place {self.occurrence} in {self.module}")
        return broken

    def diff(self, source: str) -> str:
        """The lines that change, with their signs."""
        lines = difflib.unified_diff(source.splitlines(), self.apply(source).splitlines(), n=0, lineterm="")
        return "\n".join([*lines][3:])


def draw(core: Path, packages: tuple[str, ...], places: int, seed: int) -> list[Mutant]:
    """Mutants at places drawn at random, one operator each.

    Args:
        core: the folder of the core's packages.
        packages: of `PACKAGES`. Each gets places by the square root of how many it has, so that small ones
            are seen, too.
        places: how many in all.
        seed: decides which.
    """
    chance = random.Random(seed)
    of_package = {each: _places(core, each) for each in packages}
    weights = {each: sqrt(len(found)) for each, found in of_package.items()}
    drawn: list[Mutant] = []
    for package, count in _shares(weights, places).items():
        found = of_package[package]
        mutants = (
            Mutant(*place, *chance.choice(found[place])) for place in chance.sample(sorted(found), len(found))
        )
        drawn += islice((each for each in mutants if _applies(each, core)), count)
    return drawn


def _applies(mutant: Mutant, core: Path) -> bool:
    """cosmic-ray takes the star among parameters for an operator, and cannot replace ``module.Error``."""
    try:
        ast.parse(mutant.apply((core / mutant.module).read_text()))
    except (AttributeError, SyntaxError):
        return False
    return True


def _shares(weights: Mapping[str, float], places: int) -> dict[str, int]:
    """Whole numbers in proportion to the weights, whose sum is ``places``."""
    exact = {each: places * weight / sum(weights.values()) for each, weight in weights.items()}
    shares = {each: int(share) for each, share in exact.items()}
    by_remainder = sorted(exact, key=lambda each: shares[each] - exact[each])
    for each in by_remainder[: places - sum(shares.values())]:
        shares[each] += 1
    return shares


def _places(core: Path, package: str) -> dict[tuple[str, Position], list[tuple[str, int]]]:
    """For each place of a package the operators that can break it, each with its occurrence."""
    found = defaultdict(list)
    for path in sorted((core / package).rglob("*.py")):
        module = path.relative_to(core).as_posix()
        if module.startswith(NEEDS_SERVER):
            continue
        source = path.read_text()
        nodes = [node for node in ast_nodes(get_ast(source)) if node.type not in _UNBROKEN]
        ignored = list(_ignored(ast.parse(source)))
        for name in operator_names():
            if name.endswith(_SKIPPED):
                continue
            operator = get_operator(name)()
            positions = (start for node in nodes for start, _ in operator.mutation_positions(node))
            for occurrence, position in enumerate(positions):
                if not any(begin <= position < end for begin, end in ignored):
                    found[module, position].append((name, occurrence))
    return found


def _ignored(tree: ast.Module) -> Iterator[tuple[Position, Position]]:
    """What is never run: annotations and other types, which the type checker reads."""
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=ast.expr() as types) | ast.AnnAssign(annotation=types):
                yield _span(types)
            case (
                ast.FunctionDef(returns=ast.expr() as types)
                | ast.AsyncFunctionDef(returns=ast.expr() as types)
            ):
                yield _span(types)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield _span(node)
            case ast.Call(func=ast.Name(id="cast"), args=[types, _]):
                yield _span(types)
    for statement in tree.body:
        match statement:
            case ast.Assign(value=ast.BinOp(op=ast.BitOr()) as union):
                yield _span(union)


def _span(node: ast.expr | ast.stmt) -> tuple[Position, Position]:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
