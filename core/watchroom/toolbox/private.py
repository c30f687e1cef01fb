"""The private zone's tools (FILES-1)."""

from __future__ import annotations

from typing import Final

from watchroom.model import Row
from watchroom.toolbox.context import ToolContext
from watchroom.toolbox.models import Message, Name, ParamsModel, ResultModel
from watchroom.toolbox.tool import Toolset

TOOLS: Final = Toolset("private")
tool = TOOLS.tool


class PrivateSaveParams(ParamsModel):
    filename: Name
    content: str
    message: Message | None = None


class PrivateSaveResult(ResultModel):
    filename: str
    version: int
    size: int


@tool("save_to_my_workspace", path=("filename",), destroys=True, idempotent=True, audience="agents")
def save_to_my_workspace(context: ToolContext, params: PrivateSaveParams) -> PrivateSaveResult:
    """Save a file of the actor of ``context``, as ``params`` say. Raises `InvalidPath`, `TooLarge`."""
    row = context.zones.private.write(
        context.actor,
        context.actor,
        params.filename,
        params.content,
        tool="save_to_my_workspace",
        message=params.message or "",
    )
    return _save_result(context, params, row)


@TOOLS.replay(save_to_my_workspace)
def _save_result(context: ToolContext, params: PrivateSaveParams, row: Row) -> PrivateSaveResult:
    return PrivateSaveResult(filename=params.filename, version=row.version or 0, size=row.size or 0)


class PrivateReadParams(ParamsModel):
    agent_id: Name
    filename: Name


class PrivateReadResult(ResultModel):
    agent_id: str
    filename: str
    content: str
    size: int


@tool("read_from_workspace", path=("agent_id", "filename"), reads_only=True)
def read_from_workspace(context: ToolContext, params: PrivateReadParams) -> PrivateReadResult:
    """Return the file of any agent that ``params`` name, to the actor of ``context``. Raises `UnknownAgent`,
    `NotFound`, `NotText`."""
    content, row = context.zones.private.read(
        context.actor, params.agent_id, params.filename, tool="read_from_workspace"
    )
    return PrivateReadResult(
        agent_id=params.agent_id, filename=params.filename, content=content, size=row.size or 0
    )


class PrivateListParams(ParamsModel):
    agent_id: Name


class PrivateListResult(ResultModel):
    agent_id: str
    files: list[str]
    count: int
    notice: str | None = None
    """How many files have names that the tools do not take."""


@tool("list_workspace_files", path=("agent_id",), reads_only=True)
def list_workspace_files(context: ToolContext, params: PrivateListParams) -> PrivateListResult:
    """Return the names of the files of the agent in ``params``, to the actor of ``context``. Raises
    `UnknownAgent`."""
    found = context.zones.private.files(context.actor, params.agent_id, tool="list_workspace_files")
    notice = context.texts("listing.unusable", count=found.unusable) if found.unusable else None
    return PrivateListResult(
        agent_id=params.agent_id, files=found.names, count=len(found.names), notice=notice
    )


class PrivateDeleteParams(ParamsModel):
    filename: Name


class PrivateDeleteResult(ResultModel):
    filename: str


@tool("delete_from_my_workspace", path=("filename",), destroys=True, idempotent=True, audience="agents")
def delete_from_my_workspace(context: ToolContext, params: PrivateDeleteParams) -> PrivateDeleteResult:
    """Delete the file in ``params`` of the actor of ``context``. Raises `NotFound`."""
    row = context.zones.private.delete(
        context.actor, context.actor, params.filename, tool="delete_from_my_workspace"
    )
    return _delete_result(context, params, row)


@TOOLS.replay(delete_from_my_workspace)
def _delete_result(context: ToolContext, params: PrivateDeleteParams, row: Row) -> PrivateDeleteResult:
    return PrivateDeleteResult(filename=params.filename)
