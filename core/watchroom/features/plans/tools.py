"""The tools with which agents declare and list plans."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from watchroom.features.files.rows import SHARED_FILE_ZONE
from watchroom.features.plans.rows import DECLARE_PLAN, LIST_PLANS, PLAN_ZONE
from watchroom.features.plans.rules import MAX_PATHS
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import FrozenModel, Message, Name, NoParams, ParamsModel, ResultModel
from watchroom.kernel.tools.tool import Toolset

# Beside the tools of shared files, because plans are mostly about them.
TOOLS: Final = Toolset(SHARED_FILE_ZONE)
tool = TOOLS.tool


class DeclarePlanParams(ParamsModel):
    paths: Annotated[list[Name], Field(max_length=MAX_PATHS)]
    intent: Message | None = None


class PlanOverlap(FrozenModel):
    """Files that another agent also plans to change."""

    agent: str
    paths: list[str]
    intent: str


class PlannedChange(FrozenModel):
    """A planned file that others changed recently."""

    path: str
    version: int
    by: list[str]


class DeclarePlanResult(ResultModel):
    paths: list[str]
    overlaps: list[PlanOverlap]
    recent_changes: list[PlannedChange]
    notice: str | None = None
    """What to do about overlaps; None without overlaps."""


@tool(DECLARE_PLAN, audience="agents", zone=PLAN_ZONE, idempotent=True)
def declare_plan(context: ToolContext, params: DeclarePlanParams) -> DeclarePlanResult:
    """Declare what the actor of ``context`` intends to change. Raise `InvalidPath`."""
    declared = context.zones.plans.declare(context.call, params.paths, params.intent or "")
    intents = {each.agent: each.intent for each in declared.others}
    return DeclarePlanResult(
        paths=list(declared.plan.paths),
        overlaps=[
            PlanOverlap(agent=each.agent, paths=list(each.paths), intent=intents[each.agent])
            for each in declared.plan.overlaps
        ],
        recent_changes=[
            PlannedChange(path=each.path, version=each.version, by=list(each.actors))
            for each in declared.changes
        ],
        notice=context.texts("plan.notice") if declared.plan.overlaps else None,
    )


class ListedPlan(FrozenModel):
    agent: str
    paths: list[str]
    intent: str


class ListPlansResult(ResultModel):
    plans: list[ListedPlan]


@tool(LIST_PLANS, zone=PLAN_ZONE, reads_only=True)
def list_plans(context: ToolContext, params: NoParams) -> ListPlansResult:
    """Return the active plans of all agents, oldest first."""
    plans = [
        ListedPlan(agent=each.agent, paths=list(each.paths), intent=each.intent)
        for each in context.zones.plans.current()
    ]
    return ListPlansResult(plans=plans)
