"""An approval holds for what was shown: if that is another by now, the call is not made and is asked about again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from calls import ok
from runtime.scripted import at_work, say, until
from runtime.weather import Model, call, calling, offered
from runtime.working import SAYS, asked_in, deliver, results
from watchroom import Agent, Json, Toolbox, Workspace
from watchroom.errors import ApprovalOutdated
from watchroom.features.calls.agent_tools import BufferTools, agent_tools
from watchroom.features.calls.proposals import approval_conditions
from watchroom.features.calls.reads import read_request
from watchroom.features.requests.rows import PendingCall, Request, parse_arguments
from watchroom.features.sessions.runtime import AgentTool, CallOrigin, ChatAgent, Policies, Session
from watchroom.features.sessions.view import RequestView
from watchroom.kernel.call_context import CallContext
from watchroom.model import UNCHECKED, Appended, Draft, Write
from watchroom.texts import catalogue
from watchroom_tui.readers.request import RequestPage

HELLO = [{"role": "user", "content": "Hello"}]
ASK = Policies(tools={"collab_write": "ask"})


def text_of(workspace: Workspace, path: str = "plan.md") -> str | None:
    head = workspace.journal.head("collab", path)
    return workspace.journal.content(head.seq) if head else None


def as_read(workspace: Workspace, number: int) -> str:
    """The request as a person reads it in the dashboard and on the command line."""
    row = workspace.journal.rows(number - 1, until=number)[0]
    full = read_request(workspace.journal, RequestView(row, None))
    page = RequestPage(full, [None] * len(full.proposals), catalogue("en", "watchroom_tui.texts"))
    lines = [row.line for row in page.rows({})]
    return "\n".join("".join(span.text for span in line) for line in lines)


def writer(toolbox: Toolbox, *answers: Any) -> ChatAgent:
    tools = agent_tools(toolbox)
    return ChatAgent(tools, live=BufferTools(toolbox), model_runtime=Model(*answers), policies=ASK)


async def asked_again(workspace: Workspace, session: Session, first: int) -> int:
    """The number of the request that came in place of the ``first`` one."""
    path = workspace.journal.rows(first - 1, until=first)[0].path
    await until(
        lambda: f"{session.path}/{session.state.step_count}" > path and session.state.asked is not None
    )
    return await asked_in(workspace, session)


async def test_a_flush_writes_what_the_person_saw_or_asks_again(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "open_buffer", source="collab", path="plan.md")
    ok(alice, "plan_append", text="approved\n")
    agent = writer(alice, calling(call("plan_flush", "c1")), SAYS)
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as ends:
        first = await asked_in(workspace, session)
        ok(workspace.tools("alice"), "plan_append", text="never shown\n")
        say(workspace, "answer_request", request=first, approved=True)
        second = await asked_again(workspace, session, first)
        assert text_of(workspace) is None
        assert "since this request" not in as_read(workspace, second)
        ok(workspace.tools("alice"), "plan_append", text="later\n")
        assert "since this request" in as_read(workspace, second)
        ok(workspace.tools("alice"), "plan_replace", old_text="later\n", new_text="")
        request = workspace.requests.find(second)
        assert "plan_flush" in request.prompt
        assert request.calls[0].checksum != workspace.requests.find(first).calls[0].checksum
        say(workspace, "answer_request", request=second, approved=True)
        state = await ends
    assert text_of(workspace) == "approved\nnever shown\n"
    told = results(state)["c1"]
    assert "approved" in told["notice"]
    assert told["result"]["success"] is True
    refused = [row for row in workspace.journal.rows(limit=1000) if row.error == "approval_outdated"]
    assert [row.tool for row in refused] == ["plan_flush"]


async def test_a_write_over_what_was_not_shown_is_asked_about_again(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    given: dict[str, Json] = {"filepath": "plan.md", "content": "mine\n", "message": "m"}
    wants = call("collab_write", "c1", **given, expected_version=UNCHECKED)
    agent = writer(alice, calling(wants), SAYS)
    ok(bob, "collab_write", filepath="plan.md", content="shown\n", message="m", expected_version=0)
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as ends:
        first = await asked_in(workspace, session)
        ok(bob, "collab_write", filepath="plan.md", content="not shown\n", message="m", expected_version=1)
        say(workspace, "answer_request", request=first, approved=True)
        second = await asked_again(workspace, session, first)
        assert text_of(workspace) == "not shown\n"
        say(workspace, "answer_request", request=second, approved=False, reason="leave it")
        state = await ends
    assert text_of(workspace) == "not shown\n"
    assert "leave it" in results(state)["c1"]["message"]


async def test_a_call_that_comes_too_late_is_a_conflict_and_needs_nobody(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    given: dict[str, Json] = {"filepath": "plan.md", "content": "mine\n", "message": "m"}
    agent = writer(alice, calling(call("collab_write", "c1", **given, expected_version=0)), SAYS)
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as ends:
        first = await asked_in(workspace, session)
        ok(bob, "collab_write", filepath="plan.md", content="theirs\n", message="m", expected_version=0)
        say(workspace, "answer_request", request=first, approved=True)
        state = await ends
    assert results(state)["c1"]["error"] == "version_conflict"


async def test_what_a_person_changed_is_made_where_nothing_else_has_changed(
    workspace: Workspace, alice: Toolbox
) -> None:
    given: dict[str, Json] = {"filepath": "plan.md", "content": "mine\n", "message": "m"}
    agent = writer(alice, calling(call("collab_write", "c1", **given)), SAYS)
    edited = json.dumps({**given, "content": "by dana\n"})
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as ends:
        first = await asked_in(workspace, session)
        decision = {"call_id": "c1", "approved": True, "arguments": edited}
        say(workspace, "answer_request", request=first, decisions=[decision])
        await ends
    assert text_of(workspace) == "by dana\n"


def test_nothing_slips_in_between_the_check_and_the_write(
    workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments: dict[str, Json] = {
        "filepath": "plan.md",
        "content": "mine\n",
        "message": "m",
        "expected_version": UNCHECKED,
    }
    shown = alice.approval_checksum("collab_write", arguments)
    append, theirs = workspace.journal.append, [Write("bob", "collab_write", "collab", "plan.md", "theirs\n")]

    def append_after_theirs(drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        if theirs:
            append([theirs.pop()])
        return append(drafts, all_or_nothing=all_or_nothing)

    monkeypatch.setattr(workspace.journal, "append", append_after_theirs)
    made = alice.dispatch_tool_call("collab_write", arguments, approved=shown)
    assert made["error"] == "approval_outdated"
    assert text_of(workspace) == "theirs\n"
    refused = workspace.journal.refused("collab", "plan.md")
    assert [(row.actor, row.error, workspace.journal.content(row.seq)) for row in refused] == [
        ("alice", "approval_outdated", "mine\n")
    ]


@pytest.mark.parametrize("number", [2, 2.0, "2"])
def test_a_version_is_shown_and_bound_however_its_number_is_written(
    alice: Toolbox, bob: Toolbox, number: Json
) -> None:
    for version, text in enumerate(["one\n", "two\n", "three\n"]):
        ok(bob, "collab_write", filepath="plan.md", content=text, message="m", expected_version=version)
    arguments: dict[str, Json] = {"filepath": "plan.md", "to_version": number}
    shown = alice.approval_checksum("collab_rollback", arguments)
    ok(bob, "collab_write", filepath="plan.md", content="not shown\n", message="m", expected_version=3)
    made = alice.dispatch_tool_call("collab_rollback", arguments, approved=shown)
    assert made["error"] == "approval_outdated"
    shown = alice.approval_checksum("collab_rollback", arguments)
    assert alice.dispatch_tool_call("collab_rollback", arguments, approved=shown)["new_version"] == 5


@pytest.mark.parametrize("number", [10**30, -(10**30), "9" * 40, 1e300, "nan", True])
def test_numbers_that_are_no_version_are_asked_about_and_read(workspace: Workspace, number: Json) -> None:
    alice = workspace.tools("alice")
    calls: list[tuple[str, dict[str, Json]]] = [
        ("collab_rollback", {"filepath": "plan.md", "to_version": number}),
        ("whiteboard_restore", {"board": "bottom-layer-alice", "version": number}),
    ]
    for tool, arguments in calls:
        checksum = alice.approval_checksum(tool, arguments)
        asked = PendingCall("c1", tool, json.dumps(arguments), checksum)
        row = workspace.requests.ask(
            CallContext("alice"), f"alice/{tool}/1", Request("approve", calls=(asked,))
        )
        assert tool in as_read(workspace, row.seq)
        made = alice.dispatch_tool_call(tool, arguments, approved=checksum)
        assert made["error"] == "invalid_arguments"


@pytest.fixture
def in_task(workspace: Workspace, tmp_path: Path) -> Toolbox:
    task = workspace.tasks.submit("human:dana", "Build something.", tmp_path / "task")
    workspace.register([Agent("alice", task=task.id)])
    return workspace.tools("alice")


def test_what_a_task_s_file_holds_by_now_is_asked_about_again(in_task: Toolbox, tmp_path: Path) -> None:
    ok(in_task, "write_file", path="plan.md", content="shown\n")
    arguments: dict[str, Json] = {"path": "./plan.md", "content": "mine\n"}
    shown = in_task.approval_checksum("write_file", arguments)
    file = tmp_path / "task" / "plan.md"
    file.write_text("not shown\n")
    made = in_task.dispatch_tool_call("write_file", arguments, approved=shown)
    assert made["error"] == "approval_outdated"
    assert file.read_text() == "not shown\n"
    shown = in_task.approval_checksum("write_file", arguments)
    assert in_task.dispatch_tool_call("write_file", arguments, approved=shown)["success"] is True
    assert file.read_text() == "mine\n"


def test_an_approved_call_that_is_refused_leaves_the_task_s_file(
    workspace: Workspace, in_task: Toolbox, tmp_path: Path
) -> None:
    ok(in_task, "write_file", path="plan.md", content="shown\n")
    arguments: dict[str, Json] = {"path": "plan.md", "content": "mine\n"}
    shown = in_task.approval_checksum("write_file", arguments)
    call = CallContext("alice", "write_file")
    conditions = approval_conditions(workspace.journal, call, arguments, shown, again=False)
    approved = replace(call, conditions=conditions)
    ok(in_task, "write_file", path="plan.md", content="theirs\n")
    with pytest.raises(ApprovalOutdated):
        workspace.task_files.write(approved, "plan.md", "mine\n")
    assert (tmp_path / "task" / "plan.md").read_text() == "theirs\n"


def test_a_call_that_was_made_is_told_again_whatever_its_approval_was_for(
    workspace: Workspace, alice: Toolbox
) -> None:
    arguments: dict[str, Json] = {"filepath": "plan.md", "content": "mine\n", "message": "m"}
    shown = alice.approval_checksum("collab_write", arguments)
    for again in (False, True):
        made = alice.dispatch_tool_call("collab_write", arguments, call="k", again=again, approved=shown)
        assert made["version"] == 1, made


async def test_an_approval_is_used_once_by_calls_that_are_made_at_once_in_two_processes(
    workspace: Workspace, in_task: Toolbox, tmp_path: Path
) -> None:
    folder = tmp_path / "task"
    command = "echo ran >> log; while [ ! -e go ]; do sleep 0.05; done"
    arguments: dict[str, Json] = {"command": command}
    shown = in_task.approval_checksum("run_command", arguments)

    def runs(toolbox: Toolbox) -> dict[str, Json]:
        return toolbox.dispatch_tool_call("run_command", arguments, call="k", again=True, approved=shown)

    # A workspace that is opened again shares no more with the first than another process does.
    with Workspace(workspace.root) as other:
        toolboxes = (in_task, other.tools("alice"))
        running = [asyncio.create_task(asyncio.to_thread(runs, each)) for each in toolboxes * 2]
        await until(folder.joinpath("log").exists)
        folder.joinpath("go").touch()
        results = await asyncio.gather(*running)
    assert [result["success"] for result in results] == [True] * 4
    assert folder.joinpath("log").read_text() == "ran\n"


@pytest.mark.parametrize("tool", ["collab_write", "whiteboard_write", "read_board", "", "no_such_flush"])
def test_whatever_is_asked_about_has_a_checksum_of_its_arguments(alice: Toolbox, tool: str) -> None:
    one: dict[str, Json] = {"filepath": 1, "content": "a"}
    other: dict[str, Json] = {"filepath": 1, "content": "b"}
    assert alice.approval_checksum(tool, one) == alice.approval_checksum(tool, dict(one))
    assert alice.approval_checksum(tool, one) != alice.approval_checksum(tool, other)


class Release:
    """A tool of somebody's own, which publishes whatever stands in ``draft``."""

    def __init__(self) -> None:
        self.draft = "1.0"
        self.released: list[str] = []

    def run(self, arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
        self.released.append(self.draft)
        return self.draft

    def checksum(self, arguments: Mapping[str, Json]) -> str:
        return self.draft


async def test_a_tool_of_ones_own_may_say_what_its_approval_depends_on(workspace: Workspace) -> None:
    release = Release()
    tool = AgentTool("release", release.run, checksum=release.checksum)
    model = Model(calling(call("release", "c1")), SAYS)
    agent = ChatAgent(offered({"release": tool}), model_runtime=model, policies=Policies(default="ask"))
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as ends:
        first = await asked_in(workspace, session)
        release.draft = "2.0"
        say(workspace, "answer_request", request=first, approved=True)
        second = await asked_again(workspace, session, first)
        assert release.released == []
        say(workspace, "answer_request", request=second, approved=True)
        state = await ends
    assert release.released == ["2.0"]
    assert results(state)["c1"]["result"] == "2.0"
    assert parse_arguments(workspace.requests.find(second).calls[0].arguments) == {}


async def test_the_model_reads_what_was_said_of_its_approved_call_and_the_file_has_what_was_taken(
    workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="one\ntwo\n", message="m")
    write: dict[str, Json] = {
        "filepath": "plan.md",
        "content": "1\ntwo\n3\n",
        "message": "m",
        "expected_version": 1,
    }
    taken = json.dumps({**write, "content": "one\ntwo\n3\n"})
    decision = {"call_id": "c1", "approved": True, "reason": "Declined: lines 1.", "arguments": taken}
    agent = writer(alice, calling(call("collab_write", "c1", **write)), SAYS)
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as ends:
        say(workspace, "answer_request", request=await asked_in(workspace, session), decisions=[decision])
        told = results(await ends)["c1"]
    assert text_of(workspace) == "one\ntwo\n3\n"
    assert told["edited_arguments"]["content"] == "one\ntwo\n3\n"
    assert told["notice"] == "human:dana approved this call, with the comment: Declined: lines 1."
    assert told["result"]["version"] == 2


@pytest.mark.parametrize("is_approved", [True, False])
async def test_what_was_said_is_not_lost_where_the_call_is_asked_about_again(
    workspace: Workspace, alice: Toolbox, is_approved: bool
) -> None:
    write = {"filepath": "plan.md", "content": "mine\n", "message": "m"}
    agent = writer(alice, calling(call("collab_write", "c1", **write)), SAYS)
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as ends:
        first = await asked_in(workspace, session)
        ok(workspace.tools("bob"), "collab_write", filepath="plan.md", content="theirs\n", message="m")
        said = [{"call_id": "c1", "approved": True, "reason": "Line 1: well done"}]
        say(workspace, "answer_request", request=first, decisions=said)
        second = await asked_again(workspace, session, first)
        say(workspace, "answer_request", request=second, approved=is_approved)
        told = results(await ends)["c1"]
    assert "human:dana approved this call, with the comment: Line 1: well done" in told["notice"]
    assert ("was approved, but its changes had become different from those" in told["notice"]) == is_approved


async def test_what_was_said_is_told_with_the_failure_of_a_call(workspace: Workspace) -> None:
    def fail(arguments: Mapping[str, Json]) -> Json:
        raise OSError("no such host")

    model = Model(calling(call("release", "c1")), SAYS)
    agent = ChatAgent(offered({"release": fail}), model_runtime=model, policies=Policies(default="ask"))
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as ends:
        said = [{"call_id": "c1", "approved": True, "reason": "but only once"}]
        say(workspace, "answer_request", request=await asked_in(workspace, session), decisions=said)
        told = results(await ends)["c1"]
    assert told["notice"] == "human:dana approved this call, with the comment: but only once"
    assert "no such host" in json.dumps(told["result"])


async def test_a_changed_call_that_was_cut_off_after_it_wrote_is_not_asked_about_again(
    workspace: Workspace, alice: Toolbox
) -> None:
    (real,) = (each for each in agent_tools(alice) if each.name == "collab_write")
    written = asyncio.Event()

    async def write_and_wait(arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
        await asyncio.to_thread(real.run, arguments, origin)
        written.set()
        never: asyncio.Future[Json] = asyncio.Future()
        return await never

    held = replace(real, run=write_and_wait)
    write: dict[str, Json] = {"filepath": "plan.md", "content": "1\n2\n", "message": "m"}
    taken = json.dumps({**write, "content": "1\n"})
    model = Model(calling(call("collab_write", "c1", **write)), SAYS)
    agent = ChatAgent([held], model_runtime=model, policies=ASK)
    async with (
        workspace.sessions.begin("alice", agent, messages=HELLO, session_id="s1") as session,
        at_work(session),
    ):
        decision = {"call_id": "c1", "approved": True, "reason": "Declined: lines 2.", "arguments": taken}
        say(workspace, "answer_request", request=await asked_in(workspace, session), decisions=[decision])
        await written.wait()
    async with workspace.sessions.resume("alice", "s1", writer(alice, SAYS)) as session:
        say(workspace, "pause_agent", agent_id="alice")
        say(workspace, "resume_agent", agent_id="alice")
        deliver(workspace, session)
        told = results(await asyncio.wait_for(session.run(), 20))["c1"]
    assert (told["result"]["success"], told["result"]["version"]) == (True, 1)
    assert "Declined: lines 2." in told["notice"]
    assert text_of(workspace) == "1\n"
