"""The tools with which people set budgets and sign settings. Agents have none of them."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from watchroom.toolbox.context import ToolContext
from watchroom.toolbox.models import NO_BOOL_AS_FLOAT, Name, ParamsModel, ResultModel
from watchroom.toolbox.tool import Toolset

TOOLS: Final = Toolset("config", audience="people")
tool = TOOLS.tool


class SetBudgetParams(ParamsModel):
    scope: Literal["session", "agent", "task", "team"]
    name: Name | None = None
    measure: Literal["cost", "tokens", "seconds", "steps"]
    most: Annotated[float, Field(gt=0, le=1e12), NO_BOOL_AS_FLOAT] | None = None


class SignSettingsParams(ParamsModel):
    pass


class SignSettingsResult(ResultModel):
    fields: list[str]
    """Which settings hold otherwise than before."""
    row: int | None = None
    """The row that says so; None where nothing changed."""


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


@tool("sign_settings")
def sign_settings(context: ToolContext, params: SignSettingsParams) -> SignSettingsResult:
    """Have the settings hold, for the person of ``context``, that the config file says. Raises
    `VersionConflict`."""
    fields = context.zones.settings.state().unsigned
    row = context.zones.settings.sign(context.actor)
    return SignSettingsResult(fields=list(fields), row=row.seq if row is not None else None)
