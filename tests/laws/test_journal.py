"""The embedded journal against a plain list of rows: whatever is appended, every question has the same answer."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from evidence import all_rows
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from watchroom import Outcome, Row, Zone
from watchroom.journal import RowFilter, SqliteJournal
from watchroom.journal.sqlite import INLINE_BYTES
from watchroom.model import UNCHECKED, Draft, Note, Write
from watchroom.validation import sha256

ACTORS: Final = ("alice", "bob", "human:eve", "outside")
TOOLS: Final = ("collab_write", "collab_read")
CHOSEN_ZONES: Final[tuple[Zone, ...]] = ("collab", "private")
PATHS: Final = ("a", "a/b", "a/b/c", "ab", "a b", "计划.md", "é", "z/y")
PREFIXES: Final = ("", "a", "a/", "a/b", "计", "none")
LARGE: Final = tuple(letter * (INLINE_BYTES + 1) for letter in "xy文")

contents = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=40),
    st.sampled_from(LARGE),
    st.just("x" * INLINE_BYTES),
)


@dataclass
class Kept:
    """A row as the model has it: what was asked for, and what must have become of it."""

    seq: int
    draft: Draft
    version: int | None
    outcome: Outcome
    error: str


class Model:
    """A list of rows, and the rules said once more in the plainest way."""

    def __init__(self) -> None:
        self.rows: list[Kept] = []

    def append(self, draft: Draft) -> None:
        seq = len(self.rows) + 1
        if isinstance(draft, Note):
            self.rows.append(Kept(seq, draft, None, draft.outcome, draft.error))
            return
        versions = self.history(draft.zone, draft.path)
        current = len(versions)
        live = bool(versions) and versions[-1].draft.content is not None
        fits = draft.expected in (UNCHECKED, current) or (draft.expected == 0 and not live)
        if not fits:
            self.rows.append(Kept(seq, draft, None, "conflict", "version_conflict"))
        elif draft.content is not None and not live and self.blocked(draft.zone, draft.path):
            self.rows.append(Kept(seq, draft, None, "failed", "path_blocked"))
        else:
            self.rows.append(Kept(seq, draft, current + 1, "ok", ""))

    def history(self, zone: Zone, path: str, until: int | None = None) -> list[Kept]:
        return [
            row
            for row in self.rows[:until]
            if row.version is not None and (row.draft.zone, row.draft.path) == (zone, path)
        ]

    def head(self, zone: Zone, path: str, until: int | None = None) -> Kept | None:
        versions = self.history(zone, path, until)
        return versions[-1] if versions else None

    def heads(self, zone: Zone, prefix: str = "", until: int | None = None) -> list[Kept]:
        found = [
            self.head(zone, path, until) for path in sorted(PATHS, key=str.encode) if path.startswith(prefix)
        ]
        return [head for head in found if head]

    def blocked(self, zone: Zone, path: str) -> bool:
        live = {head.draft.path for head in self.heads(zone) if head.draft.content is not None}
        return any(other.startswith(path + "/") or path.startswith(other + "/") for other in live)


def told(row: Row | None) -> tuple[object, ...] | None:
    """What a row says, but for its time."""
    if row is None:
        return None
    described = (
        row.seq,
        row.actor,
        row.tool,
        row.zone,
        row.path,
        row.version,
        row.base,
        row.outcome,
        row.error,
    )
    return (*described, row.message, row.sha256, row.size)


def meant(kept: Kept | None) -> tuple[object, ...] | None:
    """What the model says that the row must say."""
    if kept is None:
        return None
    draft = kept.draft
    base = draft.expected if isinstance(draft, Write) else draft.base
    described = (kept.seq, draft.actor, draft.tool, draft.zone, draft.path, kept.version, base)
    data = None if draft.content is None else draft.content.encode()
    content = (None, None) if data is None else (sha256(data), len(data))
    return (*described, kept.outcome, kept.error, draft.message, *content)


class JournalMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.model = Model()

    @initialize()
    def open(self) -> None:
        self.journal = SqliteJournal(self.folder / "journal.db")

    def teardown(self) -> None:
        assert self.journal.problems() == []
        self.journal.close()
        shutil.rmtree(self.folder)

    def append(self, drafts: list[Draft]) -> None:
        heads = []
        first = len(self.model.rows)
        for draft in drafts:
            heads.append(self.model.head(draft.zone, draft.path) if isinstance(draft, Write) else None)
            self.model.append(draft)
        appended = self.journal.append(drafts)
        assert [told(each.row) for each in appended] == [meant(kept) for kept in self.model.rows[first:]]
        assert [told(each.head) for each in appended] == [meant(head) for head in heads]

    def draft(self, data: st.DataObject) -> Draft:
        actor, tool = data.draw(st.sampled_from(ACTORS)), data.draw(st.sampled_from(TOOLS))
        zone, path = data.draw(st.sampled_from(CHOSEN_ZONES)), data.draw(st.sampled_from(PATHS))
        content = data.draw(st.none() | contents)
        message = data.draw(st.text(st.characters(codec="utf-8"), max_size=5))
        if data.draw(st.booleans()):
            outcome: Outcome = data.draw(st.sampled_from(("ok", "denied", "failed")))
            return Note(
                *(actor, tool, zone, path, outcome),
                error="" if outcome == "ok" else "refused",
                message=message,
                content=content,
                base=data.draw(st.none() | st.integers(0, 3)),
                durable=data.draw(st.booleans()),
            )
        current = len(self.model.history(zone, path))
        expected = data.draw(
            st.sampled_from((UNCHECKED, 0, current, current, max(0, current - 1), current + 1))
        )
        return Write(actor, tool, zone, path, content, message, expected)

    @rule(data=st.data())
    def append_one(self, data: st.DataObject) -> None:
        self.append([self.draft(data)])

    @rule(data=st.data(), size=st.integers(2, 5))
    def append_many(self, data: st.DataObject, size: int) -> None:
        self.append([self.draft(data) for _ in range(size)])

    @rule()
    def reopen(self) -> None:
        self.journal.close()
        self.open()

    @rule(sql=st.sampled_from(("UPDATE rows SET message = 'x'", "DELETE FROM rows")))
    def meddle_with_rows(self, sql: str) -> None:
        if self.model.rows:
            self.meddle(sql)

    @rule(sql=st.sampled_from(("UPDATE contents SET content = 'x'", "DELETE FROM contents")))
    def meddle_with_contents(self, sql: str) -> None:
        if any(row.draft.content in LARGE for row in self.model.rows):
            self.meddle(sql)

    def meddle(self, sql: str) -> None:
        connection = sqlite3.connect(self.folder / "journal.db", isolation_level=None)
        try:
            with pytest.raises(sqlite3.IntegrityError, match="immutable"):
                connection.execute(sql)
        finally:
            connection.close()

    @rule(data=st.data())
    def ask_for_a_part(self, data: st.DataObject) -> None:
        """Pages, filters and moments, which are too many to try all of them every time."""
        rows = self.model.rows
        after, until = (data.draw(st.integers(0, len(rows) + 1)) for _ in range(2))
        limit = data.draw(st.integers(1, 6))
        assert [told(row) for row in self.journal.rows(after, until=until, limit=limit)] == [
            meant(kept) for kept in rows[after:until][:limit]
        ]
        only = RowFilter(
            actor=data.draw(st.none() | st.sampled_from(ACTORS)),
            zone=data.draw(st.none() | st.sampled_from(CHOSEN_ZONES)),
            path=data.draw(st.none() | st.sampled_from(("a", "/", "计", "%"))),
            tool=data.draw(st.none() | st.sampled_from(TOOLS)),
            outcome=data.draw(st.none() | st.sampled_from(("ok", "conflict", "denied", "failed"))),
        )
        passing = [kept for kept in rows[: max(0, after - 1)] if _passes(kept, only)]
        assert [told(row) for row in self.journal.rows_before(after, limit=limit, only=only)] == [
            meant(kept) for kept in passing[::-1][:limit]
        ]
        zone, path = data.draw(st.sampled_from(CHOSEN_ZONES)), data.draw(st.sampled_from(PATHS))
        assert [told(row) for row in self.journal.history(zone, path, after_version=after, limit=limit)] == [
            meant(kept) for kept in self.model.history(zone, path)[after:][:limit]
        ]
        refused = [kept for kept in rows[: max(0, after - 1)] if _is_refused(kept, zone, path)]
        assert [told(row) for row in self.journal.refused(zone, path, before=after, limit=limit)] == [
            meant(kept) for kept in refused[::-1][:limit]
        ]
        prefix = data.draw(st.sampled_from(PREFIXES))
        assert [told(row) for row in self.journal.heads(zone, prefix, as_of=until)] == [
            meant(kept) for kept in self.model.heads(zone, prefix, until)
        ]

    @invariant()
    def every_row_is_as_it_was_meant(self) -> None:
        rows = all_rows(self.journal)
        assert [told(row) for row in rows] == [meant(kept) for kept in self.model.rows]
        assert self.journal.last_seq() == len(rows)
        times = [row.time for row in rows]
        assert times == sorted(times)
        for time in {times[0], times[-1], times[len(times) // 2]} if times else set():
            assert self.journal.seq_at(time) == max(row.seq for row in rows if row.time <= time)
        assert self.journal.seq_at(times[0] - 1 if times else 1) == 0

    @invariant()
    def every_content_is_kept_accepted_or_refused(self) -> None:
        for kept in self.model.rows:
            assert self.journal.content(kept.seq) == kept.draft.content

    @invariant()
    def every_path_has_its_head_and_its_versions_without_gaps(self) -> None:
        for zone in CHOSEN_ZONES:
            assert [told(row) for row in self.journal.heads(zone)] == [
                meant(kept) for kept in self.model.heads(zone)
            ]
            for path in PATHS:
                history = self.model.history(zone, path)
                assert [told(row) for row in self.journal.history(zone, path)] == [meant(k) for k in history]
                assert [kept.version for kept in history] == list(range(1, len(history) + 1))
                assert told(self.journal.head(zone, path)) == meant(self.model.head(zone, path))
                for number, kept in enumerate(history, start=1):
                    assert told(self.journal.version(zone, path, number)) == meant(kept)
                assert self.journal.version(zone, path, len(history) + 1) is None

    @invariant()
    def every_earlier_moment_is_as_it_was(self) -> None:
        written = {(kept.draft.zone, kept.draft.path) for kept in self.model.rows}
        for zone, path in written:
            for seq in range(len(self.model.rows) + 1):
                assert told(self.journal.head(zone, path, as_of=seq)) == meant(
                    self.model.head(zone, path, seq)
                )

    @invariant()
    def the_newest_note_is_found(self) -> None:
        for actor in ACTORS:
            for tool in TOOLS:
                notes = [
                    kept
                    for kept in self.model.rows
                    if (kept.version, kept.outcome) == (None, "ok")
                    and (kept.draft.zone, kept.draft.path) == ("collab", "a")
                    and (kept.draft.actor, kept.draft.tool) == (actor, tool)
                ]
                assert told(self.journal.last_note("collab", "a", actor, tool)) == meant(
                    notes[-1] if notes else None
                )

    @invariant()
    def large_contents_are_kept_once(self) -> None:
        connection = sqlite3.connect(self.folder / "journal.db")
        try:
            ((apart,),) = connection.execute("SELECT count(*) FROM contents").fetchall()
            ((longest,),) = connection.execute(
                "SELECT ifnull(max(length(cast(content AS blob))), 0) FROM rows"
            ).fetchall()
        finally:
            connection.close()
        assert apart == len({kept.draft.content for kept in self.model.rows} & set(LARGE))
        assert longest <= INLINE_BYTES


def _passes(kept: Kept, only: RowFilter) -> bool:
    draft = kept.draft
    return (
        only.actor in (None, draft.actor)
        and only.zone in (None, draft.zone)
        and only.tool in (None, draft.tool)
        and only.outcome in (None, kept.outcome)
        and (only.path is None or only.path in draft.path)
    )


def _is_refused(kept: Kept, zone: Zone, path: str) -> bool:
    return kept.outcome != "ok" and (kept.draft.zone, kept.draft.path) == (zone, path)


def test_the_journal_answers_as_a_plain_list_of_rows_would() -> None:
    run_state_machine_as_test(
        JournalMachine,
        settings=settings(
            max_examples=30,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
