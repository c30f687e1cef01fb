"""What presses by a given time: handoffs that wait too long, and agents that do nothing about what is theirs."""

from __future__ import annotations

from pathlib import Path
from time import time_ns

from calls import ok
from projections.folding import PLAN, deliver, denied, folded, shared_path, stale_write, write
from projections.test_client_calls import begin
from watchroom import Toolbox, Workspace
from watchroom.agents.clients.events import PromptSubmitted, TurnEnded
from watchroom.features.overview.model import (
    HANDOFF_OVERDUE_SECONDS,
    STALLED_SECONDS,
    Model,
    Need,
    order_needs,
    urgent_needs,
)
from watchroom.features.requests.rows import Request
from watchroom.kernel.call_context import CallContext
from watchroom.model import PAUSE

SECOND = 1_000_000_000


def model_of(workspace: Workspace) -> Model:
    workspace.flush()
    return folded(workspace.journal)


def after(model: Model, seconds: float) -> list[Need]:
    return list(urgent_needs(model, model.time + int(seconds * SECOND)))


def test_a_conflict_is_one_need_however_long_its_agent_leaves_it_alone(
    workspace: Workspace, conflict: int
) -> None:
    assert [need.kind for need in after(model_of(workspace), 10 * STALLED_SECONDS)] == ["conflict"]


def test_an_agent_that_is_at_work_does_not_stall(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    deliver(alice)
    before = model_of(workspace)
    ok(bob, "save_to_my_workspace", filename="x", content="")
    model = model_of(workspace)
    now = before.time + int(STALLED_SECONDS * SECOND)
    assert "stalled" in {need.kind for need in urgent_needs(before, now)}
    assert model.time > before.time
    assert "stalled" not in {need.kind for need in urgent_needs(model, now)}


def test_an_agent_that_waits_to_be_resumed_does_not_stall(workspace: Workspace, alice: Toolbox) -> None:
    deliver(alice)
    session = begin(workspace, "bob")
    session.record(PromptSubmitted("Read it"))
    session.record(TurnEnded())
    assert "stalled" in {need.kind for need in after(model_of(workspace), STALLED_SECONDS)}
    workspace.session_zone.control(CallContext("human:dana", PAUSE), "bob", None, "")
    assert [need.kind for need in after(model_of(workspace), STALLED_SECONDS)] == ["handoff"]


def test_an_agent_that_leaves_a_handoff_alone_stalls_even_if_it_never_did_anything(
    workspace: Workspace, alice: Toolbox
) -> None:
    deliver(alice)
    model = model_of(workspace)
    assert after(model, HANDOFF_OVERDUE_SECONDS - 1) == []
    assert [need.kind for need in after(model, HANDOFF_OVERDUE_SECONDS)] == ["handoff"]
    (handoff,) = after(model, STALLED_SECONDS - 1)
    (stalled,) = after(model, STALLED_SECONDS)
    assert (stalled.kind, stalled.agent, stalled.row) == ("stalled", "bob", handoff.row)


def test_an_agent_stalls_once_however_much_waits_for_it(workspace: Workspace, alice: Toolbox) -> None:
    deliver(alice, name="one.md")
    deliver(alice, name="two.md")
    assert [(need.kind, need.row.path) for need in after(model_of(workspace), 2 * STALLED_SECONDS)] == [
        ("stalled", "alice_to_bob/one.md"),
        ("handoff", "alice_to_bob/two.md"),
    ]


def test_nobody_stalls_over_an_edit_made_by_hand(root: Path, workspace: Workspace, alice: Toolbox) -> None:
    write(alice, "one", 0)
    shared_path(root).write_text("by hand", encoding="utf-8")
    workspace.scan()
    assert [need.kind for need in after(model_of(workspace), 10 * STALLED_SECONDS)] == ["outside"]


def test_needs_with_a_deadline_come_first_and_of_one_kind_the_oldest(
    workspace: Workspace, conflict: int
) -> None:
    for agent, expires in (("alice", None), ("bob", 2_000), ("charlie", 1_000)):
        request = Request("prompt", "Which?", expires=expires and time_ns() + expires * SECOND)
        workspace.requests.ask(CallContext(agent), f"{agent}/s/1", request)
    needs = urgent_needs(model_of(workspace), time_ns())
    assert [(need.kind, need.agent) for need in needs] == [
        ("request", "charlie"),
        ("request", "bob"),
        ("conflict", "bob"),
        ("request", "alice"),
    ]
    assert order_needs(reversed(needs)) == needs
    late = time_ns() + 1_500 * SECOND
    assert [need.agent for need in urgent_needs(model_of(workspace), late)] == ["bob", "bob", "alice"]


def test_the_order_is_that_of_urgency(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox, charlie: Toolbox
) -> None:
    deliver(alice)
    denied(charlie, 3)
    write(alice, "one", 0, "unchecked.md")
    write(bob, "two", -1, "unchecked.md")
    write(alice, "one", 0)
    shared_path(root).write_text("by hand", encoding="utf-8")
    workspace.scan()
    stale_write(bob, 0)
    assert [(need.kind, need.row.path) for need in after(model_of(workspace), STALLED_SECONDS)] == [
        ("conflict", PLAN),
        ("outside", PLAN),
        ("unchecked", "unchecked.md"),
        ("denied", "../x"),
        ("stalled", "alice_to_bob/raw.md"),
    ]
