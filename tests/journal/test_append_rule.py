"""The append rule exists in Python (`watchroom.kernel.rules.append`) and in SQL (the server's function `append`): on the
same drafts both make the same rows.

`MemoryJournal` appends by the form in Python alone, SQLite by the same form on what its one query found.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final, TypeAlias

import pytest
from effort import rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from journal.conformance import LARGE
from memory_journal import MemoryJournal
from watchroom import Json, Outcome, Zone
from watchroom.errors import HeadsMoved
from watchroom.kernel.journal import Journal, SqliteJournal
from watchroom.kernel.journal.postgres import PostgresJournal
from watchroom.model import UNCHECKED, Appended, Condition, Draft, Note, Row, Write

if TYPE_CHECKING:
    from journal.server import ReusedDatabase

pytestmark = pytest.mark.postgres

Batch: TypeAlias = tuple[list[Draft], bool]
"""Drafts, and whether all or none of them become rows."""

ACTORS: Final = ("alice", "bob", "human:eve", "outside")
PLACES: Final[tuple[tuple[Zone, str], ...]] = (
    *(("collab", path) for path in ("a", "a/b", "a/b/c", "ab", "a b", "é", "计划.md")),
    *(("private", path) for path in ("alice/a", "alice/a/b")),
    *(("settings", "a"), ("settings", "a/b")),
    *(("board", "top-layer"), ("buffer", "alice/plan"), ("file", "t1/src/a.py"), ("file", "t1/src")),
)
MAX_SEQ: Final = 30
_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
# No draft names ``current``: the server would write the name twice, and readers take the last.
_details: st.SearchStrategy[dict[str, Json] | None] = st.none() | st.dictionaries(
    st.sampled_from(("call", "by", 'a "b" \\', "é")),
    st.none() | st.integers(-3, 3) | _text | st.lists(_text, max_size=2),
    max_size=3,
)
_conditions = st.builds(
    lambda place, seq, error: Condition(place[0], place[1], seq, error),
    st.sampled_from(PLACES),
    st.integers(0, MAX_SEQ),
    st.sampled_from(("approval_outdated", "other_code")),
)
_keys = st.sampled_from(("", "", "", "k", "l", "m"))
_contents = st.none() | _text | st.sampled_from(LARGE)


@st.composite
def _writes(draw: st.DrawFn) -> Write:
    zone, path = draw(st.sampled_from(PLACES))
    return Write(
        *(draw(st.sampled_from(ACTORS)), draw(st.sampled_from(("collab_write", "revert_work"))), zone, path),
        content=draw(_contents),
        message=draw(_text),
        expected=draw(st.sampled_from((UNCHECKED, UNCHECKED, 0, 0, 1, 2, 3, 9))),
        detail=draw(_details),
        key=draw(_keys),
        conditions=tuple(draw(st.lists(_conditions, max_size=2))),
    )


@st.composite
def _notes(draw: st.DrawFn) -> Note:
    zone, path = draw(st.sampled_from(PLACES))
    outcome: Outcome = draw(st.sampled_from(("ok", "denied", "failed", "conflict")))
    content = draw(_contents)
    return Note(
        *(draw(st.sampled_from(ACTORS)), draw(st.sampled_from(("collab_read", "send_message"))), zone, path),
        outcome=outcome,
        error="" if outcome == "ok" else "refused",
        message=draw(_text),
        content=content,
        base=draw(st.none() | st.integers(-1, 3)),
        detail=draw(_details),
        key=draw(_keys),
        durable=draw(st.booleans()),
        sha256="0" * 64 if content is None and draw(st.booleans()) else None,
        size=4,
    )


_batches = st.tuples(st.lists(_writes() | _writes() | _notes(), min_size=1, max_size=5), st.booleans())


def without_time(row: Row | None) -> Row | None:
    return None if row is None else row._replace(time=0)


def append(journal: Journal, batch: Batch) -> list[Appended] | type[HeadsMoved]:
    drafts, all_or_nothing = batch
    try:
        appended = journal.append(drafts, all_or_nothing=all_or_nothing)
    except HeadsMoved:
        return HeadsMoved
    return [Appended(row._replace(time=0), without_time(head)) for row, head in appended]


@given(batches=st.lists(_batches, min_size=1, max_size=6))
@settings(max_examples=rounds(80, 2_000))
def test_the_same_drafts_become_the_same_rows_in_python_and_in_sql(
    reused_database: ReusedDatabase, tmp_path_factory: pytest.TempPathFactory, batches: list[Batch]
) -> None:
    file = tmp_path_factory.mktemp("rule") / "journal.db"
    with (
        closing(MemoryJournal()) as python,
        closing(SqliteJournal(file)) as sqlite,
        closing(PostgresJournal(reused_database.empty())) as server,
    ):
        for batch in batches:
            expected = append(python, batch)
            assert append(sqlite, batch) == expected
            assert append(server, batch) == expected
        rows = [without_time(row) for row in python.rows()]
        for journal in (sqlite, server):
            assert [without_time(row) for row in journal.rows()] == rows
            for row in python.rows():
                assert journal.content(row.seq) == python.content(row.seq)
