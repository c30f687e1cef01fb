"""Sessions: which an agent has, their steps, and what the model is just saying."""

from __future__ import annotations

from typing import Final, NamedTuple

from watchroom.journal import Journal
from watchroom.model import STREAM, Row
from watchroom.queries.rows import RowText, find_content

MOST_STEPS: Final = 1000
"""So many steps are given at a time."""
MOST_PIECES: Final = 500
"""So many pieces of what a model is just saying are given at most, the newest."""


class Steps(NamedTuple):
    """Steps of a session, oldest first, each with its text; whether there are ``more`` after these; and what
    its model has said since the last step, empty where there are more."""

    steps: tuple[RowText, ...]
    more: bool
    saying: str = ""


def list_sessions(journal: Journal, agent: str, *, as_of: int) -> tuple[Row, ...]:
    """The newest step of each session of ``agent`` in ``journal`` at row ``as_of``, the session that acted
    last at the end. `watchroom.rules.details.StepDetail` says what a step tells. Raises `JournalError`."""
    heads = journal.heads("session", f"{agent}/", as_of=as_of)
    return tuple(sorted(heads, key=lambda row: row.seq))


def read_steps(
    journal: Journal, session: str, *, as_of: int, after: int = 0, limit: int = MOST_STEPS
) -> Steps:
    """At most ``limit`` steps of the session at the path ``session`` (``AGENT/ID``) in ``journal`` after the
    step with the version ``after``, up to row ``as_of``. Raises `JournalError`."""
    rows = journal.history("session", session, after_version=after, limit=limit + 1)
    known = [row for row in rows if row.seq <= as_of]
    steps = tuple(RowText(row, find_content(journal, row)) for row in known[:limit])
    more = len(known) > limit
    return Steps(steps, more, "" if more else read_stream(journal, session, as_of=as_of))


def read_stream(journal: Journal, session: str, *, as_of: int) -> str:
    """What the model of ``session`` has said since its last step before row ``as_of`` of ``journal``. Raises
    `JournalError`."""
    head = journal.head("session", session, as_of=as_of)
    agent = session.partition("/")[0]
    after = head.seq if head is not None else 0
    pieces = journal.notes("session", session, agent, STREAM, after=after, until=as_of, limit=MOST_PIECES)
    return "".join(find_content(journal, row) or "" for row in reversed(pieces))
