"""The tool with which people sign settings. Agents do not have it."""

from __future__ import annotations

from typing import Final

from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import ParamsModel, ResultModel
from watchroom.kernel.tools.tool import Toolset

TOOLS: Final = Toolset("config", audience="people")
tool = TOOLS.tool


class SignSettingsParams(ParamsModel):
    pass


class SignSettingsResult(ResultModel):
    fields: list[str]
    """The changed settings."""
    row: int | None = None
    """The row of the new settings; None if nothing changed."""


@tool("sign_settings")
def sign_settings(context: ToolContext, params: SignSettingsParams) -> SignSettingsResult:
    """Sign the settings of the config file as the person of ``context``. Raise `VersionConflict`."""
    fields = context.zones.settings.state().unsigned
    row = context.zones.settings.sign(context.call)
    return SignSettingsResult(fields=list(fields), row=row.seq if row is not None else None)
