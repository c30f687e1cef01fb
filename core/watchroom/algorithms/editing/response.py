"""The response of an editing tool: the outcome, the state of the buffer, and the next step (EDIT-4.1)."""

from __future__ import annotations

from enum import Flag, StrEnum, auto
from typing import Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")


class TextEditStatus(StrEnum):
    """The outcome of one call (EDIT-4.1). Editors return the first four outcomes, and bindings also the
    others."""

    SUCCESS = "Success"
    NO_MATCH = "NoMatch"
    MULTI_MATCH = "MultiMatch"
    NO_OP = "NoOp"
    PERSIST_FAILURE = "PersistFailure"
    EXTERNAL_CONFLICT = "ExternalConflict"
    EXCEPTION = "Exception"


class WorkflowState(StrEnum):
    """The state of an editor (`IDLE`, `SELECTION_PENDING`) or of a binding (EDIT-4.1, EDIT-5.3)."""

    IDLE = "Idle"
    SELECTION_PENDING = "SelectionPending"
    SYNCED = "Synced"
    PERSIST_PENDING = "PersistPending"
    OUT_OF_SYNC = "OutOfSync"
    REFRESHING = "Refreshing"


class TextEditFlag(Flag):
    """Additional conditions (EDIT-4.1). `NO_FLAG` is the empty set."""

    SELECTION_PENDING = auto()
    PERSIST_PENDING = auto()
    OUT_OF_SYNC = auto()
    SCHEMA_VIOLATION = auto()
    PERSIST_READ_ONLY = auto()
    EXTERNAL_CONFLICT = auto()
    DIAGNOSTIC_HINT = auto()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the set flags in the spelling of EDIT."""
        return tuple("".join(word.title() for word in str(each.name).split("_")) for each in self)


NO_FLAG = TextEditFlag(0)
_REFUSED: Final = frozenset({"empty_needle", "too_large", "not_text"})
"""Codes of calls that did nothing although a change was requested."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class TextEditMetrics(_Frozen):
    """Metrics of a call.

    - ``delta``: the change of the length in code points.
    - ``new_length``: the length in code points.
    - ``selection_count``: the number of all matches, including those that are not offered.
    """

    delta: int = 0
    new_length: int
    selection_count: int | None = None


class TextEditCandidate(_Frozen):
    """One occurrence of a text that occurs several times.

    - ``id``: the number to choose it by, from 1.
    - ``preview``: the occurrence with its context, in one line.
    - ``marker_start``, ``marker_end``: its markers in the rendered buffer.
    - ``occurrence``: its number, from 0.
    - ``context_start``, ``context_end``: the range of the preview in code points, its end excluded.
    """

    id: int
    preview: str
    marker_start: str
    marker_end: str
    occurrence: int
    context_start: int
    context_end: int


class TextEditResponse(_Frozen):
    """The response of a tool (EDIT-4.1).

    - ``guidance``: the next step; None if no step is needed.
    - ``candidates``: the occurrences to choose from, if any.
    - ``code``: identifies the summary and the guidance.
    - ``diff``: a unified diff, only from `DataSourceBinding.diff`.
    """

    status: TextEditStatus
    workflow_state: WorkflowState
    flags: TextEditFlag = Field(default=NO_FLAG)
    summary: str
    guidance: str | None = None
    metrics: TextEditMetrics
    candidates: tuple[TextEditCandidate, ...] | None = None
    code: str = ""
    diff: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether the requested state is reached, even if no change was needed."""
        return self.status in (TextEditStatus.SUCCESS, TextEditStatus.NO_OP) and self.code not in _REFUSED


class OperationResult(_Frozen, Generic[T]):
    """The result of an update of a buffer by its binding (EDIT-4.1).

    If the update failed, ``error_code`` is set and nothing has changed.
    """

    value: T | None = None
    error_code: str = ""
    message: str = ""
    diagnostic_hint: str = ""

    @property
    def ok(self) -> bool:
        """Whether the update succeeded."""
        return not self.error_code
