"""Calls that a person has to approve of: in the client where it can ask, else in the dashboard, and not at all
without an answer."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from calls import ok
from clock import HOUR, JumpingClock, JumpingMonotonicClock
from mcp import Client, MCPError, types
from people.conftest import close
from runtime.scripted import until
from serving.clients import called, over_http, refused, serving, within
from serving.test_budgets import use_up_budget
from watchroom import Toolbox, Workspace
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted, SessionEnded
from watchroom.agents.clients.session import ClientSession
from watchroom.errors import JournalError
from watchroom.features.policy.grants import GrantChoice
from watchroom.features.requests.rows import PendingCall, Request
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import RowFilter
from watchroom.model import Row
from watchroom.serving.approvals import APPROVAL_SECONDS
from zones.test_open_requests import fill_open_requests

pytestmark = pytest.mark.slow(4)

ERAS = ["auto", "legacy"]
"""The protocol as it is, and as older clients speak it."""
WRITE = {"filepath": "plan.md", "content": "x\n", "message": "m"}


def saying(action: str, content: dict[str, Any] | None = None, asked: list[str] | None = None) -> Any:
    """What a client's person does with a form."""

    async def answer(context: Any, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        if asked is not None:
            asked.append(params.message)
        return types.ElicitResult(action=action, content=content)  # type: ignore[arg-type]

    return answer


def requests_of(workspace: Workspace) -> list[Row]:
    rows = workspace.journal.rows_before(10**9, only=RowFilter(zone="request"))
    return [row for row in reversed(rows) if row.version is not None]


def written(workspace: Workspace) -> int:
    head = workspace.journal.head("collab", "plan.md")
    return (head.version or 0) if head else 0


@pytest.mark.parametrize("era", ERAS)
async def test_the_clients_person_approves(workspace: Workspace, alice: Toolbox, era: str) -> None:
    asked: list[str] = []
    client_is = {"mode": era, "elicitation_callback": saying("accept", {"approved": True}, asked)}
    async with within(workspace, alice, approval_tools=["collab_write"], client=client_is) as client:
        await called(client, "collab_list")
        assert (await called(client, "collab_write", **WRITE))["version"] == 1
    (message,) = asked
    assert "collab_write" in message
    assert "plan.md" in message
    opened, ended = requests_of(workspace)
    assert (opened.actor, ended.actor) == ("alice", "human:at alice")


@pytest.mark.parametrize("era", ERAS)
async def test_a_granted_call_is_made_without_a_form(workspace: Workspace, alice: Toolbox, era: str) -> None:
    forms: list[str] = []
    client_is = {"mode": era, "elicitation_callback": saying("decline", None, forms)}
    shown = Request("approve", calls=(PendingCall("call", "collab_write", json.dumps(WRITE)),))
    asked = workspace.requests.ask(CallContext("alice"), "alice/mcp/shown", shown)
    workspace.grants.make(CallContext("human:dana"), asked.seq, GrantChoice("place", 1, 3600))
    async with within(workspace, alice, approval_tools=["collab_write"], client=client_is) as client:
        assert (await called(client, "collab_write", **WRITE))["version"] == 1
        assert forms == []
        # It is used up.
        assert (await refused(client, "collab_write", **WRITE))["error"] == "call_rejected"
    assert len(forms) == 1
    assert written(workspace) == 1


async def test_in_a_closed_workspace_the_clients_word_is_no_answer(
    workspace: Workspace, alice: Toolbox
) -> None:
    close(workspace)
    client_is = {"elicitation_callback": saying("accept", {"approved": True})}
    tools = ["collab_write"]
    async with within(workspace, alice, approval_tools=tools, seconds=0.2, client=client_is) as client:
        assert (await refused(client, "collab_write", **WRITE))["error"] == "call_unanswered"
    assert written(workspace) == 0


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("action", "content"), [("decline", None), ("accept", {"approved": False}), ("accept", {})]
)
async def test_the_clients_person_does_not(
    workspace: Workspace, alice: Toolbox, era: str, action: str, content: dict[str, Any] | None
) -> None:
    client_is = {"mode": era, "elicitation_callback": saying(action, content)}
    async with within(workspace, alice, approval_tools=["collab_write"], client=client_is) as client:
        assert (await refused(client, "collab_write", **WRITE))["error"] == "call_rejected"
    assert written(workspace) == 0
    (row,) = [each for each in workspace.journal.rows(limit=1000) if each.error == "call_rejected"]
    assert (row.tool, row.outcome, workspace.journal.content(row.seq)) == ("collab_write", "denied", "x\n")


@pytest.mark.parametrize("era", ERAS)
async def test_without_an_answer_the_call_is_not_made(workspace: Workspace, alice: Toolbox, era: str) -> None:
    for person in ({}, {"elicitation_callback": saying("cancel")}):
        client_is = {"mode": era, **person}
        async with within(
            workspace, alice, approval_tools=["collab_write"], seconds=0.2, client=client_is
        ) as client:
            assert (await refused(client, "collab_write", **WRITE))["error"] == "call_unanswered"
    assert written(workspace) == 0
    assert {row.detail.get("outcome") for row in requests_of(workspace) if row.version == 2} == {"expired"}


@pytest.mark.sqlite("A server has its own clock.")
async def test_a_call_ends_unanswered_when_the_clock_jumps_past_its_deadline(
    workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = JumpingClock(monkeypatch)
    async with within(workspace, alice, approval_tools=["collab_write"]) as client:
        call = asyncio.create_task(refused(client, "collab_write", **WRITE))
        await until(lambda: len(requests_of(workspace)) == 1)
        clock.ahead = HOUR
        assert (await call)["error"] == "call_unanswered"
    (number,) = [row.seq for row in requests_of(workspace) if row.version == 1]
    person = workspace.tools_for_human("dana")
    late = person.dispatch_tool_call("answer_request", {"request": number, "approved": True})
    assert late["error"] == "request_expired"
    assert written(workspace) == 0


@pytest.mark.parametrize("era", ERAS)
async def test_the_dashboard_answers_where_the_client_cannot_ask(
    workspace: Workspace, alice: Toolbox, era: str
) -> None:
    person = workspace.tools_for_human("dana")

    async def answers(**decision: object) -> None:
        await until(lambda: len(requests_of(workspace)) % 2 == 1)
        number = requests_of(workspace)[-1].seq
        await asyncio.to_thread(ok, person, "answer_request", request=number, **decision)

    async with within(workspace, alice, approval_tools=["collab_write"], client={"mode": era}) as client:
        approving = asyncio.create_task(answers(approved=True))
        assert (await called(client, "collab_write", **WRITE))["version"] == 1
        await approving
        rejecting = asyncio.create_task(answers(approved=False, reason="not on a Friday"))
        said = await refused(client, "collab_write", **WRITE, expected_version=1)
        assert "not on a Friday" in said["message"]
        await rejecting
        changed = [
            {
                "call_id": "call",
                "approved": True,
                "arguments": '{"filepath": "other.md", "content": "y", "message": "m"}',
            }
        ]
        editing = asyncio.create_task(answers(decisions=changed))
        assert (await called(client, "collab_write", **WRITE))["filepath"] == "other.md"
        await editing
    assert written(workspace) == 1


async def test_a_client_reads_what_was_changed_and_said_of_its_approved_call(
    workspace: Workspace, alice: Toolbox
) -> None:
    person = workspace.tools_for_human("dana")
    ok(alice, "collab_write", **{**WRITE, "content": "one\ntwo\n"})

    async def answers() -> None:
        await until(lambda: len(requests_of(workspace)) == 1)
        taken = json.dumps({**WRITE, "content": "one\ntwo\n3\n", "expected_version": 1})
        decision = {"call_id": "call", "approved": True, "reason": "Declined: lines 1.", "arguments": taken}
        number = requests_of(workspace)[0].seq
        await asyncio.to_thread(ok, person, "answer_request", request=number, decisions=[decision])

    async with within(workspace, alice, approval_tools=["collab_write"]) as client:
        answering = asyncio.create_task(answers())
        asked = {**WRITE, "content": "1\ntwo\n3\n", "expected_version": 1}
        result = await client.call_tool("collab_write", asked)
        await answering
    assert not result.is_error
    notice, _ = (each.text for each in result.content if isinstance(each, types.TextContent))
    assert "human:dana approved this call with edited arguments: content." in notice
    assert "human:dana approved this call, with the comment: Declined: lines 1." in notice
    head = workspace.journal.head("collab", "plan.md")
    assert head is not None
    assert workspace.journal.content(head.seq) == "one\ntwo\n3\n"


async def test_an_approval_is_for_one_call_and_is_used_once(workspace: Workspace, alice: Toolbox) -> None:
    client_is = {"elicitation_callback": saying("accept", {"approved": True})}
    async with within(workspace, alice, approval_tools=["collab_write"], client=client_is) as client:
        await called(client, "collab_write", **WRITE)
        state = requests_of(workspace)[0].path
        session = client.session
        other = {**WRITE, "content": "other\n", "expected_version": 1}
        for given in (other, {**WRITE, "expected_version": 1}):
            answer = await session.call_tool(
                "collab_write", given, request_state=state, allow_input_required=True
            )
            assert isinstance(answer, types.InputRequiredResult), answer
        again = await session.call_tool("collab_write", WRITE, request_state=state, allow_input_required=True)
        assert isinstance(again, types.CallToolResult)
        assert again.structured_content["version"] == 1
    assert written(workspace) == 1


def answer_to(state: str) -> dict[str, Any]:
    """What a client sends with the call again once its person approved the request at ``state``."""
    approved = types.ElicitResult(action="accept", content={"approved": True})
    return {"request_state": state, "input_responses": {"approve": approved}, "allow_input_required": True}


async def test_an_answer_that_comes_too_late_ends_the_call_at_once(
    workspace: Workspace, alice: Toolbox
) -> None:
    client_is = {"elicitation_callback": saying("cancel")}
    async with (
        asyncio.timeout(20),
        within(workspace, alice, approval_tools=["collab_write"], client=client_is, seconds=0.01) as client,
    ):
        session = client.session
        asked = await session.call_tool("collab_write", WRITE, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
        (request,) = requests_of(workspace)
        workspace.requests.expire(request.path)
        said = await session.call_tool("collab_write", WRITE, **answer_to(request.path))
    assert isinstance(said, types.CallToolResult)
    assert said.structured_content["error"] == "call_unanswered"
    assert written(workspace) == 0


async def test_an_answer_to_a_request_that_the_server_did_not_ask_approves_nothing(
    workspace: Workspace, alice: Toolbox
) -> None:
    call = PendingCall("call", "collab_write", json.dumps(WRITE))
    workspace.requests.ask(CallContext("alice"), "alice/mcp/planted", Request("approve", calls=(call,)))
    client_is = {"elicitation_callback": saying("cancel")}
    async with within(workspace, alice, approval_tools=["collab_write"], client=client_is) as client:
        said = await client.session.call_tool("collab_write", WRITE, **answer_to("alice/mcp/planted"))
    assert isinstance(said, types.InputRequiredResult)
    assert written(workspace) == 0


async def test_a_flush_is_asked_about_as_what_it_writes(workspace: Workspace, alice: Toolbox) -> None:
    async with within(workspace, alice, approval_tools=["collab_write"], seconds=0.1) as client:
        await called(client, "open_buffer", source="collab", path="plan.md")
        await called(client, "plan_append", text="around\n")
        assert (await refused(client, "plan_flush"))["error"] == "call_unanswered"
    assert written(workspace) == 0


@pytest.mark.parametrize("era", ERAS)
async def test_what_changed_after_a_person_looked_is_asked_about_again(
    workspace: Workspace, alice: Toolbox, era: str
) -> None:
    asked: list[str] = []

    async def approves(context: Any, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        asked.append(params.message)
        if len(asked) == 1:
            # Beside the client somebody goes on in the buffer while its person looks.
            await asyncio.to_thread(ok, workspace.tools("alice"), "plan_append", text="late\n")
        return types.ElicitResult(action="accept", content={"approved": True})

    client_is = {"mode": era, "elicitation_callback": approves}
    async with within(workspace, alice, approval_tools=["collab_write"], client=client_is) as client:
        await called(client, "open_buffer", source="collab", path="plan.md")
        await called(client, "plan_append", text="seen\n")
        result = await client.call_tool("plan_flush", {})
    assert not result.is_error
    first, second = asked
    assert "+seen" in first
    assert "+late" not in first
    assert "+seen\n+late" in second
    assert written(workspace) == 1
    opened = [row for row in requests_of(workspace) if row.version == 1]
    sums = [workspace.requests.read(row).calls[0].checksum for row in opened]
    assert len(set(sums)) == 2
    assert isinstance(result.content[0], types.TextContent)
    assert "approved" in result.content[0].text


async def test_a_resource_is_no_way_around(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "collab_write", **WRITE)
    async with within(workspace, alice, approval_tools=["collab_read"]) as client:
        with pytest.raises(MCPError, match="collab_read"):
            await client.read_resource("watchroom://collab/plan.md")
        await client.read_resource("watchroom://history/plan.md")


async def test_over_http_as_well(workspace: Workspace) -> None:
    token = workspace.access.create("human:dana", "alice")
    person = workspace.tools_for_human("dana")

    async def approves() -> None:
        await until(lambda: len(requests_of(workspace)) == 1)
        number = requests_of(workspace)[0].seq
        await asyncio.to_thread(ok, person, "answer_request", request=number, approved=True)

    with serving(workspace, approval_tools=["collab_write"]) as url:
        async with over_http(url, token) as client:
            approving = asyncio.create_task(approves())
            assert (await called(client, "collab_write", **WRITE))["version"] == 1
            await approving


async def test_a_server_that_is_stopped_waits_for_no_answer(workspace: Workspace) -> None:
    token = workspace.access.create("human:dana", "alice")
    served = ExitStack()
    url = served.enter_context(serving(workspace, approval_tools=["collab_write"]))

    async def asks() -> None:
        async with over_http(url, token) as client:
            await called(client, "collab_write", **WRITE)

    approvals = asyncio.create_task(asks())
    await until(lambda: len(requests_of(workspace)) == 1)
    async with asyncio.timeout(30):
        await asyncio.to_thread(served.close)
    assert requests_of(workspace)[-1].detail["outcome"] == "withdrawn"
    assert written(workspace) == 0
    approvals.cancel()
    await asyncio.gather(approvals, return_exceptions=True)


def client_session(workspace: Workspace) -> ClientSession:
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude"))
    session.record(PromptSubmitted("Go"))
    return session


async def says(workspace: Workspace, tool: str, **arguments: object) -> None:
    await asyncio.to_thread(ok, workspace.tools_for_human("dana"), tool, **arguments)


async def answers_newest(workspace: Workspace, **answer: object) -> None:
    number = [row.seq for row in requests_of(workspace) if row.version == 1][-1]
    await says(workspace, "answer_request", request=number, **answer)


async def waiting_write(workspace: Workspace, client: Client) -> asyncio.Task[types.CallToolResult]:
    """A write that waits for its approval."""
    known = len(requests_of(workspace))
    call = asyncio.create_task(client.call_tool("collab_write", WRITE))
    await until(lambda: len(requests_of(workspace)) > known)
    return call


def error_of(result: types.CallToolResult) -> object:
    return (result.structured_content or {}).get("error")


async def test_an_approved_call_waits_until_its_paused_agent_is_resumed(
    workspace: Workspace, alice: Toolbox
) -> None:
    client_session(workspace)
    async with within(workspace, alice, approval_tools=["collab_write"]) as client:
        call = await waiting_write(workspace, client)
        await says(workspace, "pause_agent", agent_id="alice")
        await answers_newest(workspace, approved=True)
        assert not (await asyncio.wait({call}, timeout=1.2))[0]
        assert written(workspace) == 0
        await says(workspace, "resume_agent", agent_id="alice")
        assert error_of(await call) is None
    assert written(workspace) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_an_approval_after_the_client_has_cancelled_makes_no_call(
    workspace: Workspace, alice: Toolbox, era: str
) -> None:
    async with within(workspace, alice, approval_tools=["collab_write"], client={"mode": era}) as client:
        call = await waiting_write(workspace, client)
        call.cancel()
        await until(lambda: requests_of(workspace)[-1].version == 2)
        (asked, _) = requests_of(workspace)
        late = {"request": asked.seq, "approved": True}
        said = await asyncio.to_thread(
            workspace.tools_for_human("dana").dispatch_tool_call, "answer_request", late
        )
        assert said["error"] == "request_closed"
        await called(client, "collab_list")
    assert written(workspace) == 0


async def test_a_call_whose_question_the_journal_refuses_is_not_made(
    workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **more: Any) -> Any:
        raise JournalError(reason="the disk is full")

    monkeypatch.setattr(workspace.requests, "ask", refuse)
    async with within(workspace, alice, approval_tools=["collab_write"]) as client:
        with pytest.raises(MCPError):
            await client.call_tool("collab_write", WRITE)
    assert written(workspace) == 0


async def test_a_call_that_waits_in_a_closed_workspace_is_not_made(
    workspace: Workspace, alice: Toolbox, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait forever either."""
    clock = JumpingMonotonicClock(monkeypatch)
    async with within(workspace, alice, approval_tools=["collab_write"]) as client:
        call = await waiting_write(workspace, client)
        await asyncio.to_thread(workspace.close)
        for _ in range(100):
            # A wait that begins after a jump ends after the next one.
            clock.ahead += APPROVAL_SECONDS
            if (await asyncio.wait({call}, timeout=0.1))[0]:
                break
        assert call.done()
        with pytest.raises(MCPError):
            await call
    with Workspace.open(root) as again:
        assert written(again) == 0


async def test_a_rejected_call_of_a_paused_agent_waits_no_longer(
    workspace: Workspace, alice: Toolbox
) -> None:
    client_session(workspace)
    async with within(workspace, alice, approval_tools=["collab_write"]) as client:
        call = await waiting_write(workspace, client)
        await says(workspace, "pause_agent", agent_id="alice")
        await answers_newest(workspace, approved=False)
        assert error_of(await call) == "call_rejected"


async def test_an_approved_call_is_not_made_in_a_pause_that_runs_out(
    workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = JumpingMonotonicClock(monkeypatch)
    client_session(workspace)
    async with within(workspace, alice, approval_tools=["collab_write"]) as client:
        call = await waiting_write(workspace, client)
        await says(workspace, "pause_agent", agent_id="alice")
        await answers_newest(workspace, approved=True)
        assert not (await asyncio.wait({call}, timeout=0.3))[0]
        clock.ahead = APPROVAL_SECONDS
        assert error_of(await call) == "agent_paused"
    assert written(workspace) == 0


@pytest.mark.parametrize("is_obeyed", [False, True])
async def test_the_end_of_a_paused_session_releases_no_call(
    workspace: Workspace, alice: Toolbox, is_obeyed: bool
) -> None:
    session = client_session(workspace)
    async with within(workspace, alice, approval_tools=["collab_write"]) as client:
        call = await waiting_write(workspace, client)
        await says(workspace, "pause_agent", agent_id="alice")
        await answers_newest(workspace, approved=True)
        assert not (await asyncio.wait({call}, timeout=1.2))[0]
        if is_obeyed:
            await asyncio.to_thread(session.record, SessionEnded("cancelled", "dana"))
        else:
            await says(workspace, "cancel_agent", agent_id="alice")
        assert error_of(await call) == "agent_paused"
    assert written(workspace) == 0


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_its_clients_person_approved_waits_for_a_resume(
    workspace: Workspace, alice: Toolbox, era: str
) -> None:
    client_session(workspace)

    async def approves(context: Any, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        await says(workspace, "pause_agent", agent_id="alice")
        return types.ElicitResult(action="accept", content={"approved": True})

    client_is = {"mode": era, "elicitation_callback": approves}
    async with within(workspace, alice, approval_tools=["collab_write"], client=client_is) as client:
        call = await waiting_write(workspace, client)
        assert not (await asyncio.wait({call}, timeout=1.5))[0]
        assert written(workspace) == 0
        await says(workspace, "resume_agent", agent_id="alice")
        assert error_of(await call) is None
    assert written(workspace) == 1


async def test_an_approved_call_of_an_agent_that_was_stopped_meanwhile_is_refused(
    workspace: Workspace, alice: Toolbox
) -> None:
    async with within(workspace, alice, approval_tools=["collab_write"]) as client:
        call = await waiting_write(workspace, client)
        await use_up_budget(workspace)
        assert await asyncio.to_thread(workspace.budgets.hold_call, "alice") is not None
        approval, budget = [row.seq for row in requests_of(workspace)]
        await says(workspace, "answer_request", request=budget, values=["stop"])
        await says(workspace, "answer_request", request=approval, approved=True)
        assert error_of(await call) == "budget_reached"
    assert written(workspace) == 0


async def test_a_stop_that_comes_in_a_pause_after_the_approval_counts(
    workspace: Workspace, alice: Toolbox
) -> None:
    await use_up_budget(workspace)
    await says(workspace, "set_budget", scope="agent", measure="cost", most=1)
    client_session(workspace)
    async with within(workspace, alice, approval_tools=["collab_write"]) as client:
        call = await waiting_write(workspace, client)
        await says(workspace, "pause_agent", agent_id="alice")
        await answers_newest(workspace, approved=True)
        assert not (await asyncio.wait({call}, timeout=1.2))[0]
        await says(workspace, "set_budget", scope="agent", measure="cost", most=0.4)
        assert await asyncio.to_thread(workspace.budgets.hold_call, "alice") is not None
        await answers_newest(workspace, values=["stop"])
        await says(workspace, "resume_agent", agent_id="alice")
        assert error_of(await call) == "budget_reached"
    assert written(workspace) == 0


async def test_a_budget_that_allowed_this_call_is_not_asked_about_again(
    workspace: Workspace, alice: Toolbox
) -> None:
    await use_up_budget(workspace)
    async with within(workspace, alice, approval_tools=["collab_write"]) as client:
        call = await waiting_write(workspace, client)
        await answers_newest(workspace, values=["once"])
        await until(lambda: len(requests_of(workspace)) == 3)
        await answers_newest(workspace, approved=True)
        assert error_of(await call) is None
    assert written(workspace) == 1
    assert len([row for row in requests_of(workspace) if row.version == 1]) == 2


async def test_a_stop_after_once_counts_for_the_call_that_waits_for_its_approval(
    workspace: Workspace, alice: Toolbox
) -> None:
    await use_up_budget(workspace)
    async with within(workspace, alice, approval_tools=["collab_write"]) as client:
        call = await waiting_write(workspace, client)
        await answers_newest(workspace, values=["once"])
        await until(lambda: len(requests_of(workspace)) == 3)
        approval = requests_of(workspace)[-1].seq
        # Another call of the agent reaches the budget again.
        assert await asyncio.to_thread(workspace.budgets.hold_call, "alice") is not None
        await answers_newest(workspace, values=["stop"])
        await says(workspace, "answer_request", request=approval, approved=True)
        assert error_of(await call) == "budget_reached"
    assert written(workspace) == 0


async def test_a_call_of_a_paused_agent_waits_even_if_it_needs_no_approval(
    workspace: Workspace, alice: Toolbox
) -> None:
    client_session(workspace)
    await says(workspace, "pause_agent", agent_id="alice")
    async with within(workspace, alice) as client:
        call = asyncio.create_task(client.call_tool("collab_write", WRITE))
        assert not (await asyncio.wait({call}, timeout=1.2))[0]
        assert written(workspace) == 0
        await says(workspace, "resume_agent", agent_id="alice")
        assert error_of(await call) is None
    async with within(workspace, alice, seconds=0.2) as client:
        await says(workspace, "pause_agent", agent_id="alice")
        assert (await refused(client, "collab_list"))["error"] == "agent_paused"


async def test_a_pause_while_a_budget_is_asked_about_holds_the_call(
    workspace: Workspace, alice: Toolbox
) -> None:
    client_session(workspace)
    await use_up_budget(workspace)
    async with within(workspace, alice) as client:
        call = await waiting_write(workspace, client)
        await says(workspace, "pause_agent", agent_id="alice")
        await answers_newest(workspace, values=["once"])
        assert not (await asyncio.wait({call}, timeout=1.2))[0]
        assert written(workspace) == 0
        await says(workspace, "resume_agent", agent_id="alice")
        assert error_of(await call) is None


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_nobody_can_be_asked_about_is_refused(
    workspace: Workspace, alice: Toolbox, era: str
) -> None:
    """The agent has too many open requests."""
    asked = await asyncio.to_thread(fill_open_requests, workspace)
    client_is = {"mode": era, "elicitation_callback": saying("accept", {"approved": True})}
    async with within(workspace, alice, approval_tools=["collab_write"], client=client_is) as client:
        assert (await refused(client, "collab_write", **WRITE))["error"] == "too_many_requests"
        assert written(workspace) == 0
        await called(client, "collab_list")
        await asyncio.to_thread(workspace.requests.withdraw, asked[0].path)
        assert (await called(client, "collab_write", **WRITE))["version"] == 1
    (row,) = [each for each in workspace.journal.rows(limit=1000) if each.error == "too_many_requests"]
    assert (row.tool, row.outcome) == ("collab_write", "denied")
