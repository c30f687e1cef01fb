"""The grants of people that still allow calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from watchroom.features.people.service import PeopleReader
from watchroom.features.policy.grants import ZONE, Grant, parse_grant
from watchroom.features.requests.rows import has_expired
from watchroom.kernel.journal import Journal
from watchroom.model import GRANT, USE_GRANT, Row


class GrantState(NamedTuple):
    """A grant and its uses.

    - ``row``: the row with which a person gave it.
    - ``head``: its newest version: the row itself, the last use, or the row that revoked it.
    - ``uses_left``: the number of further calls.
    """

    grant: Grant
    row: Row
    head: Row
    uses_left: int

    @property
    def last_use(self) -> Row | None:
        """The row of the last call that the grant allowed, None if it allowed none."""
        return self.head if self.head.tool == USE_GRANT else None


def list_grants(
    journal: Journal,
    people: PeopleReader,
    agent: str = "",
    is_wanted: Callable[[Grant], bool] = lambda grant: True,
) -> list[GrantState]:
    """Return the grants that still allow calls, oldest first.

    - ``people``: decides which grants count.
    - ``agent``: only grants for this agent, default all.
    - ``is_wanted``: only grants for which it returns True. Signatures of the others are not checked.

    Raise `JournalError`.
    """
    now, found = journal.now(), []
    for head in journal.heads(ZONE, f"{agent}/" if agent else ""):
        row = head if head.version == 1 else journal.version(ZONE, head.path, 1)
        if head.deleted or row is None or row.tool != GRANT:
            continue
        grant = parse_grant(journal.content(row.seq) or "")
        if grant is None or has_expired(grant.expires, now) or not is_wanted(grant):
            continue
        if (left := grant.uses + 1 - (head.version or 0)) > 0 and not people.find_flaw_now(row):
            found.append(GrantState(grant, row, head, left))
    return sorted(found, key=lambda each: each.row.seq)


def read_grants(journal: Journal) -> list[GrantState]:
    """Return the grants that still allow calls, oldest first. Raise `JournalError`."""
    return list_grants(journal, PeopleReader(journal))
