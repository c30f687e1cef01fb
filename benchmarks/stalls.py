"""How long one agent's writes wait while another one makes the worst calls there are."""

from __future__ import annotations

import sys
from pathlib import Path

from measure import Measure

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from hostile.worst_calls import WORST_CALLS, measure_waits

MOST_SECONDS = 1.0


def measure() -> list[Measure]:
    """The longest wait beside each of the calls, made by another process and by another thread."""
    measures = []
    for call in WORST_CALLS:
        for same_process in (False, True):
            waits = measure_waits(call, same_process=same_process)
            beside = "another thread" if same_process else "another process"
            measures.append(
                Measure(
                    f"longest wait for a write beside {call} in {beside}",
                    waits.longest,
                    "s",
                    MOST_SECONDS,
                    remark=f"{waits.writes} writes while the call took {waits.call:.1f} s",
                )
            )
    return measures
