"""The rows of handoffs: deliveries, reads, acknowledgements, and the form of their paths. Pure."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.kernel.rules.details import get_text
from watchroom.model import OUTSIDE, Json, Row, Zone

HANDOFF_ZONE: Final[Zone] = "handoff"
AGENT_ZONE: Final[Zone] = "agent"
"""The zone of the notes that work is handed over."""
HandoffNeed: TypeAlias = Literal["handoff"]
HANDOFF_NEED: Final[HandoffNeed] = "handoff"
"""The kind of the need that a handoff opens for people (`watchroom.features.needs.rules`)."""
READ_TOOL: Final = "read_handoff"
ACKNOWLEDGE_TOOL: Final = "acknowledge_handoff"
HAND_OVER: Final = "hand_over_work"
"""The tool of the note that a person handed an agent's work over to another agent. Its path is the agent, and
its content is the briefing. See `hand_over_of`."""
BRIEFING_FILE: Final = "briefing.md"
"""The name of the handoff with a briefing."""
_RECEIVER: Final = "to"


class Delivery(NamedTuple):
    """A handoff and its progress.

    - ``row``: its newest delivery.
    - ``acknowledged``: the row with which the receiver acknowledged that delivery.
    """

    row: Row
    sender: str
    receiver: str
    filename: str
    read: bool = False
    acknowledged: Row | None = None

    @classmethod
    def from_row(cls, row: Row) -> Delivery:
        """Return the handoff delivered by ``row``, which its receiver has not read yet."""
        return cls(row, *split_handoff(row.path))

    def advance(self, note: Row) -> Delivery:
        """Return the handoff after ``note``, a later row of its path; the same object if nothing changed.
        Notes about an older delivery change nothing."""
        if note.actor != self.receiver or note.outcome != "ok":
            return self
        if acknowledges(note, self.row):
            return self._replace(acknowledged=note, read=True)
        return self._replace(read=True) if note.tool == READ_TOOL and _is_about(note, self.row) else self


def hand_over_detail(receiver: str) -> dict[str, Json]:
    """Return the detail of the note that an agent's work was handed over to ``receiver``."""
    return {_RECEIVER: receiver}


def hand_over_of(row: Row) -> str:
    """Return the agent to which ``row`` hands the work of the agent at its path over; empty for any other
    row."""
    is_hand_over = row.tool == HAND_OVER and row.zone == AGENT_ZONE and row.version is None
    return get_text(row.detail, _RECEIVER) if is_hand_over and row.outcome == "ok" else ""


def delivers(row: Row) -> bool:
    """Return whether ``row`` delivers a handoff. An external edit of the file does not."""
    return row.zone == HANDOFF_ZONE and row.version is not None and row.actor != OUTSIDE


def acknowledges(note: Row, delivery: Row) -> bool:
    """Return whether ``note`` acknowledges ``delivery``, a row of the same path."""
    return note.tool == ACKNOWLEDGE_TOOL and note.outcome == "ok" and _is_about(note, delivery)


def _is_about(note: Row, delivery: Row) -> bool:
    return note.base is not None and note.base >= (delivery.version or 0)


def handoff_path(sender: str, receiver: str, filename: str = "") -> str:
    """Return the path of the handoff of ``filename`` from ``sender`` to ``receiver``."""
    return f"{sender}_to_{receiver}/{filename}"


def split_handoff(path: str) -> tuple[str, str, str]:
    """Return the sender, the receiver and the file name in a handoff's ``path``. Agent ids never contain
    ``_to_``."""
    pair, _, filename = path.partition("/")
    sender, _, receiver = pair.partition("_to_")
    return sender, receiver, filename
