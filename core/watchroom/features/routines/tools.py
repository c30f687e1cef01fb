"""The tools with which people add, run and stop routines. Agents do not have them."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from watchroom.features.routines.rows import ADD_ROUTINE, RUN_ROUTINE, STOP_ROUTINE, RoutinePlan
from watchroom.features.routines.rules import SECOND, Trigger, TriggerKind
from watchroom.features.routines.service import read_state
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import NO_BOOL_AS_FLOAT, Name, ParamsModel, ResultModel
from watchroom.kernel.tools.tool import Toolset

TOOLS: Final = Toolset("config", audience="people")
tool = TOOLS.tool
_RUN_SECONDS: Final = 3600.0
"""The default time limit of a run, in seconds."""
Amount = Annotated[float, Field(gt=0, le=1e12), NO_BOOL_AS_FLOAT]


class AddRoutineParams(ParamsModel):
    routine: Name
    prompt: str
    folder: str
    trigger: TriggerKind
    seconds: Annotated[float, Field(ge=0), NO_BOOL_AS_FLOAT] | None = None
    at: str | None = None
    zone: str | None = None
    target: str | None = None
    client: str | None = None
    tree: bool | None = None
    model: str | None = None
    base_url: str | None = None
    measure: Literal["cost", "tokens"] | None = None
    budget: Amount
    total: Amount
    until: Annotated[float, Field(gt=0), NO_BOOL_AS_FLOAT]
    timeout: Amount | None = None


class RoutineParams(ParamsModel):
    routine: Name


class RoutineResult(ResultModel):
    routine: str


@tool(ADD_ROUTINE, path=("routine",))
def add_routine(context: ToolContext, params: AddRoutineParams) -> RoutineResult:
    """Add a routine for the person of ``context``. Raise `InvalidRoutine`."""
    trigger = Trigger(
        params.trigger, int(params.seconds or 0), params.at or "", params.zone or "", params.target or ""
    )
    plan = RoutinePlan(
        *(params.client or "", params.folder, bool(params.tree), trigger),
        *(params.measure or "cost", params.budget, params.total, int(params.until) * SECOND),
        *(params.timeout or _RUN_SECONDS, params.model or "", params.base_url or ""),
        read_state(trigger, params.folder),
    )
    return RoutineResult(
        routine=context.zones.routines.add(context.call, params.routine, params.prompt, plan).name
    )


@tool(RUN_ROUTINE, path=("routine",))
def run_routine(context: ToolContext, params: RoutineParams) -> RoutineResult:
    """Ask for a run for the person of ``context``. Raise `UnknownRoutine`, `InvalidRoutine`."""
    return RoutineResult(routine=context.zones.routines.run_now(context.call, params.routine).name)


@tool(STOP_ROUTINE, path=("routine",))
def stop_routine(context: ToolContext, params: RoutineParams) -> RoutineResult:
    """Stop a routine for the person of ``context``. Raise `UnknownRoutine`."""
    return RoutineResult(routine=context.zones.routines.stop(context.call, params.routine).name)
