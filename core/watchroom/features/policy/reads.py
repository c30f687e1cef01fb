"""The grants of people that still allow calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import nlargest
from typing import Final, NamedTuple

from watchroom.features.people.service import PeopleReader
from watchroom.features.policy.grants import ZONE, Grant, parse_grant
from watchroom.features.requests.rows import has_expired
from watchroom.kernel.journal import Journal
from watchroom.model import GRANT, USE_GRANT, Row

MAX_GRANTS: Final = 200
"""Maximum number of an agent's grants that are read for a call: the grants with the newest versions,
including ended grants. Older grants do not count, so people are asked again. Without this limit, forged rows
would slow each call."""


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
) -> Iterator[GrantState]:
    """Yield the grants that still allow calls, oldest first.

    - ``people``: decides which grants count.
    - ``agent``: only grants for this agent, default all.
    - ``is_wanted``: only grants for which it returns True. Signatures of the others are not checked.

    Of each agent only the newest paths are read, see `MAX_GRANTS`. Raise `JournalError`.
    """
    now, found = journal.now(), []
    for head in list_newest(journal, agent):
        if head.deleted:
            continue
        row = head if head.version == 1 else journal.version(ZONE, head.path, 1)
        grant = None if row is None or not _is_made(row) else parse_grant(journal.content(row.seq) or "")
        if row is None or grant is None or has_expired(grant.expires, now) or not is_wanted(grant):
            continue
        if (left := grant.uses + 1 - (head.version or 0)) > 0:
            found.append(GrantState(grant, row, head, left))
    found.sort(key=lambda each: each.row.seq)
    yield from (each for each in found if not people.find_flaw_now(each.row))


def list_newest(journal: Journal, agent: str = "") -> Iterator[Row]:
    """Yield the newest version of each of the newest paths of each agent, see `MAX_GRANTS`. Paths whose
    newest version can only be forged are left out.

    ``agent``: only paths of this agent, default all. Raise `JournalError`.
    """
    heads: dict[str, list[Row]] = {}
    for head in journal.heads(ZONE, f"{agent}/" if agent else ""):
        if head.deleted or (_is_made(head) if head.version == 1 else _is_use(head)):
            heads.setdefault(head.path.partition("/")[0], []).append(head)
    for each in heads.values():
        yield from nlargest(MAX_GRANTS, each, key=lambda head: head.seq)


def _is_made(row: Row) -> bool:
    return row.tool == GRANT and row.kind == "human"


def _is_use(row: Row) -> bool:
    return row.tool == USE_GRANT and row.kind == "system"


def read_grants(journal: Journal) -> list[GrantState]:
    """Return the grants that still allow calls, oldest first. Raise `JournalError`."""
    return [*list_grants(journal, PeopleReader(journal))]
