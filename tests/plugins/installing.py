"""Put plug-ins on the module path of new processes, as pip does when it installs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

EXAMPLES: Final = Path(__file__).parents[2] / "examples/plugins"
_PATIENCE: Final = 60
_RUN: Final = "import sys; from watchroom_cli.main import main; sys.exit(main(sys.argv[1:]))"


class Installed:
    """A folder of packages, which processes find in ``variables``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.variables = {**os.environ, "PYTHONPATH": str(folder), "PYTHONUTF8": "1"}

    def add_example(self, kind: str) -> None:
        """Install the example of a ``kind`` of plug-ins."""
        source = EXAMPLES / kind
        project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
        (package,) = (each for each in source.iterdir() if each.name == project["name"].replace("-", "_"))
        shutil.copytree(package, self.folder / package.name)
        self._record(project["name"], project["entry-points"])

    def add_module(self, package: str, code: str, group: str, points: Mapping[str, str]) -> None:
        """Install a package with one module, whose name is that of the package."""
        (self.folder / f"{package}.py").write_text(code, encoding="utf-8")
        self._record(package, {group: points})

    def _record(self, package: str, groups: Mapping[str, Mapping[str, str]]) -> None:
        record = self.folder / f"{package.replace('-', '_')}-1.dist-info"
        record.mkdir(parents=True)
        (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n", "utf-8")
        lines = [
            line
            for group, points in groups.items()
            for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
        ]
        (record / "entry_points.txt").write_text("\n".join([*lines, ""]), "utf-8")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Watchroom in a new process. It is not forked from one that runs already."""
        return subprocess.run(
            self.command(*arguments),
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-c", _RUN, *arguments]
