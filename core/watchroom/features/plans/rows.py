"""The rows of plans: notes in which an agent declares what it intends to change. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.kernel.rules.details import get_count, get_list, get_object, get_text
from watchroom.model import Json, Row, Zone

PLAN_ZONE: Final[Zone] = "agent"
DECLARE_PLAN: Final = "declare_plan"
"""The tool of a note that declares a plan. Its path is the agent, and its message the intent. The agent's
newest note counts."""
LIST_PLANS: Final = "list_plans"
OverlapNeed: TypeAlias = Literal["overlap"]
OVERLAP_NEED: Final[OverlapNeed] = "overlap"
"""The kind of the need that a plan opens for people if it overlaps with another plan."""


class Overlap(NamedTuple):
    """The plan of another agent that was active when a plan was declared.

    - ``agent``: the other agent.
    - ``row``: the row of its plan.
    - ``paths``: patterns of the common files, each of one of the two plans.
    """

    agent: str
    row: int
    paths: tuple[str, ...]


class Plan(NamedTuple):
    """A declared plan. ``paths``: paths and patterns; empty if the agent cleared its plan."""

    row: Row
    paths: tuple[str, ...]
    overlaps: tuple[Overlap, ...] = ()

    @property
    def agent(self) -> str:
        return self.row.actor

    @property
    def intent(self) -> str:
        return self.row.message


def is_plan(row: Row) -> bool:
    """Return whether ``row`` declares or clears a plan."""
    is_note = row.version is None and row.outcome == "ok" and row.kind == "agent"
    return is_note and (row.zone, row.tool) == (PLAN_ZONE, DECLARE_PLAN) and row.path == row.actor


def read_plan(row: Row) -> Plan:
    """Return the plan of ``row``, for which `is_plan` is true."""
    overlaps = (get_object({"": each}, "") for each in get_list(row.detail, "overlaps"))
    found = (
        Overlap(get_text(each, "agent"), get_count(each, "row"), _get_texts(get_list(each, "paths")))
        for each in overlaps
    )
    return Plan(row, _get_texts(get_list(row.detail, "paths")), tuple(found))


def plan_detail(paths: Iterable[str], overlaps: Iterable[Overlap]) -> dict[str, Json]:
    """Return the detail of the row that declares a plan."""
    described: list[Json] = [
        {"agent": each.agent, "row": each.row, "paths": list[Json](each.paths)} for each in overlaps
    ]
    detail: dict[str, Json] = {"paths": list[Json](paths)}
    return {**detail, "overlaps": described} if described else detail


def _get_texts(values: Iterable[Json]) -> tuple[str, ...]:
    return tuple(each for each in values if isinstance(each, str))
