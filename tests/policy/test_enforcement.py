"""Where the policy is enforced: for each kind of agent, and not for people."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from calls import ok, refused
from mcp import types
from runtime.scripted import at_work, say, until
from runtime.weather import Calls, Model, call, calling, offered
from runtime.working import HELLO, SAYS, asked_in, results
from serving.clients import called, within
from serving.clients import refused as refused_client
from watchroom import Row, Toolbox, Workspace
from watchroom.features.calls.agent_tools import agent_tools
from watchroom.features.calls.reads import read_request
from watchroom.features.requests.rows import POLICY_RULE
from watchroom.features.sessions.runtime import ChatAgent, Policies
from watchroom.features.sessions.view import RequestView
from watchroom.kernel.journal import RowFilter
from watchroom.texts import catalogue
from watchroom_tui.readers.request import RequestPage

PLAN = {"filepath": "plan.md", "content": "x\n", "message": "m"}
SECRET = {"filepath": "secrets/key.md", "content": "x\n", "message": "m"}
DENY_SECRETS = '[[policy.rules]]\nname = "secrets"\npath = "secrets/**"\nverdict = "deny"\n'
ASK_WRITES = '[[policy.rules]]\ntool = "collab_write"\nverdict = "ask"\n'
TEST = '[[policy.rules]]\nname = "trial"\ntool = "*"\nverdict = "deny"\nmode = "test"\n'


def add_rules(root: Path, workspace: Workspace, text: str) -> Row:
    config = root / ".watchroom/config.toml"
    config.write_text(config.read_text() + "\n" + text)
    (row,) = workspace.scan()
    return row


def rows_of(workspace: Workspace, **only: Any) -> list[Row]:
    workspace.flush()
    return workspace.journal.rows_before(10**9, only=RowFilter(**only))


def version_of(workspace: Workspace, path: str) -> int:
    head = workspace.journal.head("collab", path)
    return (head.version or 0) if head else 0


def test_a_denied_call_is_refused_and_a_row_whoever_made_the_rule(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    add_rules(root, workspace, DENY_SECRETS)
    ok(alice, "collab_write", **PLAN)
    refusal = refused(alice, "collab_write", **SECRET)
    assert refusal["error"] == "policy_denied"
    assert "1 (secrets)" in refusal["message"]
    refused(alice, "collab_write", **{**SECRET, "filepath": "open/../secrets/key.md"})
    newest, earlier = rows_of(workspace, outcome="denied")
    assert (earlier.actor, earlier.tool, earlier.path) == ("alice", "collab_write", "secrets/key.md")
    assert {newest.error, earlier.error} == {"policy_denied"}
    assert earlier.detail == {POLICY_RULE: "1 (secrets)"}
    assert workspace.journal.content(earlier.seq) == "x\n"
    ok(workspace.tools_for_human("dana"), "collab_write", **SECRET)


def test_the_flush_of_a_buffer_is_a_write_to_its_source(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    for source in ("collab", "private"):
        ok(alice, "open_buffer", source=source, path="secrets/a.md", name=source)
        ok(alice, f"{source}_append", text="x")
    add_rules(root, workspace, DENY_SECRETS)
    for source in ("collab", "private"):
        assert refused(alice, f"{source}_flush")["error"] == "policy_denied"
    assert version_of(workspace, "secrets/a.md") == 0


def test_a_call_that_needs_approval_is_refused_where_nobody_can_be_asked(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    add_rules(root, workspace, ASK_WRITES)
    assert refused(alice, "collab_write", **PLAN)["error"] == "policy_approval_required"
    assert version_of(workspace, "plan.md") == 0


def test_a_rule_that_is_a_test_only_tells(workspace: Workspace, root: Path, alice: Toolbox) -> None:
    add_rules(root, workspace, TEST)
    ok(alice, "collab_write", **PLAN)
    (row,) = rows_of(workspace, tool="test_policy")
    assert (row.actor, row.outcome, row.version) == ("alice", "ok", None)
    assert "collab_write plan.md" in row.message
    assert "1 (trial)" in row.message
    assert row.detail == {"tool": "collab_write", "rule": 1, "verdict": "deny"}
    assert rows_of(workspace, outcome="denied") == []


def test_a_rule_that_is_not_valid_leaves_the_last_valid_ones_in_force(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    add_rules(root, workspace, DENY_SECRETS)
    row = add_rules(root, workspace, '[[policy.rules]]\nverdict = "maybe"\n')
    assert row.error == "config_invalid"
    assert row.message == "policy.rules 2: verdict = 'maybe' (allow, ask, deny)"
    assert refused(alice, "collab_write", **SECRET)["error"] == "policy_denied"


async def test_a_session_is_refused_or_asked_by_the_rules(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    add_rules(root, workspace, DENY_SECRETS + ASK_WRITES)
    wants = calling(call("collab_write", "c1", **SECRET), call("collab_write", "c2", **PLAN))
    # A rule that denies wins over the agent's own policy, which would ask.
    own = Policies(tools={"collab_write": "ask"})
    agent = ChatAgent(agent_tools(alice), model_runtime=Model(wants, SAYS), policies=own)
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as ends:
        number = await asked_in(workspace, session)
        assert [each.id for each in workspace.requests.find(number).calls] == ["c2"]
        say(workspace, "answer_request", request=number, approved=True)
        state = await ends
    told = results(state)
    assert told["c1"]["error"] == "policy_denied"
    assert told["c2"]["version"] == 1
    (row,) = rows_of(workspace, outcome="denied")
    assert (row.error, row.path) == ("policy_denied", "secrets/key.md")
    assert version_of(workspace, "secrets/key.md") == 0


async def test_the_calls_of_one_answer_are_asked_about_together(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    add_rules(root, workspace, ASK_WRITES)
    other = {**PLAN, "filepath": "other.md"}
    wants = calling(
        call("collab_write", "c1", **PLAN), call("collab_list", "c2"), call("collab_write", "c3", **other)
    )
    agent = ChatAgent(agent_tools(alice), model_runtime=Model(wants, SAYS))
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as ends:
        number = await asked_in(workspace, session)
        assert [each.id for each in workspace.requests.find(number).calls] == ["c1", "c3"]
        say(workspace, "answer_request", request=number, approved=True)
        state = await ends
    assert {name: told["success"] for name, told in results(state).items()} == dict.fromkeys(
        ("c1", "c2", "c3"), True
    )
    assert len(rows_of(workspace, zone="request")) == 2


async def test_the_rules_hold_for_tools_of_an_agents_own(workspace: Workspace, root: Path) -> None:
    add_rules(
        root,
        workspace,
        '[[policy.rules]]\ntool = "deploy"\ncommand = "* --now"\nverdict = "deny"\n'
        '[[policy.rules]]\nname = "ask first"\ntool = "deploy"\nverdict = "ask"\n'
        '[[policy.rules]]\ntool = "look"\nverdict = "ask"\nmode = "test"\n',
    )
    deploy, look = Calls("deployed"), Calls("seen")
    wants = calling(
        call("deploy", "c1", command="prod --now"), call("look", "c2"), call("deploy", "c3", command="test")
    )
    tools = offered({"deploy": deploy, "look": look})
    agent = ChatAgent(tools, model_runtime=Model(wants, SAYS))
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as ends:
        number = await asked_in(workspace, session)
        row = workspace.journal.rows(number - 1, until=number)[0]
        shown = read_request(workspace.journal, RequestView(row, None))
        assert shown.request.metadata == {POLICY_RULE: "2 (ask first)"}
        page = RequestPage(shown, [None], catalogue("en", "watchroom_tui.texts"))
        lines = [row.line for row in page.rows({})]
        assert " by policy rule 2 (ask first)" in ["".join(s.text for s in line) for line in lines]
        say(workspace, "answer_request", request=number, approved=False, reason="not today")
        state = await ends
    told = results(state)
    assert (told["c1"]["error"], told["c2"]) == ("policy_denied", "seen")
    assert "not today" in told["c3"]["message"]
    assert deploy.given == []
    (tested,) = rows_of(workspace, tool="test_policy")
    assert tested.detail["tool"] == "look"


async def test_a_client_shows_its_person_which_rule_asks(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    add_rules(root, workspace, ASK_WRITES)
    asked: list[str] = []

    async def approve(context: Any, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"approved": True})

    async with within(workspace, alice, client={"elicitation_callback": approve}) as client:
        assert (await called(client, "collab_write", **PLAN))["version"] == 1
    (message,) = asked
    assert "Policy rule 1" in message


async def test_a_person_is_asked_about_a_call_of_a_client(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    add_rules(root, workspace, DENY_SECRETS + ASK_WRITES)
    async with within(workspace, alice) as client:
        await called(client, "collab_list")
        assert (await refused_client(client, "collab_write", **SECRET))["error"] == "policy_denied"
        call_of_client = asyncio.create_task(called(client, "collab_write", **PLAN))
        await until(lambda: bool(rows_of(workspace, zone="request")))
        (asked,) = rows_of(workspace, zone="request")
        assert workspace.requests.find(asked.seq).metadata == {POLICY_RULE: "2"}
        assert version_of(workspace, "plan.md") == 0
        person = workspace.tools_for_human("dana")
        await asyncio.to_thread(ok, person, "answer_request", request=asked.seq, approved=True)
        assert (await call_of_client)["version"] == 1


def test_a_command_is_refused_for_one_of_its_parts(workspace: Workspace, root: Path, alice: Toolbox) -> None:
    add_rules(root, workspace, '[[policy.rules]]\ncommand = "rm -rf *"\nverdict = "deny"\n')
    # An agent without a task runs no command: the policy is asked first.
    assert refused(alice, "run_command", command="ls")["error"] == "workspace_not_bound"
    assert refused(alice, "run_command", command="ls && rm -rf /")["error"] == "policy_denied"
    newest, _ = rows_of(workspace, outcome="denied")
    assert (newest.tool, newest.zone) == ("run_command", "command")


async def test_what_a_person_makes_of_the_arguments_is_held_to_the_rules(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    add_rules(root, workspace, DENY_SECRETS + ASK_WRITES)
    model = Model(calling(call("collab_write", "c1", **PLAN)), SAYS)
    agent = ChatAgent(agent_tools(alice), model_runtime=model)
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as ends:
        number = await asked_in(workspace, session)
        decision = {"call_id": "c1", "approved": True, "arguments": json.dumps(SECRET)}
        say(workspace, "answer_request", request=number, decisions=[decision])
        state = await ends
    assert results(state)["c1"]["result"]["error"] == "policy_denied"
    assert version_of(workspace, "secrets/key.md") == 0
