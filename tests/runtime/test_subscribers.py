"""Subscribers are isolated: what one of them raises reaches neither a commit, nor a thread, nor the others."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue

import pytest
from calls import ok
from watchroom import Toolbox, Workspace
from watchroom.errors import JournalBusy
from watchroom.kernel.background import Background
from watchroom.kernel.journal import SqliteJournal
from watchroom.model import Note, Row

PATIENCE = 20


def bad(*_: object) -> None:
    raise ValueError("a subscriber's own error")


def write(toolbox: Toolbox, version: int, path: str = "a.md") -> None:
    ok(
        *(toolbox, "collab_write"),
        filepath=path,
        content=f"{version}\n",
        message="m",
        expected_version=version,
    )


def versions(workspace: Workspace, path: str = "a.md") -> list[int | None]:
    return [row.version for row in workspace.journal.rows(limit=10_000) if row.path == path]


def test_a_failing_subscriber_neither_fails_a_call_nor_makes_its_rows_twice(
    workspace: Workspace, alice: Toolbox, caplog: pytest.LogCaptureFixture
) -> None:
    called: SimpleQueue[str] = SimpleQueue()
    workspace.subscribe(bad)
    workspace.subscribe(lambda: called.put(threading.current_thread().name))
    for version in range(3):
        write(alice, version)
        assert called.get(timeout=PATIENCE) != threading.current_thread().name
    assert versions(workspace) == [1, 2, 3]
    assert "a subscriber to commits failed" in caplog.text


def test_a_subscriber_may_commit(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    has_answered = threading.Event()

    def answer() -> None:
        end()
        write(bob, 0, "b.md")
        has_answered.set()

    end = workspace.subscribe(answer)
    write(alice, 0)
    assert has_answered.wait(PATIENCE)
    assert versions(workspace, "b.md") == [1]
    end()


def test_a_subscriber_that_does_not_return_holds_up_no_commit(workspace: Workspace, alice: Toolbox) -> None:
    has_begun, may_end = threading.Event(), threading.Event()

    def wait() -> None:
        has_begun.set()
        may_end.wait(PATIENCE)

    workspace.subscribe(wait)
    write(alice, 0)
    assert has_begun.wait(PATIENCE)
    for version in range(1, 4):
        write(alice, version)
    ok(alice, "collab_read", filepath="a.md")
    workspace.flush()
    assert versions(workspace)[:4] == [1, 2, 3, 4]
    may_end.set()


def test_a_reading_that_is_recorded_later_makes_no_row_twice(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, 0)
    workspace.subscribe(bad)
    last = workspace.journal.last_seq()
    ok(alice, "collab_read", filepath="a.md")
    workspace.flush()
    assert [row.tool for row in workspace.journal.rows(last)] == ["collab_read"]


Send = Callable[[str], object]


@pytest.fixture
def dispatched(tmp_path: Path) -> Iterator[tuple[Background, Send]]:
    with closing(SqliteJournal(tmp_path / "journal.db")) as journal:

        def address(row: Row) -> str | None:
            return str(json.loads(row.message)["to"]) if row.message else None

        background = Background(journal, address)
        with closing(background):
            yield (
                background,
                lambda message: journal.append([Note("alice", "look", "collab", "a", message=message)]),
            )


def test_a_row_of_an_unexpected_form_and_a_bad_subscriber_end_no_delivery(
    dispatched: tuple[Background, Send],
) -> None:
    background, send = dispatched
    got: SimpleQueue[Row] = SimpleQueue()
    background.subscribe(("bob",), bad)
    background.subscribe(("bob",), got.put)
    for message in ('{"to": "bob"}', "no json", "[]", '{"to": "bob"}'):
        send(message)
    assert [got.get(timeout=PATIENCE).seq for _ in range(2)] == [1, 4]


def test_a_subscriber_that_could_not_read_the_journal_once_gets_all_rows_in_order(
    dispatched: tuple[Background, Send],
) -> None:
    background, send = dispatched
    slow: SimpleQueue[int] = SimpleQueue()
    other: SimpleQueue[int] = SimpleQueue()
    failures = [JournalBusy(seconds=1), JournalBusy(seconds=1)]

    def take(row: Row) -> None:
        if failures:
            raise failures.pop()
        slow.put(row.seq)

    background.subscribe(("bob",), take)
    background.subscribe(("bob",), lambda row: other.put(row.seq))
    for _ in range(3):
        send('{"to": "bob"}')
    assert [slow.get(timeout=PATIENCE) for _ in range(3)] == [1, 2, 3]
    assert [other.get(timeout=PATIENCE) for _ in range(3)] == [1, 2, 3]
    assert other.empty()


def test_a_row_that_a_subscriber_can_never_take_holds_up_no_later_one(
    dispatched: tuple[Background, Send],
) -> None:
    background, send = dispatched
    got: SimpleQueue[int] = SimpleQueue()

    def take(row: Row) -> None:
        if row.seq == 1:
            raise JournalBusy(seconds=1)
        got.put(row.seq)

    background.subscribe(("bob",), take)
    for _ in range(2):
        send('{"to": "bob"}')
    assert got.get(timeout=PATIENCE) == 2


def test_messages_come_after_a_spawn_without_a_task(workspace: Workspace) -> None:
    got: SimpleQueue[str] = SimpleQueue()
    workspace.background.subscribe(("bob",), lambda row: got.put(row.message))
    workspace.journal.append([Note("alice", "spawn_agent", "agent", "carol")])
    workspace.journal.append(
        [Note("human:ann", "send_message", "session", "bob", message="Hi", content="Hi")]
    )
    assert got.get(timeout=PATIENCE) == "Hi"
