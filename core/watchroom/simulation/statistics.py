"""What the agents have done so far, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import Final

from watchroom.model import Json

_QUICK: Final = 2
_EDITS: Final = frozenset(
    {"realtime_set_field", "realtime_edit_text", "realtime_edit_set", "realtime_edit_counter"}
)
_LOOKS: Final = frozenset({"list", "contains", "value"})
_BOARD_WRITES: Final = frozenset({"whiteboard_write", "whiteboard_append", "whiteboard_update_section"})
SHARED_WRITES: Final = frozenset({"collab_write", "collab_rollback"})
"""The tools whose conflicts are counted."""
_HANDOFFS: Final = frozenset({"handoff_file", "acknowledge_handoff"})


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call that has come back: its ``tool``, the ``operation`` among its arguments, how often it was
    tried again after a conflict (``attempt``), and its outcome: ``error`` is empty where it succeeded."""

    tool: str
    operation: str
    attempt: int
    error: str
    is_conflict: bool

    @classmethod
    def of(
        cls, tool: str, arguments: Mapping[str, Json], attempt: int, result: Mapping[str, Json]
    ) -> CallRecord:
        """The record of a call of ``tool`` with ``arguments``, tried for the ``attempt``-th time, and its
        ``result``."""
        error = "" if result.get("success") is True else str(result.get("error") or "unknown")
        operation = str(arguments.get("operation", ""))
        return cls(tool, operation, attempt, error, result.get("is_conflict") is True)


@dataclass(frozen=True, slots=True)
class Summary:
    """The numbers at one moment. ``outcomes`` counts calls by ``ok`` or by error code.

    A conflict is a write that met a newer version when it was first tried; it ends as a recovery (merged
    and committed), or abandoned. ``conflict_rate`` is conflicts among all such first tries,
    ``recovery_rate`` the share of ended conflicts that were recovered within two tries. ``edits`` are those
    of realtime documents, ``board_versions`` the versions of whiteboards. ``refused`` are the calls that
    failed otherwise. ``sessions`` have come to an end, and used so many ``tokens``. ``errors`` name the
    agents that had to be stopped, and why.
    """

    calls: int
    outcomes: Mapping[str, int]
    writes: int
    conflicts: int
    recoveries: int
    quick_recoveries: int
    abandoned: int
    handoffs_sent: int
    handoffs_acknowledged: int
    edits: int
    board_versions: int
    refused: int
    sessions: int
    tokens: int
    errors: tuple[str, ...]

    @property
    def conflict_rate(self) -> float:
        return self.conflicts / self.writes if self.writes else 0.0

    @property
    def recovery_rate(self) -> float:
        ended = self.recoveries + self.abandoned
        return self.quick_recoveries / ended if ended else 1.0


class Statistics:
    """Counts. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._outcomes: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._errors: list[str] = []

    def count_call(self, call: CallRecord) -> None:
        """Count a ``call`` that has come back."""
        with self._lock:
            self._outcomes[call.error or "ok"] += 1
            if call.tool in SHARED_WRITES:
                self._count_write(call)
            if call.error:
                self._counts["refused"] += not call.is_conflict
                return
            self._counts["edits"] += call.tool in _EDITS and call.operation not in _LOOKS
            self._counts["board_versions"] += call.tool in _BOARD_WRITES
            if call.tool in _HANDOFFS:
                self._counts[call.tool] += 1

    def _count_write(self, call: CallRecord) -> None:
        if call.attempt == 0 and (not call.error or call.is_conflict):
            self._counts["writes"] += 1
            self._counts["conflicts"] += call.is_conflict
        elif call.attempt and not call.error:
            self._counts["recoveries"] += 1
            self._counts["quick"] += call.attempt <= _QUICK

    def count_abandoned(self) -> None:
        """Count a conflict that its agent left open."""
        with self._lock:
            self._counts["abandoned"] += 1

    def count_session(self, tokens: int) -> None:
        """Count a session that has ended, and the ``tokens`` that it used."""
        with self._lock:
            self._counts["sessions"] += 1
            self._counts["tokens"] += tokens

    def add_error(self, error: str) -> None:
        """Keep the ``error`` that brought an agent to an unexpected end."""
        with self._lock:
            self._errors.append(error)

    def summary(self) -> Summary:
        """The numbers now."""
        with self._lock:
            counts = self._counts
            return Summary(
                calls=self._outcomes.total(),
                outcomes=MappingProxyType(dict(self._outcomes)),
                writes=counts["writes"],
                conflicts=counts["conflicts"],
                recoveries=counts["recoveries"],
                quick_recoveries=counts["quick"],
                abandoned=counts["abandoned"],
                handoffs_sent=counts["handoff_file"],
                handoffs_acknowledged=counts["acknowledge_handoff"],
                edits=counts["edits"],
                board_versions=counts["board_versions"],
                refused=counts["refused"],
                sessions=counts["sessions"],
                tokens=counts["tokens"],
                errors=tuple(self._errors),
            )
