"""The tool with which people mark needs as seen."""

from __future__ import annotations

from typing import Final

from watchroom.features.files.rows import SHARED_FILE_ZONE
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import Message, ParamsModel, ResultModel, RowNumber
from watchroom.kernel.tools.tool import Toolset

TOOLS: Final = Toolset(SHARED_FILE_ZONE, audience="people")
tool = TOOLS.tool


class MarkAsSeenParams(ParamsModel):
    row: RowNumber
    message: Message | None = None


class MarkAsSeenResult(ResultModel):
    row: int
    path: str


@tool("mark_as_seen", idempotent=True)
def mark_as_seen(context: ToolContext, params: MarkAsSeenParams) -> MarkAsSeenResult:
    """Record that the person of ``context`` has seen a need. ``params``: the row that opened it. Raise
    `NothingWaits`."""
    row = context.zones.acknowledgements.acknowledge(context.call, params.row, params.message or "")
    return MarkAsSeenResult(row=params.row, path=row.path)
