"""The rows of handoffs: deliveries, reads, acknowledgements, and the form of their paths. Pure."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.model import OUTSIDE, Row, Zone

HANDOFF_ZONE: Final[Zone] = "handoff"
HandoffNeed: TypeAlias = Literal["handoff"]
HANDOFF_NEED: Final[HandoffNeed] = "handoff"
"""The kind of the need that a handoff opens for people (`watchroom.features.needs.rules`)."""
READ_TOOL: Final = "read_handoff"
ACKNOWLEDGE_TOOL: Final = "acknowledge_handoff"


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
