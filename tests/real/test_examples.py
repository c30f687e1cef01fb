"""The example teams, each after the installation that its first lines show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from examples.running import EXAMPLES, run_example
from real.environments import Environment, build_wheel, make_environment

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """One environment for all examples, because the frameworks have to work side by side."""
    folder = tmp_path_factory.mktemp("examples")
    found = make_environment(folder / "environment")
    wheel = str(build_wheel(folder))
    lines = [
        re.findall(r"^ {4}pip install (.*)$", each.read_text("utf-8"), re.MULTILINE)
        for each in EXAMPLES.values()
    ]
    wanted = {each for (line,) in lines for each in shlex.split(line)}
    found.install(*sorted(re.sub(r"^watchroom\b", wheel, each) for each in wanted))
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_team_merges_after_a_refused_write(environment: Environment, tmp_path: Path, name: str) -> None:
    run_example(name, environment.program("python"), tmp_path)
