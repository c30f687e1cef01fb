"""What a revert plans for deliveries, requests, leases, buffers and messages, as their newest rows stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from memory_journal import MemoryJournal
from watchroom.features.boards.rows import HOLD, RELEASE
from watchroom.features.buffers.rows import CLOSE
from watchroom.features.handoffs.reverts import HandoffWithdrawal
from watchroom.features.people.service import PeopleReader
from watchroom.features.requests.rows import Answer, Request, dump_answer, dump_request
from watchroom.features.reverts.rules import PlannedItem
from watchroom.features.reverts.withdrawals import (
    BufferClosing,
    LeaseRelease,
    MessageRetraction,
    RequestWithdrawal,
)
from watchroom.model import ASK, Draft, Json, Note, Row, Write, Zone
from watchroom.texts import Catalogue, catalogue

PATH = "alice_to_bob/a.md"


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal(gap=2)


def texts() -> Catalogue:
    return catalogue("en")


def made(journal: MemoryJournal, *drafts: Draft) -> list[Row]:
    return [each.row for each in journal.append(drafts)]


def deliver(content: str | None) -> Write:
    return Write("alice", "handoff_file", "handoff", PATH, content)


def told(items: Sequence[PlannedItem]) -> list[tuple[str, str, str]]:
    return [(item.path, item.plan.kind, item.plan.reason) for item in items]


def apply(journal: MemoryJournal, items: Sequence[PlannedItem]) -> list[Row]:
    """The rows of what is planned; none is refused."""
    rows = made(journal, *(draft for item in items for draft in item.drafts))
    assert {row.outcome for row in rows} <= {"ok"}
    return rows


def test_a_delivery_is_withdrawn_to_the_newest_that_is_not_selected(journal: MemoryJournal) -> None:
    rows = made(journal, deliver("one"), deliver("two"), deliver("three"))
    part = HandoffWithdrawal(journal, texts)
    for selected, content in ((rows, None), (rows[1:], "one"), (rows[2:], "two"), (rows[::2], "two")):
        (item,) = part.plan(selected)
        assert told([item]) == [(PATH, "clean", "withdrawn")]
        assert (item.plan.content, item.current) == (content, "three")
        (draft,) = item.drafts
        assert isinstance(draft, Write)
        assert (draft.content, draft.expected) == (content, 3)


def test_a_delivery_that_was_replaced_or_withdrawn_since_is_left_alone(journal: MemoryJournal) -> None:
    first, _ = made(journal, deliver("one"), deliver("two"))
    part = HandoffWithdrawal(journal, texts)
    assert part.plan([first]) == []
    deleted = made(journal, deliver(None))
    assert part.plan([first, *deleted]) == []
    (again,) = made(journal, deliver("three"))
    (item,) = part.plan([again])
    assert item.plan.content is None


@pytest.mark.parametrize(
    ("tool", "base", "reason"),
    [
        ("read_handoff", 1, "read_already"),
        ("acknowledge_handoff", 1, "read_already"),
        ("other", 1, "withdrawn"),
    ],
)
def test_who_has_read_a_delivery_is_told(journal: MemoryJournal, tool: str, base: int, reason: str) -> None:
    rows = made(journal, deliver("one"), Note("bob", tool, "handoff", PATH, base=base))
    (item,) = HandoffWithdrawal(journal, texts).plan(rows[:1])
    assert item.plan.reason == reason
    if reason == "read_already":
        (draft,) = item.drafts
        assert (draft.zone, draft.path, item.plan.kind) == ("agent", "bob", "cannot")
        assert draft.content is not None
        assert "a.md" in draft.content


def test_what_was_withdrawn_is_delivered_again_by_its_own_revert_alone(journal: MemoryJournal) -> None:
    made(journal, deliver("one"))
    part = HandoffWithdrawal(journal, texts)
    withdrawal = Write("system", "revert_work", "handoff", PATH, None, detail={"revert": "r1"})
    made(journal, withdrawal)
    assert part.plan_undo("r2", [PATH]) == part.plan_undo("r1", ["alice_to_bob/none"]) == []
    (item,) = part.plan_undo("r1", [PATH])
    assert (item.plan.content, item.current) == ("one", None)
    apply(journal, [item])
    assert journal.content(journal.last_seq()) == "one"
    made(journal, deliver(None), withdrawal)
    assert part.plan_undo("r1", [PATH]) == []


def test_what_an_older_delivery_replaced_is_delivered_again(journal: MemoryJournal) -> None:
    made(journal, deliver("one"), deliver("two"))
    made(journal, Write("system", "revert_work", "handoff", PATH, "one", detail={"revert": "r1"}))
    (item,) = HandoffWithdrawal(journal, texts).plan_undo("r1", [PATH])
    assert (item.plan.content, item.current) == ("two", "one")


def test_a_request_is_withdrawn_once_and_not_where_somebody_answered(journal: MemoryJournal) -> None:
    request = Request("prompt", "Which?")
    ask = Write("alice", ASK, "request", "alice/s1/1", dump_request(request), message="Which?")
    (asked,) = made(journal, ask)
    part = RequestWithdrawal(journal, PeopleReader(journal))
    (item,) = part.plan([asked])
    assert (item.plan.kind, item.plan.reason) == ("clean", "withdrawn")
    (draft,) = item.drafts
    assert isinstance(draft, Write)
    assert (draft.path, draft.expected, draft.detail) == (
        "alice/s1/1",
        1,
        {"request": asked.seq, "outcome": "withdrawn"},
    )
    answer = dump_answer(Answer(text="This."))
    detail: dict[str, Json] = {"request": asked.seq, "outcome": "replied"}
    made(journal, Write("human:dana", "answer_request", "request", "alice/s1/1", answer, detail=detail))
    (answered,) = part.plan([asked])
    assert told([answered]) == [("alice/s1/1", "cannot", "answered")]
    assert part.plan([asked._replace(version=2), asked._replace(tool="other")]) == []
    assert told(part.plan_undo("r1", ["alice/s1/1"])) == [("alice/s1/1", "cannot", "not_restored")]


Part = Callable[[MemoryJournal], LeaseRelease | BufferClosing]
HELD: list[tuple[Part, Zone, str, str, str, str]] = [
    (LeaseRelease, "lease", HOLD, "global", RELEASE, "released"),
    (BufferClosing, "buffer", "open_buffer", "alice/plan", CLOSE, "closed"),
]


@pytest.mark.parametrize(("make", "zone", "begin", "path", "end", "reason"), HELD)
def test_what_is_held_or_open_ends_where_it_is_still_its_holders(
    journal: MemoryJournal, make: Part, zone: Zone, begin: str, path: str, end: str, reason: str
) -> None:
    part = make(journal)
    hold = Write("alice", begin, zone, path, "x")
    rows = made(journal, hold, hold)
    assert told(part.plan(rows)) == [(path, "clean", reason)]
    made(journal, hold._replace(actor="bob"))
    assert part.plan(rows) == []
    rows = made(journal, hold)
    (ended,) = apply(journal, part.plan(rows))
    assert (ended.tool, ended.deleted) == (end, True)
    assert part.plan(rows) == []
    assert part.plan(made(journal, Note("alice", "other", zone, path))) == []
    assert told(part.plan_undo("r1", [path])) == [(path, "cannot", "not_restored")]


def test_each_receiver_of_messages_is_told_once_of_each_sender_and_people_are_not(
    journal: MemoryJournal,
) -> None:
    rows = made(
        journal,
        Note("alice", "send_message", "agent", "bob", message="one"),
        Note("alice", "send_message", "agent", "bob", message="two"),
        Note("carol", "send_message", "agent", "bob", message="three"),
        Note("alice", "send_message", "agent", "user", message="four"),
        Write("alice", "spawn_agent", "agent", "tester", "Test."),
        Note("alice", "spawn_agent", "agent", "failed", "failed", "society_limit"),
    )
    items = MessageRetraction(texts).plan(rows)
    assert told(items) == [
        ("bob", "clean", "retracted"),
        ("bob", "clean", "retracted"),
        ("tester", "cannot", "spawned"),
    ]
    assert [item.current for item in items[:2]] == ["two", "three"]
    for item, sender in zip(items, ("alice", "carol"), strict=False):
        (draft,) = item.drafts
        assert (draft.path, draft.tool) == ("bob", "send_message")
        assert draft.content is not None
        assert sender in draft.content
    assert told(MessageRetraction(texts).plan_undo("r1", ["bob"])) == [("bob", "cannot", "not_restored")]
