"""Shared fixtures for tests of the dashboard: a team with a refused write."""

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
    """Use UTC as local time, so that screens are the same on every machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC0")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def conflict(alice: Toolbox, bob: Toolbox) -> int:
    """Write versions of three files, and a refused write of bob's to plan.md. Return its row number."""
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
