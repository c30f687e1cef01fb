"""The tools with which people grant calls in a wider scope, and revoke grants. Agents do not have them."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from watchroom.features.policy.grants import MAX_SECONDS, MAX_USES, GrantChoice, Scope
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import NO_BOOL, ParamsModel, ResultModel, RowNumber
from watchroom.kernel.tools.tool import Toolset

TOOLS: Final = Toolset("request", audience="people")
tool = TOOLS.tool


class GrantCallsParams(ParamsModel):
    request: RowNumber
    scope: Scope
    uses: Annotated[int, Field(ge=1, le=MAX_USES), NO_BOOL]
    seconds: Annotated[int, Field(ge=1, le=MAX_SECONDS), NO_BOOL] | None = None
    """How long the grant lasts; required unless the scope is a session."""
    words: Annotated[int, Field(ge=1, le=1000), NO_BOOL] | None = None
    """Grant these first words of the command and any further words; left out, the exact command."""


class GrantCallsResult(ResultModel):
    grant: int
    """The row of the grant."""
    covers: str
    """One sentence with exactly what it covers."""


@tool("grant_calls")
def grant_calls(context: ToolContext, params: GrantCallsParams) -> GrantCallsResult:
    """Grant further calls like the call of a request, as the person of ``context``. Raise `RequestNotFound`,
    `GrantRefused`."""
    choice = GrantChoice(params.scope, params.uses, params.seconds, params.words)
    row = context.zones.grants.make(context.call, params.request, choice)
    return GrantCallsResult(grant=row.seq, covers=row.message)


class RevokeGrantParams(ParamsModel):
    grant: RowNumber


class RevokeGrantResult(ResultModel):
    grant: int
    row: int
    """The row that revoked it."""


@tool("revoke_grant")
def revoke_grant(context: ToolContext, params: RevokeGrantParams) -> RevokeGrantResult:
    """Revoke a grant as the person of ``context``. Raise `GrantNotFound`, `GrantEnded`."""
    row = context.zones.grants.revoke(context.call, params.grant)
    return RevokeGrantResult(grant=params.grant, row=row.seq)
