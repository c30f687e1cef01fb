"""Calls that wait for people, as tasks of clients that poll: made once after an approval, and never without."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from calls import ok
from clock import HOUR, JumpingClock
from mcp import Client, MCPError, types
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.types import HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_REQUIRED_CLIENT_CAPABILITY
from people.conftest import close
from pydantic import TypeAdapter
from runtime.scripted import until
from service_process import service_pid
from serving.clients import over_http, over_stdio, serving, within
from serving.test_budgets import use_up_budget
from serving.test_tool_approvals import ERAS, WRITE, requests_of, saying, written
from watchroom import Toolbox, Workspace
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted
from watchroom.agents.clients.session import ClientSession
from watchroom.features.policy.grants import GrantChoice
from watchroom.features.requests.rows import Answer, CallDecision, PendingCall, Request
from watchroom.kernel.call_context import CallContext
from watchroom.serving.approvals import CallApprovals
from watchroom.serving.call_tasks import EXTENSION, CallTasks
from zones.test_open_requests import fill_open_requests

pytestmark = pytest.mark.slow(4)

ASKED = ["collab_write"]
ANY: TypeAdapter[Any] = TypeAdapter(dict[str, Any])


class Handle(types.Result):
    result_type: Literal["task"]
    task_id: str
    status: str
    ttl_ms: int
    poll_interval_ms: int


class Tasks(ClientExtension):
    """A client that supports tasks, and leaves polling to the test."""

    identifier = EXTENSION

    def claims(self) -> Sequence[ResultClaim[Any]]:
        async def resolve(handle: Handle, context: ClaimContext) -> types.CallToolResult:
            raise AssertionError(handle)

        return [ResultClaim(result_type="task", model=Handle, resolve=resolve)]


class TaskRequest(types.Request[dict[str, Any], str]):
    name_param: ClassVar[str | None] = "taskId"


class Misled(types.Request[dict[str, Any], str]):
    name_param: ClassVar[str | None] = "wrong"


POLLING = {"extensions": [Tasks()]}


async def begun(client: Client, tool: str = "collab_write", **arguments: object) -> str:
    """The id of the task that a call becomes."""
    handle = await client.session.call_tool(tool, dict(arguments or WRITE), allow_claimed=True)
    assert isinstance(handle, Handle), handle
    assert (handle.status, handle.poll_interval_ms) == ("working", 1000)
    assert 7_190_000 < handle.ttl_ms <= 7_200_000
    return handle.task_id


async def asks(client: Client, method: str, task: str, **more: object) -> dict[str, Any]:
    request = TaskRequest(method=f"tasks/{method}", params={"taskId": task, **more})
    found: dict[str, Any] = await client.session.send_request(request, ANY)
    assert found["resultType"] == "complete"
    return found


async def state(client: Client, task: str) -> str:
    return str((await asks(client, "get", task))["status"])


def answers(workspace: Workspace, **decision: object) -> None:
    """A person answers the newest request."""
    number = [row.seq for row in requests_of(workspace) if row.detail.get("kind")][-1]
    ok(workspace.tools_for_human("dana"), "answer_request", request=number, **decision)


async def test_an_approved_call_is_made_at_the_next_poll_and_once(
    workspace: Workspace, alice: Toolbox
) -> None:
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        assert EXTENSION in (client.server_capabilities.extensions or {})
        task = await begun(client)
        open_state = await asks(client, "get", task)
        assert (open_state["status"], open_state["statusMessage"]) == (
            "working",
            "A person must approve collab_write.",
        )
        assert written(workspace) == 0
        answers(workspace, approved=True, reason="go on")
        assert written(workspace) == 0
        first, second = [await asks(client, "get", task) for _ in range(2)]
        assert first == second
    assert first["status"] == "completed"
    assert first["createdAt"] < first["lastUpdatedAt"]
    result = types.CallToolResult.model_validate(first["result"])
    assert not result.is_error
    assert result.structured_content["version"] == 1
    assert "go on" in result.content[0].text  # type: ignore[union-attr]
    assert written(workspace) == 1
    assert workspace.verify() == []


async def test_a_rejected_call_is_not_made(workspace: Workspace, alice: Toolbox) -> None:
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        task = await begun(client)
        answers(workspace, approved=False, reason="not on a Friday")
        ended = [await asks(client, "get", task) for _ in range(2)][-1]
    assert (ended["status"], ended["result"]["isError"]) == ("completed", True)
    assert "not on a Friday" in ended["result"]["content"][0]["text"]
    assert written(workspace) == 0
    (row,) = [each for each in workspace.journal.rows(limit=1000) if each.error == "call_rejected"]
    assert (row.tool, row.outcome, workspace.journal.content(row.seq)) == ("collab_write", "denied", "x\n")


async def test_arguments_that_a_person_edited_are_used(workspace: Workspace, alice: Toolbox) -> None:
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        task = await begun(client)
        edited = json.dumps({**WRITE, "filepath": "other.md"})
        answers(workspace, decisions=[{"call_id": "call", "approved": True, "arguments": edited}])
        ended = await asks(client, "get", task)
    assert ended["result"]["structuredContent"]["filepath"] == "other.md"
    assert "filepath" in ended["result"]["content"][0]["text"]
    assert written(workspace) == 0


@pytest.mark.sqlite("A server has its own clock.")
async def test_without_an_answer_the_call_is_never_made(
    workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = JumpingClock(monkeypatch)
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        polled, silent = await begun(client), await begun(client)
        clock.ahead = 2 * HOUR
        ended = await asks(client, "get", polled)
        assert ended["result"]["structuredContent"]["error"] == "call_unanswered"
        # Nobody polled the other task, and a person answers too late.
        person = workspace.tools_for_human("dana")
        number = requests_of(workspace)[1].seq
        late = person.dispatch_tool_call("answer_request", {"request": number, "approved": True})
        assert late["error"] == "request_expired"
        assert (await asks(client, "get", silent))["result"]["isError"] is True
    assert written(workspace) == 0


@pytest.mark.sqlite("A server has its own clock.")
async def test_an_approval_that_is_not_used_in_time_expires(
    workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = JumpingClock(monkeypatch)
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        task = await begun(client)
        answers(workspace, approved=True)
        clock.ahead = 2 * HOUR
        ended = await asks(client, "get", task)
        assert ended["result"]["structuredContent"]["error"] == "approval_expired"
        clock.ahead = 0
        assert await asks(client, "get", task) == ended
    assert written(workspace) == 0


async def test_an_agent_that_was_stopped_meanwhile_makes_no_call(
    workspace: Workspace, alice: Toolbox
) -> None:
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        task = await begun(client)
        answers(workspace, approved=True)
        await use_up_budget(workspace)
        assert workspace.budgets.hold_call("alice") is not None
        answers(workspace, values=["stop"])
        ended = await asks(client, "get", task)
        assert ended["result"]["structuredContent"]["error"] == "budget_reached"
        assert await asks(client, "get", task) == ended
    assert written(workspace) == 0


async def test_the_call_of_a_paused_agent_waits_for_its_resume(workspace: Workspace, alice: Toolbox) -> None:
    ClientSession(workspace, "alice", "s-1", ClientInfo("claude")).record(PromptSubmitted("Go"))
    person = workspace.tools_for_human("dana")
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        task = await begun(client)
        answers(workspace, approved=True)
        ok(person, "pause_agent", agent_id="alice")
        for _ in range(2):
            held = await asks(client, "get", task)
            assert (held["status"], "paused" in held["statusMessage"]) == ("working", True)
        assert written(workspace) == 0
        ok(person, "resume_agent", agent_id="alice")
        assert (await asks(client, "get", task))["status"] == "completed"
    assert written(workspace) == 1


async def test_cancelling_withdraws_the_request(workspace: Workspace, alice: Toolbox) -> None:
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        task = await begun(client)
        for _ in range(2):
            await asks(client, "cancel", task)
        assert await state(client, task) == "cancelled"
        opened, ended = requests_of(workspace)
        assert (ended.tool, ended.detail["outcome"]) == ("withdraw_request", "withdrawn")
        person = workspace.tools_for_human("dana")
        late = person.dispatch_tool_call("answer_request", {"request": opened.seq, "approved": True})
        assert late["error"] == "request_closed"
        assert await state(client, task) == "cancelled"
    assert written(workspace) == 0


async def test_an_approved_call_that_was_cancelled_before_it_began_is_never_made(
    workspace: Workspace, alice: Toolbox
) -> None:
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        task = await begun(client)
        answers(workspace, approved=True)
        await asks(client, "cancel", task)
        assert await state(client, task) == "cancelled"
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        assert await state(client, task) == "cancelled"
    assert written(workspace) == 0


async def test_a_call_that_was_made_cannot_be_cancelled(workspace: Workspace, alice: Toolbox) -> None:
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        task = await begun(client)
        answers(workspace, approved=True)
        assert await state(client, task) == "completed"
        await asks(client, "cancel", task)
        assert await state(client, task) == "completed"


async def test_a_task_outlives_connection_and_server_for_its_agent_only(
    workspace: Workspace, bob: Toolbox
) -> None:
    tokens = {agent: workspace.access.create("human:dana", agent) for agent in ("alice", "bob")}
    with serving(workspace, approval_tools=ASKED) as url:
        async with over_http(url, tokens["alice"], POLLING) as client:
            task = await begun(client)
        async with over_http(url, tokens["alice"], POLLING) as client:
            for header in ("f" * 32, None):
                unnamed = types.Request[dict[str, Any], str](method="tasks/get", params={"taskId": task})
                misled = Misled(method="tasks/get", params={"taskId": task, "wrong": header})
                with pytest.raises(MCPError) as refused:
                    await client.session.send_request(misled if header else unnamed, ANY)
                assert refused.value.error.code == HEADER_MISMATCH
    # Both have ended, and the request is still open.
    assert len(requests_of(workspace)) == 1
    with serving(workspace, approval_tools=ASKED) as url:
        async with over_http(url, tokens["bob"], POLLING) as other:
            for method in ("get", "cancel", "update"):
                with pytest.raises(MCPError) as refused:
                    await asks(other, method, task, inputResponses={})
                assert refused.value.error.code == INVALID_PARAMS
        async with over_http(url, tokens["alice"], POLLING) as client:
            assert await state(client, task) == "working"
    assert written(workspace) == 0
    answers(workspace, approved=True)
    assert written(workspace) == 0
    with serving(workspace, approval_tools=ASKED) as url:
        async with over_http(url, tokens["alice"], POLLING) as client:
            assert await state(client, task) == "completed"
    assert written(workspace) == 1


@pytest.mark.sqlite("The server of stdio opens the folder.")
async def test_a_restarted_service_knows_the_task(workspace: Workspace) -> None:
    root = Path(workspace.root)
    async with over_stdio(root, "alice", "--ask", "collab_write", client=POLLING) as client:
        task = await begun(client)
    workspace.close()
    with Workspace.open(root) as again:
        answers(again, approved=True)
        async with within(again, again.tools("alice"), client=POLLING) as client:
            assert await state(client, task) == "completed"
        assert written(again) == 1
        assert again.verify() == []


@pytest.mark.sqlite("The server of stdio opens the folder.")
async def test_a_service_that_is_killed_between_two_polls_makes_the_call_once(workspace: Workspace) -> None:
    root = Path(workspace.root)
    async with over_stdio(root, "alice", "--ask", "collab_write", client=POLLING) as client:
        task = await begun(client)
        assert await state(client, task) == "working"
        await kill_service()
        answers(workspace, approved=True)
        assert written(workspace) == 0
        assert await state(client, task) == "completed"
        await kill_service()
        assert await state(client, task) == "completed"
    assert written(workspace) == 1
    assert workspace.verify() == []


async def kill_service() -> None:
    """Kill the service. The relay of the client starts another one."""
    killed = service_pid()
    os.kill(killed, signal.SIGKILL)
    await until(lambda: not Path(f"/proc/{killed}").exists() or service_pid() != killed)


async def test_the_clients_person_answers(workspace: Workspace, alice: Toolbox) -> None:
    client_is = {**POLLING, "elicitation_callback": saying("cancel")}
    async with within(workspace, alice, approval_tools=ASKED, client=client_is) as client:
        task = await begun(client)
        asked = await asks(client, "get", task)
        assert asked["status"] == "input_required"
        ((key, form),) = asked["inputRequests"].items()
        assert form["method"] == "elicitation/create"
        assert "plan.md" in form["params"]["message"]
        yes = {"action": "accept", "content": {"approved": True}}
        await asks(client, "update", task, inputResponses={"approve-7": yes, "other": {"ignored": True}})
        await asks(client, "update", task, inputResponses={key: {"action": "cancel"}})
        assert await state(client, task) == "input_required"
        with pytest.raises(MCPError):
            await asks(client, "update", task, inputResponses={key: {"action": "perhaps"}})
        await asks(client, "update", task, inputResponses={key: yes})
        assert written(workspace) == 0
        assert await state(client, task) == "completed"
        # An answer to a question that is answered changes nothing.
        await asks(client, "update", task, inputResponses={key: {"action": "decline"}})
        assert await state(client, task) == "completed"
    assert written(workspace) == 1
    assert [row.actor for row in requests_of(workspace)] == ["alice", "human:at alice"]


async def test_a_client_that_cannot_ask_answers_nothing(workspace: Workspace, alice: Toolbox) -> None:
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        task = await begun(client)
        yes = {"action": "accept", "content": {"approved": True}}
        await asks(client, "update", task, inputResponses={"approve-1": yes})
        assert await state(client, task) == "working"
    assert written(workspace) == 0


async def test_in_a_closed_workspace_the_clients_word_is_no_answer(
    workspace: Workspace, alice: Toolbox
) -> None:
    close(workspace)
    client_is = {**POLLING, "elicitation_callback": saying("cancel")}
    async with within(workspace, alice, approval_tools=ASKED, client=client_is) as client:
        task = await begun(client)
        yes = {"action": "accept", "content": {"approved": True}}
        await asks(client, "update", task, inputResponses={"approve-1": yes})
        assert await state(client, task) == "input_required"
    assert written(workspace) == 0


async def test_what_changed_after_a_person_looked_is_asked_about_again(
    workspace: Workspace, alice: Toolbox
) -> None:
    client_is = {**POLLING, "elicitation_callback": saying("cancel")}
    async with within(workspace, alice, approval_tools=ASKED, client=client_is) as client:
        ok(alice, "open_buffer", source="collab", path="plan.md")
        ok(alice, "plan_append", text="seen\n")
        handle = await client.session.call_tool("plan_flush", {}, allow_claimed=True)
        assert isinstance(handle, Handle)
        ok(alice, "plan_append", text="late\n")
        answers(workspace, approved=True)
        asked = await asks(client, "get", handle.task_id)
        assert asked["status"] == "input_required"
        ((key, form),) = asked["inputRequests"].items()
        assert key == "approve-2"
        assert "+late" in form["params"]["message"]
        assert written(workspace) == 0
        yes = {"action": "accept", "content": {"approved": True}}
        # The answer to the first question does not count for the second.
        await asks(client, "update", handle.task_id, inputResponses={"approve-1": yes})
        assert await state(client, handle.task_id) == "input_required"
        await asks(client, "update", handle.task_id, inputResponses={"approve-2": yes})
        assert await state(client, handle.task_id) == "completed"
    assert written(workspace) == 1


def test_a_poll_or_cancel_that_comes_late_acts_on_the_newest_question(
    workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = CallTasks(workspace, CallApprovals(workspace, ASKED))
    ok(alice, "open_buffer", source="collab", path="plan.md")
    ok(alice, "plan_append", text="seen\n")
    found = tasks._open(alice, "plan_flush", {}, "")
    ok(alice, "plan_append", text="late\n")
    answers(workspace, approved=True)
    outcome = tasks._outcome(found)
    assert outcome is not None
    # Two polls have read the answer. The first asks again, because the text has changed.
    tasks._make(alice, found, outcome)
    newest = tasks._find(alice, found.id)
    assert newest.number == 2
    # The second would make the call with the first approval, as soon as the text is as it was.
    ok(alice, "plan_replace", old_text="late\n", new_text="")
    tasks._make(alice, found, outcome)
    assert written(workspace) == 0
    assert tasks._find(alice, found.id).number == 2
    # The poll of a cancel was before the second question.
    seen, find = [found], tasks._find
    monkeypatch.setattr(tasks, "_find", lambda *given: seen.pop() if seen else find(*given))
    tasks.cancel(alice, found.id)
    ended = workspace.requests.find_end(newest.path)
    assert ended is not None, "people are not asked any more"
    assert ended.detail["outcome"] == "withdrawn"


async def test_a_granted_call_needs_no_task(workspace: Workspace, alice: Toolbox) -> None:
    shown = Request("approve", calls=(PendingCall("call", "collab_write", json.dumps(WRITE)),))
    asked = workspace.requests.ask(CallContext("alice"), "alice/mcp/shown", shown)
    workspace.grants.make(CallContext("human:dana"), asked.seq, GrantChoice("place", 1, 3600))
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        result = await client.session.call_tool("collab_write", WRITE, allow_claimed=True)
    assert isinstance(result, types.CallToolResult)
    assert result.structured_content["version"] == 1


async def test_only_a_request_that_was_made_as_a_task_is_a_task(workspace: Workspace, alice: Toolbox) -> None:
    """Its call would be made a second time."""
    call = PendingCall("call", "collab_write", json.dumps(WRITE))
    names = {"a" * 32: "alice", "b" * 32: "bob"}
    made = Request("approve", calls=(call,))
    asked = workspace.requests.ask(CallContext("alice"), f"alice/mcp/{'a' * 32}", made)
    workspace.requests.answer(CallContext("human:dana"), asked.seq, Answer((CallDecision("call", True),)))
    planted = Request("approve", calls=(call,), metadata={"task": ""})
    workspace.requests.ask(CallContext("bob"), f"alice/mcp/{'b' * 32}", planted)
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        for wrong in (*names, "", "x", "../bob/mcp/x", "é" * 32, "a" * 10_000, "f" * 32):
            request = types.Request[dict[str, Any], str](method="tasks/get", params={"taskId": wrong})
            with pytest.raises(MCPError) as refused:
                await client.session.send_request(request, ANY)
            assert refused.value.error.code == INVALID_PARAMS
    assert written(workspace) == 0


async def test_two_polls_at_once_make_one_call(
    workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins, goes_on = threading.Event(), threading.Event()
    calls: list[str] = []
    dispatch = Toolbox.dispatch_tool_call

    def slow(self: Toolbox, *given: Any, **more: Any) -> Any:
        calls.append(given[0])
        begins.set()
        assert goes_on.wait(20)
        return dispatch(self, *given, **more)

    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        task = await begun(client)
        answers(workspace, approved=True)
        monkeypatch.setattr(Toolbox, "dispatch_tool_call", slow)
        first = asyncio.create_task(asks(client, "get", task))
        await until(begins.is_set)
        second = await asks(client, "get", task)
        # A call that takes long does not hold up the poll, and cannot be cancelled any more.
        assert ((await first)["status"], second["status"]) == ("working", "working")
        assert "running" in second["statusMessage"]
        await asks(client, "cancel", task)
        goes_on.set()
        await until(
            lambda: workspace.requests.find_result("alice", requests_of(workspace)[0].path) is not None
        )
        assert await state(client, task) == "completed"
    assert calls == ["collab_write"]
    assert written(workspace) == 1


async def test_a_server_that_dies_during_the_call_makes_it_once(workspace: Workspace, alice: Toolbox) -> None:
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        task = await begun(client)
        answers(workspace, approved=True)
        path = requests_of(workspace)[0].path
        # The call was made, and its result was not recorded yet.
        checksum = alice.approval_checksum("collab_write", WRITE)
        alice.dispatch_tool_call("collab_write", WRITE, call=path, again=True, approved=checksum)
        assert written(workspace) == 1
        ended = await asks(client, "get", task)
    assert ended["result"]["structuredContent"]["version"] == 1
    assert written(workspace) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_does_not_support_tasks_gets_none(
    workspace: Workspace, alice: Toolbox, era: str
) -> None:
    """It waits as before, and may not ask about tasks."""
    async with within(workspace, alice, approval_tools=ASKED, seconds=0.2, client={"mode": era}) as client:
        result = await client.call_tool("collab_write", WRITE)
        assert result.structured_content["error"] == "call_unanswered"
        for method in ("get", "update", "cancel"):
            request = types.Request[dict[str, Any], str](
                method=f"tasks/{method}", params={"taskId": "a" * 32, "inputResponses": {}}
            )
            with pytest.raises(MCPError) as refused:
                await client.session.send_request(request, ANY)
            expected = METHOD_NOT_FOUND if era == "legacy" else MISSING_REQUIRED_CLIENT_CAPABILITY
            assert refused.value.error.code == expected


async def test_calls_that_need_no_person_are_no_tasks(workspace: Workspace, alice: Toolbox) -> None:
    async with within(workspace, alice, client=POLLING) as client:
        assert (await client.call_tool("collab_write", WRITE)).structured_content["version"] == 1


async def test_messages_and_the_trace_come_with_the_result(workspace: Workspace, alice: Toolbox) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    meta: Any = {"traceparent": parent}

    def handed(actor: str) -> str:
        return "bob: look" if written(workspace) else ""

    given = {"approval_tools": ASKED, "client": POLLING, "take_messages": handed}
    async with within(workspace, alice, **given) as client:  # type: ignore[arg-type]
        handle = await client.session.call_tool("collab_write", WRITE, meta=meta, allow_claimed=True)
        assert isinstance(handle, Handle)
        answers(workspace, approved=True)
        ended = await asks(client, "get", handle.task_id)
    assert ended["result"]["content"][0]["text"] == "bob: look"
    head = workspace.journal.head("collab", "plan.md")
    assert head is not None
    assert parent in head.detail_json


async def test_a_task_that_nobody_can_be_asked_about_is_refused(workspace: Workspace, alice: Toolbox) -> None:
    """The agent has too many open requests: at the call, or as people must be asked again."""
    asked = await asyncio.to_thread(fill_open_requests, workspace)
    async with within(workspace, alice, approval_tools=ASKED, client=POLLING) as client:
        result = await client.session.call_tool("collab_write", WRITE, allow_claimed=True)
        assert isinstance(result, types.CallToolResult)
        assert result.structured_content["error"] == "too_many_requests"
        workspace.requests.withdraw(asked[0].path)
        ok(alice, "open_buffer", source="collab", path="plan.md")
        ok(alice, "plan_append", text="seen\n")
        handle = await client.session.call_tool("plan_flush", {}, allow_claimed=True)
        assert isinstance(handle, Handle)
        ok(alice, "plan_append", text="late\n")
        answers(workspace, approved=True)
        await asyncio.to_thread(fill_open_requests, workspace, 49)
        ended = [await asks(client, "get", handle.task_id) for _ in range(2)]
    assert ended[0] == ended[1]
    assert ended[0]["result"]["structuredContent"]["error"] == "too_many_requests"
    assert written(workspace) == 0
