"""What the tests of the sandbox share: the machine's fence, and a folder to work in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from watchroom.sandbox.bubblewrap import Bubblewrap
from watchroom.sandbox.fences import Fence
from watchroom.sandbox.groups import Groups
from watchroom.sandbox.ladder import Ladder
from watchroom.sandbox.landlock import Landlock
from watchroom.sandbox.limits import Limits
from watchroom.sandbox.running import Finished, run

Run = Callable[..., Finished]


@pytest.fixture(scope="session")
def ladder() -> Ladder:
    return Ladder.probed()


@pytest.fixture(scope="session", params=["bubblewrap", "landlock"])
def fence(ladder: Ladder, request: pytest.FixtureRequest) -> Fence:
    """Each kind in turn."""
    return _fence(ladder, request.param)


@pytest.fixture(scope="session")
def bubblewrapped(ladder: Ladder) -> Fence:
    return _fence(ladder, "bubblewrap")


def _fence(ladder: Ladder, name: str) -> Fence:
    rung = next(rung for rung in ladder.rungs if rung.name == name)
    if not rung.installed:
        pytest.skip(f"{rung.name} is not installed: its isolation is not tested")
    if rung.fence is None:
        pytest.skip(f"{rung.name} does not work here: its isolation is not tested ({rung.why.strip()})")
    return rung.fence


@pytest.fixture(scope="session")
def ungrouped(fence: Fence) -> Fence:
    """The same fence on a machine without control groups."""
    kinds: dict[str, Callable[[Groups], Fence | None]] = {
        "bubblewrap": Bubblewrap.found,
        "landlock": Landlock.found,
    }
    found = kinds[fence.name](Groups())
    assert found
    return found


@pytest.fixture
def hides(fence: Fence) -> bool:
    """Whether what a command may not touch is not even there: Landlock only closes it."""
    return fence.name == "bubblewrap"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "task"
    made.mkdir()
    return made


@pytest.fixture
def inside(fence: Fence, folder: Path) -> Run:
    """Runs a command in the folder."""

    def running(command: str, **options: object) -> Finished:
        return run(command, str(folder), **{"fence": fence, "limits": Limits(seconds=20), **options})  # type: ignore[arg-type]

    return running
