"""The tools that a buffer offers in each state (EDIT-5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from watchroom.algorithms.editing.response import WorkflowState

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
    """Return the tools of an editor in ``state``."""
    return _EDITING.get(state, ())


def visible_sync_tools(state: WorkflowState) -> tuple[SyncTool, ...]:
    """Return the tools of a binding in ``state``."""
    return _SYNCING.get(state, ())


def list_tool_names(
    name: str, editing: WorkflowState, syncing: WorkflowState | None = None
) -> tuple[str, ...]:
    """Return the names of the tools that the buffer ``name`` offers to a model (``{name}_replace``).

    - ``editing``: the state of the editor.
    - ``syncing``: the state of the binding; None if the buffer is not bound.
    """
    tools: tuple[BufferTool, ...] = visible_edit_tools(editing)
    if syncing is not None:
        tools += visible_sync_tools(syncing)
    return tuple(build_tool_name(name, tool) for tool in tools)


def build_tool_name(name: str, tool: BufferTool) -> str:
    """Return the name of ``tool`` of the buffer ``name``, as it is offered to a model."""
    return f"{name}_{tool}"


def parse_tool_name(offered: str) -> tuple[str, BufferTool] | None:
    """Return the buffer and the tool of the tool name ``offered``; None if it is not a tool of a buffer.

    This reverses `build_tool_name`. The result is unique, because no tool's name ends with ``_`` and the name
    of another tool.
    """
    for tool in (*EDIT_TOOLS, *SYNC_TOOLS):
        name = offered.removesuffix(f"_{tool}")
        if name and name != offered:
            return name, tool
    return None
