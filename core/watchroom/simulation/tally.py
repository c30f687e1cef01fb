"""What the agents have done so far, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import Final

from watchroom.simulation.steps import Call, Result, succeeded, text_in

_QUICK: Final = 2
_EDITS: Final = frozenset(
    {"realtime_set_field", "realtime_edit_text", "realtime_edit_set", "realtime_edit_counter"}
)
_LOOKS: Final = frozenset({"list", "contains", "value"})
_BOARD_WRITES: Final = frozenset({"whiteboard_write", "whiteboard_append", "whiteboard_update_section"})
_WRITES: Final = frozenset({"collab_write", "collab_rollback"})


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


class Tally:
    """Counts. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._outcomes: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._errors: list[str] = []

    def called(self, call: Call, result: Result) -> None:
        """A call has come back."""
        with self._lock:
            ok = succeeded(result)
            self._outcomes["ok" if ok else text_in(result, "error") or "unknown"] += 1
            conflict = result.get("is_conflict") is True
            if call.tool in _WRITES:
                self._wrote(call.attempt, ok, conflict)
            if not ok and not conflict:
                self._counts["refused"] += 1
            if ok and call.tool in _EDITS and call.arguments.get("operation") not in _LOOKS:
                self._counts["edits"] += 1
            if ok and call.tool in _BOARD_WRITES:
                self._counts["board_versions"] += 1
            if ok and call.tool in ("handoff_file", "acknowledge_handoff"):
                self._counts[call.tool] += 1

    def _wrote(self, attempt: int, ok: bool, conflict: bool) -> None:
        if attempt == 0 and (ok or conflict):
            self._counts["writes"] += 1
            self._counts["conflicts"] += conflict
        elif attempt and ok:
            self._counts["recoveries"] += 1
            self._counts["quick"] += attempt <= _QUICK

    def gave_up(self) -> None:
        with self._lock:
            self._counts["abandoned"] += 1

    def ended_session(self, tokens: int) -> None:
        with self._lock:
            self._counts["sessions"] += 1
            self._counts["tokens"] += tokens

    def failed(self, error: str) -> None:
        """An agent came to an unexpected end."""
        with self._lock:
            self._errors.append(error)

    def summary(self) -> Summary:
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
