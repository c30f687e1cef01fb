"""Reads scenario files, and reports their problems with line numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from watchroom import validation
from watchroom.agents.simulation.scenario import Scenario
from watchroom.agents.simulation.toml_lines import Path as KeyPath
from watchroom.agents.simulation.toml_lines import line_numbers
from watchroom.errors import InvalidScenario
from watchroom.features.config.rows import Agent

BUILT_IN: Final = Path(__file__).parent / "scenarios"
"""The folder of the built-in scenarios."""
BUILT_IN_NAMES: Final = ("software-team", "rogue-agent")
"""The names of the built-in scenarios for `watchroom demo`."""

_MAX_BYTES: Final = 4_000_000
_MAX_PROBLEMS: Final = 20
"""Maximum number of problems that are reported at once."""
_MAX_PROBLEM: Final = 400
"""Maximum characters of a problem."""


def load(path: str | os.PathLike[str]) -> Scenario:
    """Read the scenario file at ``path``. Raise `InvalidScenario`, and OSError if it cannot be read."""
    name = os.path.abspath(path)
    with open(name, "rb") as file:
        raw = file.read(_MAX_BYTES + 1)
    if len(raw) > _MAX_BYTES:
        raise InvalidScenario(file=name, problems=f"line 1: the file has more than {_MAX_BYTES:,} bytes")
    text = ""
    try:
        text = raw.decode()
        given = {**validation.parse_toml(text), "source": name}
        # The names in a scenario are known only if its structure is valid.
        names = Scenario.model_validate(given).names()
        return Scenario.model_validate(given, context=names)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidScenario(file=name, problems=f"line {line}: not UTF-8") from error
    except ValidationError as error:
        found = sorted(set(_problems(error, line_numbers(text))))
        shown = [
            f"line {line}: {validation.escape_unstorable(said, _MAX_PROBLEM)}"
            for line, said in found[:_MAX_PROBLEMS]
        ]
        problems = "\n".join([*shown, *["…"][: len(found) - len(shown)]])
        raise InvalidScenario(file=name, problems=problems) from error
    except ValueError as error:
        raise InvalidScenario(file=name, problems=_syntax_problem(error)) from error


@cache
def demo(name: str = "software-team") -> Scenario:
    """Return a built-in scenario, by default a small software team. Raise ValueError if there is none."""
    if name not in BUILT_IN_NAMES:
        raise ValueError(f"there is no built-in scenario {name!r}")
    return load(BUILT_IN / f"{name.replace('-', '_')}.toml")


def roster(count: int) -> list[Agent]:
    """Return a team of ``count`` agents for the built-in scenario. Raise ValueError if that is too few."""
    return demo().roster(count)


def _syntax_problem(error: Exception) -> str:
    said = str(error)
    match = re.search(r"\(at line (\d+), column (\d+)\)", said)
    if match is None:
        return f"the end of the file: {said.removesuffix(' (at end of document)')}"
    return f"line {match[1]}, column {match[2]}: {said[: match.start()].strip()}"


def _problems(error: ValidationError, lines: Mapping[KeyPath, int]) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each problem that pydantic found."""
    for each in error.errors():
        keys: KeyPath = ()
        for part in each["loc"]:
            if (*keys, part) not in lines:
                break
            keys = (*keys, part)
        place = "".join(f"[{key + 1}]" if isinstance(key, int) else f".{key}" for key in keys)
        problem = each["msg"].removeprefix("Value error, ")
        if each["type"] == "missing":
            problem = f"{each['loc'][-1]!r} is missing"
        elif each["type"] == "extra_forbidden":
            problem = "unknown key"
        yield lines.get(keys, 1), f"{place.removeprefix('.')}: {problem}" if keys else problem
