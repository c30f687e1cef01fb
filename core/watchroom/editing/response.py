"""The response of an editing tool (EDIT-4.1): what happened, the buffer's state, what to do next."""

from __future__ import annotations

from enum import Flag, StrEnum, auto
from typing import Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")


class TextEditStatus(StrEnum):
    """The outcome of one call (EDIT-4.1). An editor returns the first four; the others are a
    binding's."""

    SUCCESS = "Success"
    NO_MATCH = "NoMatch"
    MULTI_MATCH = "MultiMatch"
    NO_OP = "NoOp"
    PERSIST_FAILURE = "PersistFailure"
    EXTERNAL_CONFLICT = "ExternalConflict"
    EXCEPTION = "Exception"


class WorkflowState(StrEnum):
    """The state of a buffer. The first two are an editor's, the others a binding's (EDIT-4.1, EDIT-5.3)."""

    IDLE = "Idle"
    SELECTION_PENDING = "SelectionPending"
    SYNCED = "Synced"
    PERSIST_PENDING = "PersistPending"
    OUT_OF_SYNC = "OutOfSync"
    REFRESHING = "Refreshing"


class TextEditFlag(Flag):
    """Further conditions; none is ``TextEditFlag(0)`` (EDIT-4.1)."""

    SELECTION_PENDING = auto()
    PERSIST_PENDING = auto()
    OUT_OF_SYNC = auto()
    SCHEMA_VIOLATION = auto()
    PERSIST_READ_ONLY = auto()
    EXTERNAL_CONFLICT = auto()
    DIAGNOSTIC_HINT = auto()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the flags that are set, as EDIT writes them."""
        return tuple("".join(word.title() for word in str(each.name).split("_")) for each in self)


NO_FLAG = TextEditFlag(0)
_REFUSED: Final = frozenset({"empty_needle", "too_large", "not_text"})
"""Why nothing was done, where something was to be done."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class TextEditMetrics(_Frozen):
    """``delta`` and ``new_length`` count characters (code points); ``selection_count`` all matches, also
    those that are no candidates."""

    delta: int = 0
    new_length: int
    selection_count: int | None = None


class TextEditCandidate(_Frozen):
    """One occurrence of the text that was looked for. ``occurrence`` counts from 0; the context is the part
    of the buffer in ``preview``, in code points, its end excluded."""

    id: int
    preview: str
    marker_start: str
    marker_end: str
    occurrence: int
    context_start: int
    context_end: int


class TextEditResponse(_Frozen):
    """The response of a tool; its Markdown is a rendering of it (EDIT-4.1). ``code`` identifies the
    guidance; ``diff`` is a binding's, in unified form."""

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
        """Whether the requested state is reached, even if nothing had to be done for it."""
        return self.status in (TextEditStatus.SUCCESS, TextEditStatus.NO_OP) and self.code not in _REFUSED


class OperationResult(_Frozen, Generic[T]):
    """The result of an operation between a buffer and its source (EDIT-4.1). If it failed,
    ``error_code`` is stable and nothing has changed."""

    value: T | None = None
    error_code: str = ""
    message: str = ""
    diagnostic_hint: str = ""

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return not self.error_code
