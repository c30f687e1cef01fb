"""Plans of routines for tests."""

from __future__ import annotations

from typing import Any, Final

from watchroom import Workspace
from watchroom.features.routines.rows import RoutinePlan
from watchroom.features.routines.rules import SECOND, Trigger

HOUR: Final = 3600
DAY: Final = 24 * HOUR


def make_plan(workspace: Workspace, **changes: Any) -> RoutinePlan:
    """Return the plan of an hourly routine for thirty days, with ``changes``."""
    until = workspace.journal.now() + 30 * DAY * SECOND
    plan = RoutinePlan("claude", "/", False, Trigger("every", HOUR), "cost", 1.0, 10.0, until, 600.0)
    return plan._replace(**changes)
