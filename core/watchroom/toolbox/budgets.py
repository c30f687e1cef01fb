"""The tool with which people set budgets. Agents do not have it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from watchroom.toolbox.context import ToolContext
from watchroom.toolbox.models import Name, Number, ParamsModel, ResultModel
from watchroom.toolbox.tool import Toolset

TOOLS: Final = Toolset("config", audience="people")
tool = TOOLS.tool


class SetBudgetParams(ParamsModel):
    scope: Literal["session", "agent", "task", "team"]
    name: Name | None = None
    measure: Literal["cost", "tokens", "seconds", "steps"]
    most: Annotated[Number, Field(gt=0, le=1e12)] | None = None


class SetBudgetResult(ResultModel):
    scope: str
    name: str | None = None
    measure: str
    most: float | None = None
    row: int | None = None
    """The version of the config that says so; None where it said so before."""


@tool("set_budget", path=("scope", "name"))
def set_budget(context: ToolContext, params: SetBudgetParams) -> SetBudgetResult:
    """Set the budget in ``params`` for the person of ``context``. Raises `ConfigInvalid`, `UnknownAgent`."""
    row = context.zones.budgets.set_budget(
        context.actor, params.scope, params.name or "", params.measure, params.most
    )
    return SetBudgetResult(
        scope=params.scope,
        name=params.name,
        measure=params.measure,
        most=params.most,
        row=row.seq if row is not None else None,
    )
