"""What the tests of the dashboard share: a team with a write that was refused."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from syrupy.assertion import SnapshotAssertion
from tui.pictures import Picture
from tui.team import stale_write, write
from watchroom import Toolbox


@pytest.fixture(autouse=True, scope="package")
def _utc() -> Iterator[None]:
    """What is shown in local time is the same on every machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC0")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def conflict(alice: Toolbox, bob: Toolbox) -> int:
    """Three files with versions; bob's write to plan.md was refused. Gives the number of that row."""
    write(alice, "another\n", 0, "another.md")
    write(alice, "one\n", 0)
    write(alice, "two\n", 1)
    number = stale_write(bob, "late\n", 1)
    write(alice, "zoo\n", 0, "zoo.md")
    write(alice, "three\n", 2)
    return number


@pytest.fixture
def picture(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(Picture)
