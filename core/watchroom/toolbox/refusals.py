"""The one place where a call is refused: its row in the journal and its result come from the same error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, TypeAlias

from watchroom import validation
from watchroom.errors import (
    DiskFailed,
    JournalBusy,
    JournalError,
    NotText,
    PolicyApprovalRequired,
    PolicyDenied,
    TooLarge,
    VersionConflict,
    WatchroomError,
    WorkspaceLocked,
)
from watchroom.model import MAX_TEXT_BYTES, WRITE_FILE, Json, Note
from watchroom.rules.requests import POLICY_RULE
from watchroom.toolbox.conflict_diff import conflict_diff
from watchroom.toolbox.context import ToolContext
from watchroom.toolbox.models import ConflictFailure, Failure
from watchroom.toolbox.tool import AnyTool
from watchroom.toolbox.tool_registry import ToolRegistry
from watchroom.zones import Store

ToolResult: TypeAlias = dict[str, Json]
_BY_POLICY: Final = (PolicyDenied, PolicyApprovalRequired)
"""Errors whose rows name a rule."""


class Refusals:
    """Refuses calls of the caller of ``context``, whose tools are those of ``registry``, with rows in
    ``store``."""

    def __init__(self, context: ToolContext, registry: ToolRegistry, store: Store) -> None:
        self._context = context
        self._registry = registry
        self._store = store

    def refuse(self, tool_name: str, arguments: Mapping[str, Json], error: WatchroomError) -> ToolResult:
        """Return the result of a call of ``tool_name`` with ``arguments`` that ``error`` ended. It is a row
        as well: the one that the error came with (`WatchroomError.has_row`), or one that is made here; where
        the journal was locked for too long, soon. If none can be made, the result says why."""
        if isinstance(error, (JournalBusy, WorkspaceLocked)):
            # The caller has waited long enough: the row is made soon, if the journal is free by then.
            self._store.commits.note(self._row(tool_name, arguments, error))
        elif not error.has_row:
            try:
                self._store.commits.commit(self._row(tool_name, arguments, error))
            except JournalError as cause:
                error = cause
            except OSError as cause:
                error = disk_error(cause)
        return self._result(error)

    def _result(self, error: WatchroomError) -> ToolResult:
        language = self._context.language
        if isinstance(error, VersionConflict):
            return self._conflict_result(error)
        failure = Failure(
            error=error.code, message=error.message(language), suggestion=error.suggestion(language)
        )
        return {**failure.model_dump(), **error.more(language)}

    def _conflict_result(self, conflict: VersionConflict) -> ToolResult:
        language, current = self._context.language, conflict.current
        return ConflictFailure(
            error=conflict.code,
            message=conflict.message(language),
            suggestion=conflict.suggestion(language),
            conflict_id=conflict.row.seq,
            base_version=conflict.row.base or 0,
            current_version=(current.version or 0) if current else 0,
            current_content=conflict.current_content,
            current_author=current.actor if current else None,
            current_message=current.message if current else None,
            your_content=conflict.your_content,
            missed_changes=conflict_diff(self._store.journal, conflict, self._context.texts),
        ).model_dump()

    def _row(self, tool_name: str, arguments: Mapping[str, Json], error: WatchroomError) -> Note:
        tool = self._registry.find(tool_name)
        path = (tool.row_path if tool else "") or "/".join(
            str(arguments[name])
            for name in (tool.path_params if tool else ())
            if isinstance(arguments.get(name), str)
        )
        content, size = _refused_content(tool, arguments), None
        if tool is not None and tool.name == WRITE_FILE and isinstance(content, str):
            files = self._context.zones.task_files
            if not files.keeps_text(self._context.actor, path):
                size, content = len(content), None
        if isinstance(content, str):
            size = len(content)
            try:
                validation.encode_text(content)
            except (NotText, TooLarge):
                content = None
        message = arguments.get("message")
        return Note(
            actor=self._context.actor,
            tool=tool.name if tool else validation.escape_unstorable(tool_name, 100),
            zone=tool.zone if tool else "workspace",
            path=validation.escape_unstorable(path, validation.MAX_PATH_BYTES),
            outcome=error.outcome,
            error=error.code,
            message=validation.escape_unstorable(message, 2000) if isinstance(message, str) else "",
            content=content if isinstance(content, str) else None,
            size=size,
            detail={POLICY_RULE: str(error.values["number"])} if isinstance(error, _BY_POLICY) else None,
        )


def disk_error(error: OSError) -> DiskFailed:
    """Return the `WatchroomError` that a caller gets for ``error``."""
    return DiskFailed(reason=validation.escape_unstorable(error.strerror or str(error)))


def _refused_content(tool: AnyTool | None, arguments: Mapping[str, Json]) -> Json:
    """What the call wanted to write."""
    if tool is not None and tool.zone == "realtime" and not tool.annotations.reads_only:
        # It may stand anywhere among the arguments.
        try:
            return validation.escape_unstorable(
                json.dumps(arguments, ensure_ascii=False), MAX_TEXT_BYTES // 4
            )
        except (ValueError, TypeError, RecursionError):
            return None
    if isinstance(payload := arguments.get("payload"), Mapping):
        return payload.get("text")
    return arguments.get("content", arguments.get("instructions"))
