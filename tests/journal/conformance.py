"""What every journal has to do: against a plain list of rows, whatever is appended, every question has the same
answer; and the laws of what lies between rows: keys, conditions, waking, exclusion, the clock, presence.

A backend conforms if `run_against_the_model` and `Conformance` pass for it: see `test_sqlite.py`."""

from __future__ import annotations

import inspect
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias

import pytest
from evidence import all_rows
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from journal.sample import OF_EVERY_KIND, OPEN, TOPICS
from watchroom import Outcome, Row, Zone
from watchroom.errors import HeadsMoved
from watchroom.kernel.journal import Journal, NoteKey, RowFilter, Snapshot
from watchroom.kernel.journal.edits import edits, last_revert
from watchroom.kernel.journal.side_stores import MAX_SNAPSHOTS
from watchroom.kernel.journal.sqlite import INLINE_BYTES
from watchroom.kernel.journal.topics import SETTLED
from watchroom.model import CLIENT_CALL, CLIENT_DENIED, UNCHECKED, Condition, Draft, Note, Write
from watchroom.validation import sha256

PATIENCE: Final = 20.0
ACTORS: Final = ("alice", "bob", "human:eve", "outside")
TOOLS: Final = ("collab_write", "collab_read")
CHOSEN_ZONES: Final[tuple[Zone, ...]] = ("collab", "settings")
PATHS: Final = ("a", "a/b", "a/b/c", "ab", "a b", "计划.md", "é", "z/y")
PREFIXES: Final = ("", "a", "a/", "a/b", "计", "none")
LARGE: Final = tuple(letter * (INLINE_BYTES + 1) for letter in "xy文")

# The zones take no NUL, and a server refuses it.
contents = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40),
    st.sampled_from(LARGE),
    st.just("x" * INLINE_BYTES),
)


Open: TypeAlias = Callable[[Path], Journal]
"""Opens the journal in a folder; the same one again, where it is durable."""


@dataclass
class Kept:
    """A row as the model has it: requirement, and what must have become of it."""

    seq: int
    draft: Draft
    version: int | None
    outcome: Outcome
    error: str


class Model:
    """A list of rows, and the rules said once more in the plainest way."""

    def __init__(self) -> None:
        self.rows: list[Kept] = []

    def append(self, draft: Draft, seq: int) -> None:
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

    @property
    def last(self) -> int:
        return self.rows[-1].seq if self.rows else 0

    def between(self, after: int, until: int) -> list[Kept]:
        return [kept for kept in self.rows if after < kept.seq <= until]

    def history(self, zone: Zone, path: str, until: int | None = None) -> list[Kept]:
        return [
            row
            for row in self.rows
            if (until is None or row.seq <= until)
            and row.version is not None
            and (row.draft.zone, row.draft.path) == (zone, path)
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
    open_journal: Open
    is_durable: bool

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.model = Model()

    @initialize()
    def open(self) -> None:
        self.journal = type(self).open_journal(self.folder)

    def teardown(self) -> None:
        assert self.journal.problems() == []
        self.journal.close()
        shutil.rmtree(self.folder)

    def append(self, drafts: list[Draft]) -> None:
        heads = []
        appended = self.journal.append(drafts)
        before = self.model.last
        for draft, each in zip(drafts, appended, strict=True):
            assert each.row.seq > self.model.last
            heads.append(self.model.head(draft.zone, draft.path) if isinstance(draft, Write) else None)
            self.model.append(draft, each.row.seq)
        new = [kept for kept in self.model.rows if kept.seq > before]
        assert [told(each.row) for each in appended] == [meant(kept) for kept in new]
        assert [told(each.head) for each in appended] == [meant(head) for head in heads]

    def draft(self, data: st.DataObject) -> Draft:
        actor, tool = data.draw(st.sampled_from(ACTORS)), data.draw(st.sampled_from(TOOLS))
        zone, path = data.draw(st.sampled_from(CHOSEN_ZONES)), data.draw(st.sampled_from(PATHS))
        content = data.draw(st.none() | contents)
        # Not every journal keeps NUL, and no draft comes with one: commits leave it out of messages.
        message = data.draw(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5))
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
        if self.is_durable:
            self.journal.close()
            self.open()

    @rule(data=st.data())
    def ask_for_a_part(self, data: st.DataObject) -> None:
        """Pages, filters and moments, which are too many to try all of them every time."""
        rows = self.model.rows
        after, until = (data.draw(st.integers(0, self.model.last + 1)) for _ in range(2))
        limit = data.draw(st.integers(1, 6))
        assert [told(row) for row in self.journal.rows(after, until=until, limit=limit)] == [
            meant(kept) for kept in self.model.between(after, until)[:limit]
        ]
        only = RowFilter(
            actor=data.draw(st.none() | st.sampled_from(ACTORS)),
            zone=data.draw(st.none() | st.sampled_from(CHOSEN_ZONES)),
            path=data.draw(st.none() | st.sampled_from(("a", "/", "计", "%"))),
            tool=data.draw(st.none() | st.sampled_from(TOOLS)),
            outcome=data.draw(st.none() | st.sampled_from(("ok", "conflict", "denied", "failed"))),
        )
        passing = [kept for kept in rows if kept.seq < after and _passes(kept, only)]
        assert [told(row) for row in self.journal.rows_before(after, limit=limit, only=only)] == [
            meant(kept) for kept in passing[::-1][:limit]
        ]
        zone, path = data.draw(st.sampled_from(CHOSEN_ZONES)), data.draw(st.sampled_from(PATHS))
        assert [told(row) for row in self.journal.history(zone, path, after_version=after, limit=limit)] == [
            meant(kept) for kept in self.model.history(zone, path)[after:][:limit]
        ]
        refused = [kept for kept in rows if kept.seq < after and _is_refused(kept, zone, path)]
        assert [told(row) for row in self.journal.refused(zone, path, before=after, limit=limit)] == [
            meant(kept) for kept in refused[::-1][:limit]
        ]
        prefix = data.draw(st.sampled_from(PREFIXES))
        assert [told(row) for row in self.journal.heads(zone, prefix, as_of=until)] == [
            meant(kept) for kept in self.model.heads(zone, prefix, until)
        ]

    @rule(data=st.data())
    def ask_what_changed_between(self, data: st.DataObject) -> None:
        after, until = (data.draw(st.integers(0, self.model.last + 1)) for _ in range(2))
        zones = data.draw(st.none() | st.sets(st.sampled_from(CHOSEN_ZONES)))
        made = [kept for kept in self.model.between(after, until) if kept.version is not None]
        expected = []
        for zone, path in sorted({(kept.draft.zone, kept.draft.path) for kept in made}, key=_in_bytes):
            of_path = [kept for kept in made if (kept.draft.zone, kept.draft.path) == (zone, path)]
            counts = Counter(kept.draft.actor for kept in of_path)
            if zones is None or zone in zones:
                newest = of_path[-1]
                expected.append(
                    (zone, path, of_path[0].version, newest.version, newest.seq, tuple(counts.items()))
                )
        found = self.journal.changed_paths(after, until, zones=None if zones is None else sorted(zones))
        assert found == expected
        for each in found:
            head = self.model.head(each.zone, each.path, after)
            assert each.before == (head.version if head else 0)
            assert each.versions == each.last - each.before

    @invariant()
    def every_row_is_as_it_was_meant(self) -> None:
        rows = all_rows(self.journal)
        assert [told(row) for row in rows] == [meant(kept) for kept in self.model.rows]
        assert self.journal.last_seq() == self.model.last
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
            for seq in (0, *(kept.seq for kept in self.model.rows)):
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

    @rule()
    def questions_in_a_batch_have_the_same_answers(self) -> None:
        places = [(zone, path) for zone in CHOSEN_ZONES for path in (*PATHS, "none")]
        heads = self.journal.heads_of(places)
        assert heads == [self.journal.head(zone, path) for zone, path in places]
        assert self.journal.heads_with_content(places) == [
            head and (head, self.journal.content(head.seq)) for head in heads
        ]
        keys: list[NoteKey] = [
            ("collab", path, actor, tool) for path in ("a", "ab") for actor in ACTORS for tool in TOOLS
        ]
        notes = [self.journal.last_note(*key) for key in keys]
        assert self.journal.last_notes(keys) == notes
        assert self.journal.heads_and_notes(places, keys) == (heads, notes)
        assert self.journal.heads_and_notes(places[-1:], ()) == (heads[-1:], [])
        assert self.journal.heads_and_notes((), keys[:1]) == ([], notes[:1])
        for kept in self.model.rows:
            assert told(self.journal.row(kept.seq)) == meant(kept)
        assert self.journal.row(self.model.last + 1) is None


def _in_bytes(place: tuple[Zone, str]) -> tuple[Zone, bytes]:
    zone, path = place
    return zone, path.encode()


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


def run_against_the_model(
    open_journal: Open, machine: type[JournalMachine], *, is_durable: bool, examples: int
) -> None:
    """Have hypothesis look for a question that the journal answers otherwise than a list of rows would."""
    made = type("Machine", (machine,), {"open_journal": staticmethod(open_journal), "is_durable": is_durable})
    run_state_machine_as_test(
        made,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


class Conformance:
    """The laws that no list of rows shows. A backend's tests give the fixture ``journal``, an empty one."""

    def test_a_draft_with_a_key_makes_one_row(self, journal: Journal) -> None:
        first = Write("alice", "t", "collab", "a", "one", expected=0, key="k")
        (made,) = journal.append([first])
        journal.append([Write("bob", "t", "collab", "a", "two")])
        assert journal.append([first, first]) == [made, made]
        assert journal.append([Write("alice", "t", "collab", "b", "other", key="k")]) == [made]
        (stale,) = journal.append([first._replace(key="l")])
        assert journal.append([first._replace(key="l")]) == [stale]
        assert stale.row.outcome == "conflict"
        (theirs,) = journal.append([first._replace(actor="bob")])
        assert theirs.row.seq > stale.row.seq
        note = Note("alice", "t", "collab", "a", key="n")
        noted = journal.append([note, note, Write("alice", "t", "collab", "c", "x")])
        assert noted[0] == noted[1]
        assert [row.seq for row in journal.rows(theirs.row.seq)] == [noted[0].row.seq, noted[2].row.seq]

    def test_a_write_whose_condition_does_not_hold_is_a_failed_row(self, journal: Journal) -> None:
        (head,) = journal.append([Write("alice", "t", "collab", "a", "one")])
        holds = Condition("collab", "a", head.row.seq)
        never = Condition("collab", "a", -1, "other_code")
        none_yet = Condition("collab", "none", 0)

        def attempt(*conditions: Condition, expected: int = UNCHECKED) -> tuple[str, str]:
            draft = Write("bob", "t", "collab", "b", "x", expected=expected, conditions=conditions)
            ((row, _),) = journal.append([draft])
            assert journal.content(row.seq) == "x"
            return row.outcome, row.error

        assert attempt(holds, none_yet) == ("ok", "")
        assert attempt(holds, never) == ("failed", "other_code")
        assert attempt(never, expected=7) == ("conflict", "version_conflict")
        journal.append([Write("alice", "t", "collab", "a", "two")])
        assert attempt(holds) == ("failed", "approval_outdated")
        # Of a batch each draft is decided with what those before it did.
        batch = journal.append(
            [
                Write("alice", "t", "collab", "none", "now it is there"),
                Write("bob", "t", "collab", "c", "x", conditions=(none_yet,)),
            ]
        )
        assert [each.row.outcome for each in batch] == ["ok", "failed"]

    def test_all_become_rows_or_none_where_that_is_asked_for(self, journal: Journal) -> None:
        journal.append([Write("alice", "t", "collab", "a.md", "1", expected=0)])
        good = Write("human:ann", "t", "collab", "b.md", "x", expected=0)
        stale = Write("human:ann", "t", "collab", "a.md", "y", expected=0)
        with pytest.raises(HeadsMoved):
            journal.append([good, stale, good._replace(path="c.md")], all_or_nothing=True)
        with pytest.raises(HeadsMoved):
            journal.append([stale], all_or_nothing=True)
        assert [row.path for row in journal.rows()] == ["a.md"]
        assert journal.head("collab", "b.md") is None
        (made, note) = journal.append([good, Note("human:ann", "t", "collab", "a.md")], all_or_nothing=True)
        assert journal.rows()[1:] == [made.row, note.row]
        assert journal.content(made.row.seq) == "x"

    def test_folders_and_files_of_one_batch_block_each_other(self, journal: Journal) -> None:
        def outcomes(*drafts: Draft) -> list[str]:
            return [each.row.error for each in journal.append(drafts)]

        def write(path: str, content: str | None = "x") -> Write:
            return Write("alice", "t", "collab", path, content)

        assert outcomes(write("a"), write("a/b")) == ["", "path_blocked"]
        assert outcomes(write("d/e"), write("d")) == ["", "path_blocked"]
        assert outcomes(write("a", None), write("a/b"), write("a")) == ["", "", "path_blocked"]
        assert outcomes(write("d/e", None), write("d")) == ["", ""]

    def test_a_blocked_row_is_found_by_its_call(self, journal: Journal) -> None:
        journal.append([Write("alice", "t", "collab", "a", "x")])
        detail = {"call": "c1", "more": "x"}
        (made,) = journal.append([Write("alice", "t", "collab", "a/b", "x", detail=detail)])
        assert dict(made.row.detail) == {**detail, "by": "a"}, made.row.detail
        assert journal.rows_of_call("alice", "c1") == [made.row]

    def test_who_waits_is_woken_by_an_append(self, journal: Journal) -> None:
        with closing(journal.changes()) as changes, ThreadPoolExecutor() as threads:
            woken = threads.submit(changes.wait, PATIENCE)
            began = monotonic()
            journal.append([Note("alice", "t", "collab", "a")])
            woken.result(PATIENCE)
            assert monotonic() - began < PATIENCE / 2
        with closing(journal.changes(after=0)) as behind:
            behind.wait(PATIENCE)
            assert monotonic() - began < PATIENCE / 2
        with closing(journal.changes(after=journal.last_seq())) as current:
            current.wait(0.01)
            current.wake()
            current.wait(PATIENCE)
            assert monotonic() - began < PATIENCE / 2
            current.close()
            current.wake()

    def test_one_at_a_time_is_within_an_exclusive_section_of_a_key(self, journal: Journal) -> None:
        within = 0
        most = 0

        def count(_: int) -> None:
            nonlocal within, most
            with journal.exclusive("a"), journal.exclusive("b"):
                within += 1
                most = max(most, within)
                # Appends of others, and of the holder, go on.
                journal.append([Note("alice", "t", "collab", "a", durable=False)])
                within -= 1

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(count, range(40)))
        assert (most, within) == (1, 0)
        with pytest.raises(RuntimeError, match="left"), journal.exclusive("a"):
            raise RuntimeError("left")
        with journal.exclusive("a"):
            pass

    def test_a_claim_is_refused_while_another_one_holds_it(self, journal: Journal) -> None:
        assert not journal.is_claimed("task/1")
        with journal.claim("task/1") as is_first, ThreadPoolExecutor() as threads:
            assert is_first
            assert journal.is_claimed("task/1")

            def claim_again() -> bool:
                with journal.claim("task/1") as is_second:
                    return is_second

            assert not threads.submit(claim_again).result(PATIENCE)
            assert journal.is_claimed("task/1")
            with journal.claim("task/2") as is_other, journal.exclusive("task/1"):
                assert is_other
        assert not journal.is_claimed("task/1")
        with journal.claim("task/1") as is_first:
            assert is_first

    def test_the_clock_is_never_behind_the_newest_row(self, journal: Journal) -> None:
        for _ in range(5):
            before = journal.now()
            ((row, _),) = journal.append([Note("alice", "t", "collab", "a", durable=False)])
            assert before <= row.time <= journal.now()

    def test_a_process_is_present_until_its_journal_is_closed(self, journal: Journal) -> None:
        assert journal.presence.all() == []
        lease = journal.presence.hold("go on")
        assert journal.presence.hold() == lease
        assert [(each.id, each.is_alive, each.resume) for each in journal.presence.all()] == [
            (lease, True, "go on")
        ]
        journal.presence.forget(lease)
        assert [each.id for each in journal.presence.all()] == [lease]

    def test_rows_are_found_by_topic_call_and_what_is_open(self, journal: Journal) -> None:
        journal.append(OF_EVERY_KIND)
        assert {name: [row.tool for row in journal.topic(name)] for name in TOPICS} == TOPICS
        edited = [name for name, tools in TOPICS.items() if tools and name.startswith("outside:")]
        newest = [journal.topic(name, limit=1)[0] for name in edited]
        assert journal.newest_of_topics("outside:") == sorted(newest, key=lambda row: row.seq)
        assert journal.newest_of_topics("outsid") == journal.newest_of_topics("outside:")
        assert journal.newest_of_topics("outside:;") == []
        for (zone, holder), paths in OPEN.items():
            items = journal.open_items(zone, holder)
            assert [row.path for row in items] == paths
            assert items == [journal.head(zone, path) for path in paths]
        assert journal.open_items("handoff", "alice") == []
        assert [row.zone for row in journal.rows_of_call("alice", "s1/1/0")] == ["agent"]
        assert [row.zone for row in journal.rows_of_call("alice", "s1/2/0")] == ["collab"]
        assert journal.rows_of_call("alice", "5") == journal.rows_of_call("bob", "s1/1/0") == []
        (settled,) = journal.settled("collab", "plan.md")
        assert settled.tool == "dismiss_conflict"

    def test_no_row_holds_nul_and_what_is_asked_for_with_it_is_not_there(self, journal: Journal) -> None:
        (made,) = journal.append(
            [Write("alice", "t", "collab", "a", "x", detail={"a\0": ["\0", r"\u0000", 1]})]
        )
        assert made.row.detail == {"a\ufffd": ["\ufffd", r"\u0000", 1]}
        assert journal.row(made.row.seq) == made.row
        assert journal.head("collab", "a\0") is None
        assert journal.heads_of([("collab", "\0"), ("collab", "a")]) == [None, made.row]
        assert journal.last_notes([("collab", "a", "alice\0", "t")]) == [None]
        assert list(journal.heads("collab", "\0")) == journal.settled("collab", "\0") == []
        assert journal.rows_before(made.row.seq + 1, only=RowFilter(path="\0")) == []

    def test_bounds_leave_out_what_is_before_and_behind_them(self, journal: Journal) -> None:
        # Bounds that are not given are the protocol's.
        for name, method in vars(Journal).items():
            if inspect.isfunction(method) and not name.startswith("_"):
                asked, answered = inspect.signature(method), inspect.signature(getattr(type(journal), name))
                assert [(each.name, each.kind, each.default) for each in asked.parameters.values()] == [
                    (each.name, each.kind, each.default) for each in answered.parameters.values()
                ], name

        def version(actor: str, path: str = "a", zone: Zone = "collab") -> Draft:
            return Write(actor, "t", zone, path, f"by {actor}")

        made = [
            version("bob"),
            version("alice"),
            version("bob"),
            version("alice", "A", "settings"),
            *[Note("alice", "t", "collab", "a")] * 3,
            *[Note("alice", "t", "collab", "a", "denied", "refused")] * 3,
            *[Note("human:dana", "dismiss_conflict", "collab", "a")] * 3,
        ]
        rows = [each.row for each in journal.append(made)]
        seqs = [row.seq for row in rows]
        before, last = seqs[0] - 1, seqs[-1]
        settings = ("settings", "A", 1, 1, seqs[3], (("alice", 1),))
        assert journal.changed_paths(before, last) == [
            ("collab", "a", 1, 3, seqs[2], (("bob", 2), ("alice", 1))),
            settings,
        ]
        assert journal.changed_paths(seqs[0], seqs[2], zones=["settings", "collab"]) == [
            ("collab", "a", 2, 3, seqs[2], (("alice", 1), ("bob", 1)))
        ]
        assert journal.changed_paths(before, last, zones=["settings"]) == [settings]
        assert journal.changed_paths(seqs[3], last) == journal.changed_paths(before, last, zones=[]) == []

        def versions(after: int, until: int | None, limit: int) -> list[int | None]:
            found = journal.versions("collab", "a", after=after, until=until, limit=limit)
            assert [content for _, content in found] == [f"by {row.actor}" for row, _ in found]
            return [row.version for row, _ in found]

        assert [
            versions(*each) for each in ((0, None, 9), (1, 2, 9), (0, None, 2), (-1, 1, 9), (3, 9, 9))
        ] == [
            [1, 2, 3],
            [2],
            [1, 2],
            [1],
            [],
        ]
        assert journal.history("collab", "a", after_version=-1) == rows[:3]
        assert journal.history("collab", "a", after_version=1, limit=1) == rows[1:2]
        assert [journal.version("collab", "a", number) for number in (1, 2, 3)] == rows[:3]
        assert journal.version("collab", "a", 0) is journal.version("collab", "a", 4) is None
        oldest, middle, newest = rows[4:7]
        of_note: NoteKey = ("collab", "a", "alice", "t")
        assert journal.notes(*of_note) == [newest, middle, oldest]
        assert journal.notes(*of_note, after=oldest.seq, until=middle.seq) == [middle]
        assert journal.notes(*of_note, limit=2) == [newest, middle]
        assert journal.last_note(*of_note) == newest
        oldest, middle, newest = rows[7:10]
        assert journal.refused("collab", "a") == [newest, middle, oldest]
        assert journal.refused("collab", "a", after=oldest.seq, before=newest.seq) == [middle]
        assert journal.refused("collab", "a", limit=1) == [newest]
        oldest, middle, newest = rows[10:]
        assert journal.settled("collab", "a", after=oldest.seq) == [newest, middle]
        assert journal.settled("collab", "a", limit=1) == [newest]
        assert journal.topic(SETTLED) == [newest, middle, oldest]
        assert journal.topic(SETTLED, after=oldest.seq, until=middle.seq) == [middle]
        assert journal.topic(SETTLED, limit=2) == [newest, middle]
        assert journal.rows(seqs[1], until=seqs[3]) == rows[2:4]
        assert journal.rows_before(seqs[2], limit=1) == [rows[1]]
        assert [journal.row(seq) for seq in (0, seqs[0], last, last + 1)] == [None, rows[0], rows[-1], None]
        times = (rows[0].time - 1, rows[0].time, rows[-1].time)
        assert [journal.seq_at(each) for each in times] == [0, last, last]

    def test_a_filter_lets_the_same_rows_pass_in_every_journal(self, journal: Journal) -> None:
        drafts: list[Draft] = [
            Write("alice", "t", "collab", "plan.md", "x", message="AZ@[ É"),
            Note("bob", "u", "private", "bob/plan", "denied", "refused"),
            Note("alice", "step", "session", "alice/s1"),
            Note("human:dana", "say", "session", "alice/s1"),
            Note("alice", "step", "session", "alice/s1", "failed", "broken"),
            Note("alice", "command_output", "command", "t1/c1"),
            Note("alice", "run_command", "command", "t1/c1"),
            Note("system", "journal_checkpoint", "workspace", ""),
            Note("system", "identify_workspace", "workspace", ""),
            Note("system", "journal_checkpoint", "workspace", "", "failed", "broken"),
            Note("alice", "journal_checkpoint", "workspace", ""),
        ]
        rows = [journal.append([draft])[0].row for draft in drafts]
        expected: dict[RowFilter, list[int]] = {
            RowFilter(actor="alice"): [0, 2, 4, 5, 6, 10],
            RowFilter(zone="session"): [2, 3, 4],
            RowFilter(tool="step"): [2, 4],
            RowFilter(outcome="failed"): [4, 9],
            RowFilter(actor="alice", outcome="failed"): [4],
            RowFilter(path="plan"): [0, 1],
            RowFilter(path="PLAN"): [],
            RowFilter(after=rows[8].seq): [9, 10],
            RowFilter(since=rows[8].time): [n for n, row in enumerate(rows) if row.time >= rows[8].time],
            RowFilter(steps=False): [0, 1, 3, 4, 6, 9, 10],
            RowFilter(text="az@[ É"): [0],
            RowFilter(text="az@{ É"): [],
            RowFilter(text="az`["): [],
            RowFilter(text="é"): [],
            RowFilter(text="BOB"): [1],
            RowFilter(text="Refused"): [1],
            RowFilter(text="RUN_"): [6],
            RowFilter(text="Plan"): [0, 1],
            RowFilter(): [*range(11)],
        }
        for only, numbers in expected.items():
            found = journal.rows_before(journal.last_seq() + 1, only=only)
            assert [rows.index(row) for row in reversed(found)] == numbers, only
            assert [n for n, row in enumerate(rows) if only.admits(row)] == numbers, only

    def test_calls_of_a_clients_own_tools_are_no_steps(self, journal: Journal) -> None:
        drafts = [
            Write("alice", tool, "session", "alice/s1", "{}")
            for tool in ("client_event", CLIENT_CALL, CLIENT_DENIED)
        ]
        drafts.append(Write("alice", CLIENT_DENIED, "session", "alice/s1", "{}", expected=7))
        step, done, refused, late = (each.row for each in journal.append(drafts))
        expected = {
            RowFilter(): [step, done, refused, late],
            RowFilter(steps=False): [done, refused, late],
            RowFilter(outcome="ok"): [step, done],
            RowFilter(outcome="denied"): [refused],
            RowFilter(outcome="conflict"): [late],
        }
        for only, rows in expected.items():
            assert journal.rows_before(late.seq + 1, only=only) == rows[::-1], only
            assert [row for row in (step, done, refused, late) if only.admits(row)] == rows, only

    def test_edits_by_hand_are_found_newest_first_however_many_there_are(self, journal: Journal) -> None:
        edit = Note("outside", "outside_edit", "collab", "a", "conflict", "outside_edit", content="x")
        rows = [each.row for each in journal.append([edit] * 45)]
        journal.append([edit._replace(path="b"), Note("human:dana", "dismiss_conflict", "collab", "a")])
        assert [*edits(journal, "collab", "a")] == rows[::-1]
        assert last_revert(journal, "collab", "a", bool, bool) == 0
        revert = Note("human:dana", "revert_outside_edit", "collab", "a", detail={"conflict": rows[-1].seq})
        (first, _), (latest, _) = journal.append([revert, revert._replace(detail={"conflict": rows[0].seq})])
        journal.append([Note("human:dana", "dismiss_conflict", "collab", "a")])
        assert last_revert(journal, "collab", "a", bool, bool) == latest.seq
        assert last_revert(journal, "collab", "a", lambda edit: edit.seq > rows[0].seq, bool) == first.seq
        assert last_revert(journal, "collab", "a", bool, lambda row: row.seq < latest.seq) == first.seq

    def test_a_reader_never_sees_a_row_below_one_that_it_saw(self, journal: Journal) -> None:
        writers, each_writes = 4, 40

        def write(writer: int) -> None:
            for n in range(each_writes):
                path = f"{writer}/{n}" if n % 3 else "shared"
                journal.append(
                    [Write(f"w{writer}", "t", "collab", path, "x"), Note("w", "t", "collab", path)]
                )

        seen: list[int] = []
        with ThreadPoolExecutor(writers) as threads:
            running = [threads.submit(write, writer) for writer in range(writers)]
            while len(seen) < 2 * writers * each_writes:
                assert not [each.exception() for each in running if each.done() and each.exception()]
                seen += [row.seq for row in journal.rows(seen[-1] if seen else 0, limit=7)]
        assert seen == [row.seq for row in all_rows(journal)]
        shared = journal.history("collab", "shared")
        assert [row.version for row in shared] == list(range(1, len(shared) + 1))


class SnapshotConformance:
    """What a journal does that keeps snapshots. A backend's tests give the fixture ``journal``, an empty one."""

    def test_the_newest_snapshot_is_found_and_the_newest_before_a_row(self, journal: Journal) -> None:
        assert journal.snapshots.newest("f/1") is None
        for seq in (10, 30, 20):
            journal.snapshots.keep("f/1", seq, b"%d\x00\xff" % seq)
        assert journal.snapshots.newest("f/1") == Snapshot(30, b"30\x00\xff")
        found = [journal.snapshots.newest("f/1", as_of=seq) for seq in (9, 10, 29, 30, 99)]
        assert [each and each.seq for each in found] == [None, 10, 20, 30, 30]
        assert journal.snapshots.newest("f/2") is None
        assert journal.last_seq() == 0, "no row tells of it"

    def test_a_snapshot_replaces_that_of_its_row_and_format(self, journal: Journal) -> None:
        for data in (b"one", b"two", b"two"):
            journal.snapshots.keep("f/1", 10, data)
        journal.snapshots.keep("f/2", 10, b"other")
        assert journal.snapshots.newest("f/1") == Snapshot(10, b"two")
        assert journal.snapshots.newest("f/1", as_of=9) is None

    def test_a_bounded_number_of_snapshots_is_kept_and_more_of_the_new_ones(self, journal: Journal) -> None:
        added = 3 * MAX_SNAPSHOTS
        for seq in range(1, added + 1):
            journal.snapshots.keep("f/1", seq, b"x")
        kept = []
        found = journal.snapshots.newest("f/1")
        while found is not None:
            kept.append(found.seq)
            found = journal.snapshots.newest("f/1", as_of=found.seq - 1)
        assert len(kept) == MAX_SNAPSHOTS
        assert (kept[0], kept[-1]) == (added, 1)
        assert sum(seq > added // 2 for seq in kept) > MAX_SNAPSHOTS // 2


class BlobConformance:
    """How a journal keeps the bytes of files. A backend's tests give the fixture ``journal``, an empty one."""

    def test_blobs_are_kept_by_their_checksums_and_no_row_tells_of_it(self, journal: Journal) -> None:
        one, two, empty = b"\x00one\xff", bytes(range(256)) * 4096, b""
        journal.blobs.keep([one, two])
        journal.blobs.keep([empty, one])
        assert [journal.blobs.find(sha256(each)) for each in (one, two, empty)] == [one, two, empty]
        assert journal.blobs.find(sha256(b"another")) is None
        # What is kept once more is the newest.
        assert journal.blobs.kept() == [sha256(each) for each in (two, empty, one)]
        assert journal.blobs.kept([sha256(one), sha256(b"another")]) == [sha256(one)]
        assert journal.last_seq() == 0
