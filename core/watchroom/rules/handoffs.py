"""Handoffs: where each lies, and what reads or acknowledges one. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from watchroom.model import OUTSIDE, Row

READ_TOOL: Final = "read_handoff"
ACKNOWLEDGE_TOOL: Final = "acknowledge_handoff"


class Delivery(NamedTuple):
    """A handoff and how far it got. ``row`` is its newest delivery, ``acknowledged`` the row by which its
    receiver confirmed that one."""

    row: Row
    sender: str
    receiver: str
    filename: str
    read: bool = False
    acknowledged: Row | None = None

    @classmethod
    def from_row(cls, row: Row) -> Delivery:
        """The handoff that ``row`` delivers, as nobody has seen it yet."""
        return cls(row, *split_handoff(row.path))

    def advance(self, note: Row) -> Delivery:
        """The handoff after ``note``, a later row of its path: itself where that changes nothing. An older
        delivery that was read or acknowledged says nothing about a newer one."""
        if note.actor != self.receiver or note.outcome != "ok":
            return self
        if acknowledges(note, self.row):
            return self._replace(acknowledged=note, read=True)
        return self._replace(read=True) if note.tool == READ_TOOL and _is_about(note, self.row) else self


def delivers(row: Row) -> bool:
    """Whether ``row`` delivers something: an edit made by hand to a delivery's file does not."""
    return row.zone == "handoff" and row.version is not None and row.actor != OUTSIDE


def acknowledges(note: Row, delivery: Row) -> bool:
    """Whether ``note`` confirms ``delivery``, a row of the same path."""
    return note.tool == ACKNOWLEDGE_TOOL and note.outcome == "ok" and _is_about(note, delivery)


def _is_about(note: Row, delivery: Row) -> bool:
    return note.base is not None and note.base >= (delivery.version or 0)


def handoff_path(sender: str, receiver: str, filename: str = "") -> str:
    """The path of what ``sender`` hands to ``receiver`` as ``filename``, in the zone ``handoff``."""
    return f"{sender}_to_{receiver}/{filename}"


def split_handoff(path: str) -> tuple[str, str, str]:
    """Sender, receiver and file name of a handoff's ``path``. Agent ids never hold ``_to_``."""
    pair, _, filename = path.partition("/")
    sender, _, receiver = pair.partition("_to_")
    return sender, receiver, filename
