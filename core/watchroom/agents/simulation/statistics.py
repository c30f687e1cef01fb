"""Statistics about simulated agents, from their rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import Final, cast

from watchroom.agents.simulation.model_agent import result_of
from watchroom.kernel.journal import Journal
from watchroom.model import ENDED, Row

_QUICK: Final = 2
"""Maximum number of tries of a quick recovery."""
_EDITS: Final = frozenset(
    {"realtime_set_field", "realtime_edit_text", "realtime_edit_set", "realtime_edit_counter"}
)
_LOOKS: Final = frozenset({"list", "contains", "value"})
_BOARD_WRITES: Final = frozenset({"whiteboard_write", "whiteboard_append", "whiteboard_update_section"})
_SHARED_WRITES: Final = frozenset({"collab_write", "collab_rollback"})
"""Tools whose conflicts are counted."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The statistics at one moment.

    - ``outcomes``: calls by ``ok`` or error code.
    - ``writes``: first tries of shared writes.
    - ``conflicts``: first tries that met a newer version.
    - ``recoveries``: conflicts that were merged and committed; ``quick_recoveries``: within two tries.
    - ``abandoned``: conflicts that were not resolved.
    - ``edits``: edits of realtime documents.
    - ``board_versions``: versions of whiteboards.
    - ``refused``: calls that failed for other reasons.
    - ``sessions``: ended sessions; ``tokens``: their usage.
    - ``errors``: the failed agents, and the reasons.
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
        """The number of conflicts per first try."""
        return self.conflicts / self.writes if self.writes else 0.0

    @property
    def recovery_rate(self) -> float:
        """The fraction of ended conflicts that were recovered within two tries."""
        ended = self.recoveries + self.abandoned
        return self.quick_recoveries / ended if ended else 1.0


class Statistics:
    """Counts calls in sessions of any process, from the rows of ``journal`` after its creation. May be used
    from any thread."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._seq = journal.last_seq()
        self._lock = Lock()
        self._outcomes: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._calls: dict[tuple[str, str], Mapping[str, str]] = {}
        self._tokens: Counter[str] = Counter()
        self._tries: Counter[tuple[str, str]] = Counter()

    def summary(self, errors: tuple[str, ...] = ()) -> Summary:
        """Return the current statistics, with ``errors``."""
        with self._lock:
            while rows := self._journal.rows(self._seq):
                for row in rows:
                    if row.zone == "session" and row.version is not None:
                        self._count_step(row)
                self._seq = rows[-1].seq
            names = (name for name in Summary.__dataclass_fields__ if name not in ("outcomes", "errors"))
            return Summary(
                outcomes=MappingProxyType(dict(self._outcomes)),
                errors=errors,
                **{name: self._counts[name] for name in names},
            )

    def _count_step(self, row: Row) -> None:
        for message in json.loads(self._journal.content(row.seq) or "{}").get("messages", ()):
            for call in message.get("tool_calls") or ():
                self._calls[row.path, call["id"]] = call["function"]
            if message["role"] == "tool":
                function = self._calls.pop((row.path, message["tool_call_id"]), None)
                if function is not None:
                    self._count_call(row.path, function, result_of(message["content"]))
        if row.detail["status"] in ENDED:
            # After a message, an ended session continues and ends again.
            self._tokens[row.path] = sum(cast("list[int]", row.detail["tokens"]))
            self._counts["sessions"] = len(self._tokens)
            self._counts["tokens"] = self._tokens.total()
            left = [key for key in self._tries if key[0] == row.path]
            self._counts["abandoned"] += len(left)
            for key in left:
                del self._tries[key]

    def _count_call(self, session: str, function: Mapping[str, str], result: Mapping[str, object]) -> None:
        tool, arguments = function["name"], json.loads(function["arguments"])
        is_ok, is_conflict = result.get("success") is True, result.get("is_conflict") is True
        counts = self._counts
        counts["calls"] += 1
        self._outcomes["ok" if is_ok else str(result.get("error") or "unknown")] += 1
        if tool in _SHARED_WRITES and (is_ok or is_conflict):
            self._count_write((session, str(arguments.get("filepath"))), is_conflict)
        counts["refused"] += not is_ok and not is_conflict
        counts["edits"] += is_ok and tool in _EDITS and arguments.get("operation") not in _LOOKS
        counts["board_versions"] += is_ok and tool in _BOARD_WRITES
        counts["handoffs_sent"] += is_ok and tool == "handoff_file"
        counts["handoffs_acknowledged"] += is_ok and tool == "acknowledge_handoff"

    def _count_write(self, place: tuple[str, str], is_conflict: bool) -> None:
        tries = self._tries[place]
        if not tries:
            self._counts["writes"] += 1
            self._counts["conflicts"] += is_conflict
        elif not is_conflict:
            self._counts["recoveries"] += 1
            self._counts["quick_recoveries"] += tries <= _QUICK
        self._tries[place] += 1
        if not is_conflict:
            del self._tries[place]
