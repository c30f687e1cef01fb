"""The newest check of an agent, in the dashboard's model. Pure."""

from __future__ import annotations

from typing import NamedTuple

from watchroom.features.checks.rows import CheckBegin, CheckEnd, read_begin, read_end
from watchroom.features.sessions.rows import presence_of
from watchroom.model import BEGIN_CHECK, Row


class CheckView(NamedTuple):
    """The newest check of an agent.

    - ``begun``: the row of its start.
    - ``ended``: the row of its end, None while it runs.
    - ``accepted``: the row in which a person accepted the work although the check did not pass.
    - ``is_lost``: the process that ran it is no longer alive.
    """

    begun: Row | None
    ended: Row | None = None
    accepted: Row | None = None
    is_lost: bool = False

    @property
    def begin(self) -> CheckBegin | None:
        """The record of its start, None if the row is missing."""
        return read_begin(self.begun) if self.begun is not None else None

    @property
    def end(self) -> CheckEnd | None:
        """How it ended; None while it runs, and if its process is lost."""
        return read_end(self.ended) if self.ended is not None else None

    @property
    def is_running(self) -> bool:
        """Whether it still runs, as far as is known."""
        return self.ended is None and not self.is_lost

    @property
    def is_unproven(self) -> bool:
        """Whether a person has to decide."""
        end = self.end
        return end is not None and end.sequel == "unproven" and self.accepted is None


def apply_check(known: CheckView | None, row: Row) -> CheckView:
    """Return the newest check after ``row``, a note about a check (`is_check`)."""
    if row.tool == BEGIN_CHECK:
        return CheckView(row)
    begun = known.begun if known is not None else None
    return CheckView(begun if begun is not None and begun.seq == read_end(row).begun else None, row)


def lose_check(known: CheckView | None, presence: str) -> CheckView | None:
    """Return the newest check after the process with the lease ``presence`` was lost."""
    if known is None or not known.is_running or known.begun is None or presence_of(known.begun) != presence:
        return known
    return known._replace(is_lost=True)
