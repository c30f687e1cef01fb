"""Environments with other packages or another Python than the one that runs the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

ROOT: Final = Path(__file__).parents[2]
SECONDS_TO_INSTALL: Final = 900
SELECTION: Final = (
    "adapters",
    "cli",
    "clients/test_acp.py",
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
ON_A_SERVER: Final = ("tests/journal/test_postgres.py",)
"""What depends on the driver of PostgreSQL. The other tests of the selection leave the server out, to save time."""
EXCLUDED: Final = {"cli/test_loaded_modules.py": "what a library loads differs between its versions"}
SECONDS_TO_TEST: Final = 900
_SOURCE: Final = ("pyproject.toml", "README.md", "LICENSE", "core", "whiteboards", "tui")
_NOT_COPIED: Final = shutil.ignore_patterns("__pycache__")


class Environment(NamedTuple):
    """A virtual environment in ``folder``."""

    folder: Path

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)

    def install(self, *arguments: str) -> None:
        """Install packages with pip."""
        _run(self.program("python"), "-m", "pip", "install", "--quiet", *arguments)

    def install_oldest(self, *arguments: str) -> None:
        """Install packages with uv, each direct dependency in the oldest version that is allowed."""
        self.install("uv")
        _run(
            *(self.program("uv"), "pip", "install", "--quiet", "--python", self.program("python")),
            *("--resolution", "lowest-direct", *arguments),
        )

    def versions(self) -> dict[str, str]:
        """Return the version of each installed package, by its normalized name."""
        program = "import importlib.metadata as m; print(*(f'{d.name} {d.version}' for d in m.distributions()), sep='\\n')"
        lines = _run(self.program("python"), "-c", program).splitlines()
        return {name.lower().replace("_", "-"): version for name, version in map(str.split, lines)}


def make_environment(folder: Path, python: str = sys.executable) -> Environment:
    """Make an empty environment with a current pip."""
    _run(python, "-m", "venv", "--upgrade-deps", str(folder))
    return Environment(folder)


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this project from a copy of its source. Return its path."""
    source = folder / "source"
    for name in _SOURCE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=_NOT_COPIED)
        else:
            source.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    _run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder / "dist"), str(source)
    )
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def clean_environment(home: Path) -> dict[str, str]:
    """Return environment variables without anything of the tests' own interpreter, with ``home`` as the home folder."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PYTEST", "WATCHROOM", "XDG_", "VIRTUAL_ENV", "COLUMNS", "LINES"))
    }
    return {**kept, "HOME": str(home), "LANG": "C.UTF-8", "TERM": "xterm-256color"}


def other_pythons() -> Sequence[str]:
    """Return the usable CPythons (3.11 or later) of other minor versions than this one, newest first."""
    folders = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin", "/usr/local/bin"]
    folders += map(str, Path.home().glob(".pyenv/versions/*/bin"))
    found: dict[tuple[int, int], str] = {}
    for minor in range(11, 20):
        for folder in folders:
            program = os.path.join(folder, f"python3.{minor}")
            if (
                minor != sys.version_info.minor
                and os.access(program, os.X_OK)
                and _can_make_environments(program)
            ):
                found.setdefault((3, minor), program)
    return [found[version] for version in sorted(found, reverse=True)]


def run_selection(environment: Environment, folder: Path) -> None:
    """Run `SELECTION` and `ON_A_SERVER` with the Python of ``environment``. Every test has to pass."""
    report = folder / "report.xml"
    ignored = [f"--ignore=tests/{each}" for each in EXCLUDED]
    selected = [f"tests/{each}" for each in SELECTION]
    _run_tests(environment, "-m", "not postgres", f"--junitxml={report}", *ignored, *selected)
    _run_tests(environment, *ON_A_SERVER)
    (suite,) = ElementTree.parse(report).getroot()
    assert int(suite.attrib["tests"]) > 1000, "the selection was collected"


def _run_tests(environment: Environment, *arguments: str) -> None:
    done = subprocess.run(
        [environment.program("python"), "-m", "pytest", "-n0", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env=clean_environment(Path.home()),
        capture_output=True,
        text=True,
        timeout=SECONDS_TO_TEST,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]


def _can_make_environments(python: str) -> bool:
    # A shim of pyenv is there for versions that are not chosen, and fails.
    done = subprocess.run(
        [python, "-c", "import ensurepip, sqlite3, ssl, venv"], capture_output=True, check=False
    )
    return done.returncode == 0


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_TO_INSTALL, check=False)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}\n{done.stderr}"
    return done.stdout
