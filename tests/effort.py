"""The effort of property tests, crash tests and tests of many writers, and their seeds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random
from typing import Final

IS_HUNTING = "WATCHROOM_HUNT" in os.environ
"""Search for unknown faults, with random seeds and more examples."""
SEED: Final = "WATCHROOM_SEED"
"""Environment variable with the seed of a run. Unset in the fast tier, whose examples are the same each time."""


def rounds(usual: int, hunting: int) -> int:
    """Return the number of rounds: ``usual``, or ``hunting`` if WATCHROOM_HUNT is set."""
    return hunting if IS_HUNTING else usual


def seed(fixed: int) -> int:
    """Return ``fixed``, or a number derived from it and the seed of the run, if the run has one."""
    chosen = os.environ.get(SEED)
    return fixed if chosen is None else Random(f"{chosen} {fixed}").getrandbits(31)


def seeds(usual: int, hunting: int) -> Sequence[int]:
    """Return one seed for each of ``rounds(usual, hunting)``."""
    return [seed(each) for each in range(rounds(usual, hunting))]
