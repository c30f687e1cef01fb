"""The tool with which people set budgets. Agents do not have it."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from watchroom.features.budgets.rules import BudgetScope, Measure
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import NO_BOOL_AS_FLOAT, Name, ParamsModel, ResultModel
from watchroom.kernel.tools.tool import Toolset

TOOLS: Final = Toolset("config", audience="people")
tool = TOOLS.tool


class SetBudgetParams(ParamsModel):
    scope: BudgetScope
    name: Name | None = None
    measure: Measure
    most: Annotated[float, Field(gt=0, le=1e12), NO_BOOL_AS_FLOAT] | None = None


class SetBudgetResult(ResultModel):
    scope: str
    name: str | None = None
    measure: str
    most: float | None = None
    row: int | None = None
    """The row of the new budget; None if nothing changed."""


@tool("set_budget", path=("scope", "name"))
def set_budget(context: ToolContext, params: SetBudgetParams) -> SetBudgetResult:
    """Set a budget as the person of ``context``. Raise `ConfigInvalid`, `UnknownAgent`."""
    row = context.zones.budgets.set_budget(
        context.call, params.scope, params.name or "", params.measure, params.most
    )
    return SetBudgetResult(
        scope=params.scope,
        name=params.name,
        measure=params.measure,
        most=params.most,
        row=row.seq if row is not None else None,
    )
