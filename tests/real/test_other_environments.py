"""A part of the fast tier in other environments: the oldest allowed dependencies, and another Python."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest
from real.environments import ROOT, Environment, clean_environment, make_environment, other_pythons

pytestmark = pytest.mark.real

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: Final = "acp,apprise,langchain,otel,postgres,prices,pydantic-ai,server,sign"
SELECTION: Final = (
    "adapters",
    "cli",
    "clients/test_acp.py",
    "journal/test_postgres.py",
    "journal/test_sqlite.py",
    "markdown",
    "requirements",
    "serving",
    "signing",
    "tui/test_documents_screen.py",
    "tui/test_files_screen.py",
    "tui/test_merge_screen.py",
    "tui/test_overview.py",
    "tui/test_terminals.py",
)
"""What depends most on libraries: the tools, the server of tools, the command line, Markdown and the dashboard."""
EXCLUDED: Final = {"cli/test_loaded_modules.py": "what a library loads differs between its versions"}
SECONDS: Final = 900
PINNED: Final = re.compile(r"([\w-]+)(?:\[[\w,-]+\])?>=([\d.]+)")


def lower_bounds() -> dict[str, str]:
    """Return the oldest allowed version of each dependency of the base install, as pyproject.toml declares it."""
    found = [PINNED.match(each) for each in PROJECT["dependencies"]]
    assert all(found), "every dependency has a lower bound"
    return {each[1].lower(): each[2] for each in found if each is not None}


def run_selection(environment: Environment, folder: Path) -> None:
    """Run `SELECTION` with the Python of ``environment``. Every test has to run and pass."""
    report = folder / "report.xml"
    ignored = [f"--ignore=tests/{each}" for each in EXCLUDED]
    done = subprocess.run(
        [
            *(environment.program("python"), "-m", "pytest", "-n0", "-p", "no:cacheprovider"),
            *("-m", "not postgres or postgres", f"--junitxml={report}", *ignored),
            *(f"tests/{each}" for each in SELECTION),
        ],
        cwd=ROOT,
        env=clean_environment(Path.home()),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    suite = ElementTree.parse(report).getroot()[0]
    print(suite.attrib)
    assert int(suite.attrib["tests"]) > 1000


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


def test_another_python_with_the_newest_dependencies_is_enough(tmp_path: Path) -> None:
    pythons = other_pythons()
    if not pythons:
        pytest.skip("NOT RUN: this machine has no second CPython (3.11 or later)")
    environment = make_environment(tmp_path / "other", pythons[0])
    environment.install("-e", f"{ROOT}[dev]")
    version = environment.versions()["watchroom"]
    print(f"watchroom {version} with {pythons[0]}")
    run_selection(environment, tmp_path)
