"""Errors as data in a session's history, readable in any later process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from watchroom import validation
from watchroom.errors import ToolFailed, WatchroomError
from watchroom.runtime.events import ErrorInfo, Failed
from watchroom.runtime.state import AgentState, Event, StepResult
from watchroom.texts import Language

_MOST_REASON: Final = 500
"""Characters of a foreign error's text that are kept."""


def fail_step(
    state: AgentState, error: BaseException, language: Language, before: Sequence[Event] = ()
) -> StepResult:
    """The step from ``state`` that ``error`` ended, after the events ``before``; its texts are in
    ``language``."""
    info = describe_error(error, language)
    after = state.with_changes(status="error", error=info, errors_in_a_row=state.errors_in_a_row + 1)
    return StepResult(events=(*before, Failed(error=info)), new_state=after)


def describe_error(error: BaseException, language: Language) -> ErrorInfo:
    """``error`` as it is kept, in ``language``. Of one that is not a `WatchroomError`: its type and text."""
    if isinstance(error, WatchroomError):
        return ErrorInfo(
            code=error.code, message=error.message(language), suggestion=error.suggestion(language)
        )
    return ErrorInfo(code="agent_failed", message=_format_error(error))


def wrap_tool_error(tool: str, error: BaseException) -> WatchroomError:
    """``error``, which ``tool`` raised, as a `WatchroomError` (`ToolFailed` unless it is one)."""
    return error if isinstance(error, WatchroomError) else ToolFailed(tool=tool, reason=_format_error(error))


def _format_error(error: BaseException) -> str:
    return validation.escape_unstorable(f"{type(error).__name__}: {error}", _MOST_REASON)
