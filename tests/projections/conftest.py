"""A conflict that most tests of the fold begin with."""

from __future__ import annotations

import pytest
from projections.folding import stale_write, write
from watchroom import Toolbox


@pytest.fixture
def conflict(alice: Toolbox, bob: Toolbox) -> int:
    """Bob's refused write to a file of which Alice wrote two versions; gives its row's number."""
    write(alice, "one", 0)
    write(alice, "two", 1)
    return stale_write(bob, 1)
