"""Each case on the embedded journal, and on one in memory with files as POSIX alone has them.

What is promised belongs to no backend and to no operating system.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from platforms.choice import choose_platform
from watchroom import Workspace
from watchroom.journal.memory import MemoryJournal
from watchroom.platforms import Platform


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Where the option ``--journal`` names a journal, that one counts."""
    if "workspace" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--journal")
        journals = ["sqlite", "memory"] if chosen == "sqlite" else [chosen]
        metafunc.parametrize("workspace", journals, indirect=True)


@pytest.fixture
def workspace(root: Path, platform: Platform, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    journal, on = (
        (MemoryJournal(gap=1), choose_platform("posix")) if request.param == "memory" else (None, platform)
    )
    with Workspace.open(root, agents=["alice", "bob", "charlie"], journal=journal, platform=on) as opened:
        yield opened
