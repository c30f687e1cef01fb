"""The peers of Watchroom: their places, versions and installation."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_NEWEST_PYTHON = 20


class InstallError(Exception):
    """A peer could not be installed. The message gives the reason."""


class Peer(Protocol):
    """A program or library that can be measured once it is installed."""

    @property
    def name(self) -> str:
        """The name in tables."""

    @property
    def how(self) -> str:
        """How to install it."""

    def version(self, folder: Path) -> str | None:
        """Return the installed version, None if it is missing. ``folder`` has the environments."""

    def install(self, folder: Path) -> None:
        """Create its environment in ``folder``. Raises `InstallError`."""


@dataclass(frozen=True, slots=True)
class Library:
    """A Python package that is called in this process."""

    name: str
    distribution: str
    how: str = "`pip install -e '.[bench]'`"

    def version(self, folder: Path) -> str | None:
        """Return the version from pip. ``folder`` is not used."""
        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return None

    def install(self, folder: Path) -> None:
        """Raise `InstallError`, because this environment is not changed from within."""
        raise InstallError(self.how)


@dataclass(frozen=True, slots=True)
class SystemProgram:
    """A program of the system, or of a Debian package."""

    name: str
    command: str
    package: str

    @property
    def how(self) -> str:
        return f"`apt install {self.package}`"

    def version(self, folder: Path) -> str | None:
        """Return the version that the program prints. ``folder`` is not used."""
        if shutil.which(self.command) is None:
            return None
        told = subprocess.run([self.command, "--version"], capture_output=True, text=True, check=False)
        number = re.search(r"\d+(\.\d+)+", told.stdout)
        return number[0] if number else "unknown"

    def install(self, folder: Path) -> None:
        """Raise `InstallError`, because the system is not changed from here."""
        raise InstallError(self.how)


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """A program from PyPI, or from a git repository, in its own virtual environment.

    - ``distribution``: its name on PyPI.
    - ``requirements``: the arguments of pip. All but the first pin a dependency to a working version.
    - ``python``: the minimum minor version of Python 3.
    """

    name: str
    distribution: str
    requirements: tuple[str, ...]
    python: int = 11

    @property
    def how(self) -> str:
        needs = f", with Python 3.{self.python} or later" if self.python > 11 else ""
        return f"`pip install {' '.join(self.requirements)}`{needs}"

    def program(self, folder: Path, name: str) -> str:
        """Return the path of one of its programs."""
        return str(folder / self.name / "bin" / name)

    def version(self, folder: Path) -> str | None:
        for packages in (folder / self.name).glob("lib/python*/site-packages"):
            for found in importlib.metadata.distributions(name=self.distribution, path=[str(packages)]):
                return found.version
        return None

    def install(self, folder: Path) -> None:
        environment = folder / self.name
        _run([_find_python(self.python), "-m", "venv", "--clear", str(environment)])
        _run([str(environment / "bin" / "pip"), "install", "--quiet", *self.requirements])


@dataclass(frozen=True, slots=True)
class NodeProgram:
    """A program from npm, in its own folder.

    - ``package``: its name on npm.
    - ``needs``: programs that it calls, which must be on the path.
    """

    name: str
    package: str
    needs: tuple[str, ...] = ()

    @property
    def how(self) -> str:
        needs = f", and {', '.join(f'`{each}`' for each in self.needs)} on the path" if self.needs else ""
        return f"`npm install {self.package}`{needs}"

    def program(self, folder: Path, name: str) -> str:
        """Return the path of one of its programs."""
        return str(folder / self.name / "node_modules" / ".bin" / name)

    def version(self, folder: Path) -> str | None:
        described = folder / self.name / "node_modules" / self.package / "package.json"
        if not described.exists() or not all(map(shutil.which, self.needs)):
            return None
        return str(json.loads(described.read_text("utf-8"))["version"])

    def install(self, folder: Path) -> None:
        prefix = folder / self.name
        prefix.mkdir(parents=True, exist_ok=True)
        _run(["npm", "install", "--silent", "--prefix", str(prefix), self.package])


def _find_python(minor: int) -> str:
    """Return a Python of at least this minor version: the current one, else the first that runs. Raises
    `InstallError`."""
    if sys.version_info >= (3, minor):
        return sys.executable
    for each in range(minor, _NEWEST_PYTHON):
        found = shutil.which(f"python3.{each}")
        # Version managers put programs on the path for versions that are not installed.
        if found and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
            return found
    raise InstallError(f"there is no Python 3.{minor} or later on the path")


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise InstallError(str(error)) from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise InstallError(said[-1] if said else f"{command[0]} ended with {done.returncode}")
