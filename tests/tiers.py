"""The two tiers of the tests: which tests belong to the real tier, and how a run knows its tier.

docs/testing.md lists the shortcuts of the fast tier, and the real tests that cover the same paths.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from random import SystemRandom
from typing import Final

import pytest
from effort import IS_HUNTING, SEED

_TESTS: Final = Path(__file__).parent
REAL: Final = "real"
IN_BOTH: Final = (
    "cli/test_terminal.py",
    "crash",
    "editing/test_laws.py",
    "journal/test_machines.py",
    "journal/test_postgres.py",
    "journal/test_postgres_faults.py",
    "journal/test_sqlite.py",
    "laws/test_conflicts.py",
    "laws/test_crdt.py",
    "laws/test_edits_by_hand.py",
    "laws/test_sessions.py",
    "laws/test_zones.py",
    "merge/test_against_git.py",
    "merge/test_laws.py",
    "processes",
    "realtime/test_processes.py",
    "realtime/test_restarts.py",
    "reverts/test_histories.py",
    "serving/test_stdio.py",
    "trees/test_commits.py",
    "trees/test_five_clients.py",
    "trees/test_git_operations.py",
    "trees/test_kill.py",
    "trees/test_line_rules.py",
    "trees/test_random_operations.py",
    "tui/test_terminals.py",
    "tui/test_weather_in_a_terminal.py",
)
"""Tests of the fast tier that the real tier runs again, without shortcuts and with random seeds."""
_IS_REAL: Final = pytest.StashKey[bool]()


def is_real(config: pytest.Config) -> bool:
    """Return whether this run is of the real tier: ``pytest -m real``."""
    return config.stash.get(_IS_REAL, False)


def choose_tier(config: pytest.Config) -> None:
    """Set the tier from the option ``-m``, and the seed of a run with random examples."""
    selects_real = re.search(rf"\b{REAL}\b", config.option.markexpr) is not None
    config.stash[_IS_REAL] = selects_real and f"not {REAL}" not in config.option.markexpr
    if is_real(config) or IS_HUNTING:
        os.environ.setdefault(SEED, str(SystemRandom().randrange(10**9)))
    if SEED in os.environ:
        config.option.hypothesis_seed = os.environ[SEED]
    if is_real(config) and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        config.args = [str(_TESTS / each) for each in (REAL, *IN_BOTH)]


def keep_tier(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of both tiers in the real tier, and deselect real tests in the fast tier."""
    if is_real(config):
        both = tuple(_TESTS / each for each in IN_BOTH)
        for item in items:
            if any(item.path.is_relative_to(each) for each in both):
                item.add_marker(REAL)
        return
    if REAL in config.option.markexpr:
        return
    left = [item for item in items if item.get_closest_marker(REAL)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
