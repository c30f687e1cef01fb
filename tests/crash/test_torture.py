"""The short form of ``python -m benchmarks torture``."""

from __future__ import annotations

import time
from pathlib import Path

from reliability.torture import KINDS_OF_SLOTS, Budget, torture


def test_nothing_acknowledged_is_lost_while_workers_are_killed(tmp_path: Path) -> None:
    """Eight workers, a society and an attached agent at work in one workspace."""
    kills = len(KINDS_OF_SLOTS) + 4
    budget = Budget(until=time.monotonic() + 120, rounds=1, kills=kills)
    report = torture(
        str(tmp_path / "team"), None, tmp_path, budget=budget, seed=1, dashboards=0, faults=False
    )
    assert report.problems == []
    assert report.done["kills"] >= kills
    assert report.acknowledged > 0
