"""How errors are kept: as data in the session's history, so that they can be read in any later process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from watchroom import validation
from watchroom.errors import ToolFailed, WatchroomError
from watchroom.runtime.events import ErrorInfo, Event, Failed
from watchroom.runtime.state import AgentState, StepResult
from watchroom.texts import Language

_MOST_REASON: Final = 500
"""Characters that are kept of what an error of somebody else's says."""


def failed(
    state: AgentState, error: BaseException, language: Language, before: Sequence[Event] = ()
) -> StepResult:
    """The step that ``error`` ended, after the events ``before``."""
    info = error_info(error, language)
    after = state.but(status="error", error=info, errors_in_a_row=state.errors_in_a_row + 1)
    return StepResult(events=(*before, Failed(error=info)), new_state=after)


def error_info(error: BaseException, language: Language) -> ErrorInfo:
    """An error as it is kept. Of one that is not ours, what it is and says."""
    if isinstance(error, WatchroomError):
        return ErrorInfo(
            code=error.code, message=error.message(language), suggestion=error.suggestion(language)
        )
    return ErrorInfo(code="agent_failed", message=_reason(error))


def tool_error(tool: str, error: BaseException) -> WatchroomError:
    """What ``tool`` raised, as an error of ours."""
    return error if isinstance(error, WatchroomError) else ToolFailed(tool=tool, reason=_reason(error))


def _reason(error: BaseException) -> str:
    return validation.escape_unstorable(f"{type(error).__name__}: {error}", _MOST_REASON)
