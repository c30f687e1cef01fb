"""A part of the fast tier with another Python, and the newest dependencies."""

from __future__ import annotations

from pathlib import Path

import pytest
from real.environments import ROOT, make_environment, other_pythons, run_selection

pytestmark = pytest.mark.real


def test_another_python_with_the_newest_dependencies_is_enough(tmp_path: Path) -> None:
    pythons = other_pythons()
    if not pythons:
        pytest.skip("NOT RUN: this machine has no second CPython (3.11 or later)")
    environment = make_environment(tmp_path / "other", pythons[0])
    environment.install("-e", f"{ROOT}[dev]")
    version = environment.versions()["watchroom"]
    print(f"watchroom {version} with {pythons[0]}")
    run_selection(environment, tmp_path)
