"""What the tests of the sandbox share: the machine's backends, and a folder to work in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tasking import machine_sandbox
from watchroom.sandbox.backend import SandboxBackend
from watchroom.sandbox.bubblewrap import BubblewrapBackend
from watchroom.sandbox.cgroups import CgroupFactory
from watchroom.sandbox.landlock import LandlockBackend
from watchroom.sandbox.limits import ResourceLimits
from watchroom.sandbox.probe import SandboxProbe
from watchroom.sandbox.runner import CommandResult, run_command

Run = Callable[..., CommandResult]


@pytest.fixture(scope="session")
def probe() -> SandboxProbe:
    return machine_sandbox()


@pytest.fixture(scope="session", params=["bubblewrap", "landlock"])
def backend(probe: SandboxProbe, request: pytest.FixtureRequest) -> SandboxBackend:
    """Each kind in turn."""
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
    """The backend of the kind of ``backend`` as it is found on the machine now, without control groups."""
    kinds: dict[str, Callable[[CgroupFactory], SandboxBackend | None]] = {
        "bubblewrap": BubblewrapBackend.detect,
        "landlock": LandlockBackend.detect,
    }
    found = kinds[backend.name](CgroupFactory())
    assert found
    return found


@pytest.fixture
def hides(backend: SandboxBackend) -> bool:
    """Whether what a command may not touch is not even there: Landlock only closes it."""
    return backend.name == "bubblewrap"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "task"
    made.mkdir()
    return made


@pytest.fixture
def inside(backend: SandboxBackend, folder: Path) -> Run:
    """Runs a command in the folder."""

    def running(command: str, **options: object) -> CommandResult:
        given = {"backend": backend, "limits": ResourceLimits(seconds=20), **options}
        return run_command(command, str(folder), **given)  # type: ignore[arg-type]

    return running
