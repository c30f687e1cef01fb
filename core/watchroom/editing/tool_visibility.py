"""Which tools a buffer has in which state, as data (EDIT-5.4). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from watchroom.editing.response import WorkflowState

EditTool: TypeAlias = Literal["replace", "replace_selection", "append", "discard_selection"]
SyncTool: TypeAlias = Literal["flush", "refresh", "diff", "accept_source"]
BufferTool: TypeAlias = EditTool | SyncTool
EDIT_TOOLS: Final[tuple[EditTool, ...]] = get_args(EditTool)
SYNC_TOOLS: Final[tuple[SyncTool, ...]] = get_args(SyncTool)

_EDITING: Final[Mapping[WorkflowState, tuple[EditTool, ...]]] = {
    WorkflowState.IDLE: ("replace", "append"),
    WorkflowState.SELECTION_PENDING: ("replace_selection", "discard_selection"),
}
_SYNCING: Final[Mapping[WorkflowState, tuple[SyncTool, ...]]] = {
    WorkflowState.PERSIST_PENDING: ("flush", "diff", "accept_source"),
    WorkflowState.OUT_OF_SYNC: ("refresh", "diff", "accept_source"),
}


def visible_edit_tools(state: WorkflowState) -> tuple[EditTool, ...]:
    """The tools of an editor in ``state``."""
    return _EDITING.get(state, ())


def visible_sync_tools(state: WorkflowState) -> tuple[SyncTool, ...]:
    """The tools of a binding in ``state``."""
    return _SYNCING.get(state, ())


def list_tool_names(
    name: str, editing: WorkflowState, syncing: WorkflowState | None = None
) -> tuple[str, ...]:
    """The names of the tools of the buffer ``name`` as a model is offered them (``{name}_replace``), for an
    editor in state ``editing`` and a binding in state ``syncing``, None without one."""
    tools: tuple[BufferTool, ...] = visible_edit_tools(editing)
    if syncing is not None:
        tools += visible_sync_tools(syncing)
    return tuple(build_tool_name(name, tool) for tool in tools)


def build_tool_name(name: str, tool: BufferTool) -> str:
    """The name of ``tool`` of the buffer ``name``, as a model is offered it."""
    return f"{name}_{tool}"


def parse_tool_name(offered: str) -> tuple[str, BufferTool] | None:
    """The buffer and the tool in ``offered``, a tool's name; None if it is none of a buffer. The reverse of
    `build_tool_name`: no tool's name ends in another's after an underscore."""
    for tool in (*EDIT_TOOLS, *SYNC_TOOLS):
        name = offered.removesuffix(f"_{tool}")
        if name and name != offered:
            return name, tool
    return None
