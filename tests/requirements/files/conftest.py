"""Each case on the embedded journal, and on one in memory: what it promises belongs to no backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from watchroom import Workspace
from watchroom.journal.memory import MemoryJournal


@pytest.fixture(params=["sqlite", "memory"])
def workspace(root: Path, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    journal = MemoryJournal(gap=1) if request.param == "memory" else None
    with Workspace.open(root, agents=["alice", "bob", "charlie"], journal=journal) as opened:
        yield opened
