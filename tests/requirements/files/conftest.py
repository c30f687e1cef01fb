"""Each case also on a journal in memory, with files as POSIX alone has them.

What is promised belongs to no operating system.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from memory_journal import MemoryJournal
from platforms.choice import choose_platform
from watchroom import Workspace
from watchroom.platform import Platform


@pytest.fixture
def workspace(root: Path, platform: Platform, journal_name: str) -> Iterator[Workspace]:
    journal, on = (
        (MemoryJournal(gap=1), choose_platform("posix")) if journal_name == "memory" else (None, platform)
    )
    with Workspace.open(root, agents=["alice", "bob", "charlie"], journal=journal, platform=on) as opened:
        yield opened
