"""Agents that a person stopped together: who they are, and that exactly these go on again."""

from __future__ import annotations

import pytest
from calls import ok
from watchroom import Toolbox, Workspace
from watchroom.kernel.call_context import CallContext
from watchroom.model import DISMISS, Note, Write


@pytest.fixture
def sessions(workspace: Workspace) -> None:
    """Each agent has one that waits."""
    steps = [
        Write(agent, "begin_session", "session", f"{agent}/s1", "{}", detail={"status": "idle"})
        for agent in ("alice", "bob", "charlie")
    ]
    workspace.journal.append(steps)


@pytest.mark.usefixtures("sessions")
def test_who_was_stopped_goes_on_again_and_nobody_else(workspace: Workspace) -> None:
    stops = workspace.stops
    assert (stops.stopped(), stops.release(CallContext("human:dana"))) == ({}, {})
    told, refused = stops.stop(CallContext("human:dana"), ["alice", "nobody", "no id!", "bob"])
    assert (list(told), list(refused)) == (["alice", "bob"], ["nobody", "no id!"])
    assert stops.stopped() == told
    again, _ = stops.stop(CallContext("human:dana"), ["charlie"])
    assert stops.stopped() == {**told, **again}
    workspace.session_zone.control(CallContext("human:dana", "resume_agent"), "alice", None, "")
    assert list(stops.stopped()) == ["bob", "charlie"]
    released = stops.release(CallContext("human:dana"))
    assert list(released) == ["bob", "charlie"]
    assert stops.stopped() == {}
    last = workspace.journal.last_seq()
    assert stops.release(CallContext("human:dana")) == {}
    assert stops.stop(CallContext("human:dana"), ["nobody"])[0] == {}
    assert [row for row in workspace.journal.rows(last) if row.version is not None] == []


@pytest.mark.usefixtures("sessions")
def test_who_is_stopped_once_more_after_somebody_resumed_is_stopped(workspace: Workspace) -> None:
    stops = workspace.stops
    stops.stop(CallContext("human:dana"), ["alice"])
    workspace.session_zone.control(CallContext("human:dana", "resume_agent"), "alice", None, "")
    assert stops.stopped() == {}
    told, _ = stops.stop(CallContext("human:dana"), ["alice"])
    assert stops.stopped() == told


def test_only_what_takes_steps_of_a_process_that_is_alive_is_waited_for(workspace: Workspace) -> None:
    stops, journal = workspace.stops, workspace.journal
    lease = journal.presence.hold()

    def step(path: str, status: str, presence: str, **more: str) -> None:
        detail = {"status": status, "presence": presence, **more}
        journal.append([Write(path.partition("/")[0], "step", "session", path, "{}", detail=detail)])

    assert stops.wait_until_paused(["alice", "bob"], 0) == []
    step("alice/s1", "running", lease)
    step("bob/s1", "idle", lease)
    step("charlie/s1", "running", "000000000000")
    everybody = ["alice", "bob", "charlie"]
    assert stops.wait_until_paused(everybody, 0) == ["alice"]
    assert stops.wait_until_paused(["bob", "charlie"], 0) == []
    step("alice/s1", "paused", lease)
    # A client that a person started heeds a pause at its next call.
    step("bob/s2", "running", lease, attachment="attached")
    assert stops.wait_until_paused(everybody) == []


def test_each_agent_hears_of_what_came_for_it_once(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    fetch = workspace.notifications.fetch
    assert fetch("bob") == []
    for text in ("one", "two"):
        ok(alice, "handoff_file", to_agent="bob", filename="a.md", content=text, message="m")
    assert [(row.zone, row.version) for row in fetch("bob")] == [("handoff", 2)]
    assert fetch("bob") == []
    ok(alice, "handoff_file", to_agent="bob", filename="a.md", content="three", message="m")
    assert len(fetch("bob")) == 1


def test_messages_wait_until_they_were_handed_over(workspace: Workspace) -> None:
    message = Note("alice", "send_message", "agent", "bob", content="Hi")
    others = [message._replace(actor="bob"), message._replace(path="charlie")]
    workspace.journal.append([message, message, *others, message._replace(tool="pause_agent")])

    def taken() -> list[str]:
        with workspace.messages.hand_over() as handover:
            found = [each.text for each in handover.take("bob")]
            handover.record()
        return found

    assert taken() == ["Hi", "Hi"]
    assert taken() == []
    assert len(workspace.messages.find_waiting("charlie")) == 1
    workspace.journal.append([message])
    assert taken() == ["Hi"]


def test_what_is_for_others_is_looked_through_once(workspace: Workspace) -> None:
    journal = workspace.journal

    def notices() -> list[object]:
        return [row.base for row in journal.notes("workspace", "bob", "bob", "tell_news")]

    settled = Note("human:dana", DISMISS, "collab", "of-others.md")
    journal.append([settled] * 99)
    assert (workspace.notifications.fetch("bob"), notices()) == ([], [])
    ((newest, _),) = journal.append([settled])
    assert (workspace.notifications.fetch("bob"), notices()) == ([], [newest.seq])
