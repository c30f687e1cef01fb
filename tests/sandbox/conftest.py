"""Fixtures for the tests of the sandbox: the machine's backends, and a folder to work in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tasking import machine_sandbox
from watchroom.platform.sandbox.backend import SandboxBackend
from watchroom.platform.sandbox.bubblewrap import BubblewrapBackend
from watchroom.platform.sandbox.landlock import LandlockBackend
from watchroom.platform.sandbox.limits import CgroupFactory, ResourceLimits
from watchroom.platform.sandbox.probe import SandboxProbe
from watchroom.platform.sandbox.runner import CommandResult, run_command

Run = Callable[..., CommandResult]


@pytest.fixture(scope="session")
def probe() -> SandboxProbe:
    return machine_sandbox()


@pytest.fixture(scope="session", params=["bubblewrap", "landlock"])
def backend(probe: SandboxProbe, request: pytest.FixtureRequest) -> SandboxBackend:
    """Each kind of sandbox in turn."""
    return _backend(probe, request.param)


@pytest.fixture(scope="session")
def bubblewrap(probe: SandboxProbe) -> SandboxBackend:
    return _backend(probe, "bubblewrap")


def _backend(probe: SandboxProbe, name: str) -> SandboxBackend:
    result = next(result for result in probe.results if result.name == name)
    if not result.installed:
        pytest.skip(f"{result.name} is not installed: its isolation is not tested")
    if result.backend is None:
        pytest.skip(
            f"{result.name} does not work here: its isolation is not tested ({result.reason.strip()})"
        )
    return result.backend


@pytest.fixture(scope="session")
def ungrouped(backend: SandboxBackend) -> SandboxBackend:
    """The same backend on a machine without control groups."""
    return detect_again(backend)


def detect_again(backend: SandboxBackend) -> SandboxBackend:
    """Detect the kind of ``backend`` again, without control groups."""
    kinds: dict[str, Callable[[CgroupFactory], SandboxBackend | None]] = {
        "bubblewrap": BubblewrapBackend.detect,
        "landlock": LandlockBackend.detect,
    }
    found = kinds[backend.name](CgroupFactory())
    assert found
    return found


@pytest.fixture
def hides(backend: SandboxBackend) -> bool:
    """Return whether protected files do not exist for a command. With Landlock they exist, but are closed."""
    return backend.name == "bubblewrap"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "task"
    made.mkdir()
    return made


@pytest.fixture
def inside(backend: SandboxBackend, folder: Path) -> Run:
    """A function that runs a command in the folder."""

    def running(command: str, **options: object) -> CommandResult:
        given = {"backend": backend, "limits": ResourceLimits(seconds=20), **options}
        return run_command(command, str(folder), **given)  # type: ignore[arg-type]

    return running
