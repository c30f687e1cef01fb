"""The line of all time: bounded, however long the journal is, and exact where a person looks for something."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import pytest
from memory_journal import MemoryJournal
from watchroom.features.overview.timeline import (
    MARKER_KINDS,
    MAX_COLUMNS,
    MarkerKind,
    TimelineProjection,
    TimelineView,
    find_marker,
    find_neighbour,
    marker_kind,
)
from watchroom.kernel.journal import Journal
from watchroom.model import Draft, Note, Outcome, Row, Write

SECOND = 1_000_000_000


def row(seq: int, time: int, outcome: str = "ok") -> Row:
    said = cast("Outcome", outcome)
    return Row(seq, time, "alice", "collab_read", "collab", "a", None, 0, said, "", "", None, None, "")


def view(rows: Sequence[Row]) -> TimelineView:
    timeline = TimelineProjection()
    for each in rows:
        timeline.apply(each)
    return timeline.current()


@pytest.mark.parametrize("seed", range(5))
def test_columns_are_bounded_and_count_every_row_and_marker_whatever_the_gaps(seed: int) -> None:
    chance = random.Random(seed)
    rows, time = [], 10 * SECOND
    for seq in range(1, 3000):
        time += int(chance.choice((0, 1e5, 1e7, 1e9, 5e12)) * chance.random())
        rows.append(row(seq, time, chance.choice(("ok", "ok", "conflict", "failed"))))
        if seq % 500 in (0, 1, 2):
            columns = view(rows).columns
            assert len(columns) <= MAX_COLUMNS
            assert sum(each.rows for each in columns) == seq
            counts = dict(zip(MARKER_KINDS, map(sum, zip(*(each.markers for each in columns), strict=True))))  # noqa: B905
            assert counts["conflict"] == sum(each.outcome == "conflict" for each in rows)
            assert counts["failure"] == sum(each.outcome == "failed" for each in rows)
            for each, following in pairwise(columns):
                assert each.first + each.rows == following.first


def test_a_night_takes_no_more_space_than_two_seconds() -> None:
    evening = [row(n, n * SECOND // 10) for n in range(1, 101)]
    day = [row(n, 12 * 3600 * SECOND + n * SECOND // 10) for n in range(101, 201)]
    timeline = view([*evening, *day])
    assert 0.4 < timeline.position_of(100) < 0.5
    assert 0.5 < timeline.position_of(101) < 0.6


def test_a_row_is_found_again_where_it_lies() -> None:
    rows = [row(n, n * SECOND) for n in range(1, 1001)]
    timeline = view(rows)
    positions = [timeline.position_of(each.seq) for each in rows]
    assert positions == sorted(positions)
    for seq, position in enumerate(positions, 1):
        assert abs(timeline.row_at(position) - seq) <= 1
    assert timeline.row_at(1.0) == 1000
    assert timeline.row_at(0.0) == 1
    assert TimelineView().row_at(0.5) == 0


def test_what_a_marker_is() -> None:
    journal = MemoryJournal()
    drafts: list[tuple[MarkerKind | None, Draft]] = [
        (None, Write("alice", "collab_write", "collab", "a", "x")),
        ("conflict", Write("bob", "collab_write", "collab", "a", "x", expected=0)),
        ("failure", Note("bob", "save_to_my_workspace", "private", "../x", "denied", "invalid_path")),
        (None, Note("human:eve", "collab_read", "collab", "a")),
        ("person", Write("human:eve", "collab_write", "collab", "a", "y")),
        ("request", Write("alice", "ask_person", "request", "alice/s/r", "?")),
        ("person", Note("human:eve", "mark_as_seen", "workspace", "")),
        ("task", Write("human:eve", "begin_task", "task", "t", "x")),
        ("revert", Write("human:eve", "revert_work", "revert", "r", "x")),
        (None, Write("human:eve", "revert_work", "revert", "r", "y")),
        (None, Write("alice", "step", "session", "alice/s", "x", detail={"status": "running"})),
        ("failure", Write("alice", "step", "session", "alice/s", "x", detail={"status": "error"})),
    ]
    journal.append([draft for _, draft in drafts])
    assert [marker_kind(each) for each in journal.rows()] == [kind for kind, _ in drafts]


def timeline_of(journal: Journal) -> TimelineView:
    return view(journal.rows(limit=10_000))


@pytest.mark.parametrize("gaps", [0, 3])
def test_the_next_marker_is_found_from_any_row_in_both_directions(gaps: int) -> None:
    chance, journal = random.Random(1), MemoryJournal(gaps)
    for _ in range(300):
        outcome: Outcome = "failed" if chance.random() < 0.04 else "ok"
        journal.append([Note("alice", "collab_read", "collab", "a", outcome)])
    rows = journal.rows(limit=10_000)
    seqs = [each.seq for each in rows]
    marked = [each.seq for each in rows if each.outcome == "failed"]
    timeline = timeline_of(journal)
    for seq in seqs:
        assert find_marker(journal, timeline, seq, 1) == min((n for n in marked if n > seq), default=None)
        assert find_marker(journal, timeline, seq, -1) == max((n for n in marked if n < seq), default=None)
        assert find_neighbour(journal, seq, 1) == min((n for n in seqs if n > seq), default=None)
        assert find_neighbour(journal, seq, -1) == max((n for n in seqs if n < seq), default=None)
