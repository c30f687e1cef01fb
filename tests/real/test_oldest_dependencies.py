"""A part of the fast tier with the oldest dependencies that pyproject.toml allows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest
from real.environments import ROOT, Environment, make_environment, run_selection

pytestmark = pytest.mark.real

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: Final = "acp,apprise,langchain,otel,postgres,prices,pydantic-ai,server"
PINNED: Final = re.compile(r"([\w-]+)(?:\[[\w,-]+\])?>=([\d.]+)")
INSTALLERS: Final = ("watchroom", "pip", "uv", "setuptools")


def lower_bounds() -> dict[str, str]:
    """Return the oldest allowed version of each dependency of the base install, as pyproject.toml declares it."""
    found = [PINNED.match(each) for each in PROJECT["dependencies"]]
    assert all(found), "every dependency has a lower bound"
    return {each[1].lower(): each[2] for each in found if each is not None}


@pytest.fixture
def oldest(tmp_path: Path) -> Environment:
    environment = make_environment(tmp_path / "oldest")
    environment.install_oldest("-e", f"{ROOT}[{EXTRAS}]")
    pinned = tmp_path / "pinned.txt"
    pinned.write_text(
        "".join(
            f"{name}=={version}\n"
            for name, version in environment.versions().items()
            if name not in ("watchroom", "pip", "uv", "setuptools")
        )
    )
    environment.install("--constraint", str(pinned), "-e", f"{ROOT}[dev]")
    return environment


def test_the_oldest_allowed_dependencies_are_enough(oldest: Environment, tmp_path: Path) -> None:
    installed = oldest.versions()
    wrong = {
        name: (bound, installed[name])
        for name, bound in lower_bounds().items()
        if not f"{installed[name]}.0.0".startswith(f"{bound}.")
    }
    assert wrong == {}, "declared and oldest installable version differ: pyproject.toml declares too little"
    run_selection(oldest, tmp_path)
