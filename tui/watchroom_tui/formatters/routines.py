"""Routines in words: when they run, how the last run ended, and what they have spent."""

from __future__ import annotations

import os.path

from watchroom.features.routines.rows import Measure, Routine, RoutinePlan
from watchroom.features.routines.rules import next_slot
from watchroom.texts import Catalogue

from watchroom_tui.formatters.local_time import local_time
from watchroom_tui.presentation.sanitize import sanitize

_UNITS = ((604_800, "w"), (86_400, "d"), (3600, "h"), (60, "m"))


def trigger_text(plan: RoutinePlan, texts: Catalogue) -> str:
    """Return what starts a run. A file in the folder of the routine is named as seen from there."""
    trigger = plan.trigger
    if trigger.kind == "every":
        seconds, unit = next(each for each in _UNITS if trigger.seconds % each[0] == 0)
        return texts("routines.every", interval=f"{trigger.seconds // seconds}{unit}")
    if trigger.kind == "daily":
        return texts("routines.daily", at=trigger.at, zone=sanitize(trigger.zone))
    target = trigger.target
    if trigger.kind == "file":
        target = target.removeprefix(os.path.join(plan.folder, ""))
    return texts(f"routines.{trigger.kind}", target=sanitize(target))


def next_text(routine: Routine, now: int, texts: Catalogue, *, is_served: bool) -> str:
    """Return when the next run begins, or why there is none. ``is_served``: whether the service runs it."""
    trigger = routine.plan.trigger
    if routine.stopped is not None:
        return texts(f"routines.stopped.{routine.stopped}")
    if now >= routine.plan.until:
        return texts("routines.over")
    if routine.is_running:
        return texts("routines.state.running")
    if routine.asked:
        said = texts("routines.now")
    elif trigger.is_timed:
        slot = next_slot(trigger, routine.added.time, max(routine.handled, now))
        said = local_time(slot, "minutes") if slot < routine.plan.until else texts("routines.no_more")
    else:
        said = texts("routines.waits")
    return said if is_served else f"{said} · {texts('routines.no_service')}"


def outcome_text(routine: Routine, texts: Catalogue) -> str:
    """Return how the newest run ended, and how many runs were missed."""
    state = routine.last_state
    said = texts("routines.none") if state is None else texts(f"routines.state.{state}")
    missed = texts("routines.missed", count=routine.missed) if routine.missed else ""
    return f"{said} · {missed}" if missed else said


def amount_text(amount: float, measure: Measure, texts: Catalogue) -> str:
    """Return an amount of a budget."""
    if measure == "cost":
        return f"${amount:,.2f}"
    return texts("routines.tokens", count=f"{amount:,.0f}")


def spent_text(routine: Routine, texts: Catalogue) -> str:
    """Return what was spent, and of what."""
    plan = routine.plan
    return texts(
        "routines.spent",
        spent=amount_text(routine.spent, plan.measure, texts),
        total=amount_text(plan.total, plan.measure, texts),
    )
