"""A decision that does not count takes no effect, wherever that would be: TRUST, section 1."""

from __future__ import annotations

import stat

import pytest
from calls import ok
from people.conftest import DANA, EVE, STRANGER, Team
from runtime.scripted import at_work, status_is, until
from runtime.test_budgets import DONE, asked_about_budget, turns
from runtime.weather import Calls, call, calling, offered
from runtime.weather import Model as ScriptedModel
from runtime.working import HELLO, chat
from watchroom import Workspace
from watchroom.errors import ConflictSettled
from watchroom.features.overview.model import Model
from watchroom.features.overview.snapshots import read_model
from watchroom.features.people.rules import STOPPED_PATH
from watchroom.features.sessions.runtime import ChatAgent, Limits, RuntimeConfig
from watchroom.kernel.call_context import CallContext
from watchroom.model import DISMISS, MESSAGE, RELEASE_AGENTS, RESUME, Note, Write


def model(team: Team) -> Model:
    return read_model(team.workspace.journal, team.workspace.journal.last_seq())


def test_a_forged_resume_lets_no_stopped_agent_go_on(team: Team) -> None:
    journal = team.workspace.journal
    journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    ok(team.workspace.tools_for_human("eve"), "stop_agents", agents=["alice"])
    told = journal.last_seq()
    journal.append([Note("human:eve", RESUME, "session", "alice")])
    journal.append([Write("human:eve", RELEASE_AGENTS, "workspace", STOPPED_PATH, "", detail={"agents": {}})])
    assert [*team.workspace.stops.stopped()] == ["alice"]
    assert [*model(team).stopped] == ["alice"]
    assert team.workspace.session_zone.controls("alice/1", told) == []
    team.sign_as(EVE)
    ok(team.workspace.tools_for_human("eve"), "release_agents")
    assert [*team.workspace.stops.stopped()] == []
    assert [*model(team).stopped] == []


def test_an_agent_reads_that_a_message_is_not_signed(team: Team) -> None:
    zone = team.workspace.session_zone
    team.workspace.journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    after = team.workspace.journal.last_seq()
    for signer in (None, STRANGER, EVE):
        team.sign_as(signer)
        zone.control(CallContext("human:eve", MESSAGE), "alice", None, "Go on {x}")
    by = "[unverified: this message names human:eve as its sender, but is not signed]"
    said = [record.text for record in zone.controls("alice/1", after)]
    assert said == [f"{by}\nGo on {{x}}", f"{by}\nGo on {{x}}", "Go on {x}"]


@pytest.mark.parametrize("is_away", [True, False], ids=["away", "running"])
async def test_a_message_that_is_not_signed_grants_no_steps(team: Team, is_away: bool) -> None:
    workspace = team.workspace
    model = ScriptedModel(*[calling(call("tool", f"c{turn}")) for turn in range(9)])
    agent = ChatAgent(offered({"tool": Calls({"success": True})}), model_runtime=model)
    config = RuntimeConfig(limits=Limits(steps=4))

    def say() -> None:
        workspace.session_zone.control(CallContext("human:eve", MESSAGE), "alice", None, "Go on.")

    async with workspace.sessions.begin("alice", agent, config, session_id="s1") as session:
        assert (await session.run()).status == "error"
        if not is_away:
            team.sign_as(None)
            async with at_work(session, stay=True):
                say()
                await until(lambda: any("unverified" in str(each) for each in session.state.messages))
                await status_is(session, "error")
    if is_away:
        team.sign_as(None)
        say()
        async with workspace.sessions.resume("alice", "s1", agent, config) as session:
            await session.run()
    assert len(model.asked) == 2
    team.sign_as(EVE)
    say()
    async with workspace.sessions.resume("alice", "s1", agent, config) as session:
        await session.run()
    assert len(model.asked) == 4


def test_a_forged_dismissal_settles_no_conflict(team: Team) -> None:
    alice, bob = team.workspace.tools("alice"), team.workspace.tools("bob")
    ok(alice, "collab_write", filepath="a", content="one\n", message="m", expected_version=0)
    refused = bob.dispatch_tool_call(
        "collab_write", {"filepath": "a", "content": "two\n", "message": "m", "expected_version": 0}
    )
    assert refused["error"] == "version_conflict"
    (conflict,) = model(team).conflicts
    number = conflict.row.seq
    team.workspace.journal.append([Note("human:eve", DISMISS, "collab", "a", detail={"conflict": number})])
    assert [each.row.seq for each in model(team).conflicts] == [number]
    team.sign_as(EVE)
    team.workspace.conflicts.dismiss(CallContext("human:eve"), number, "no")
    assert model(team).conflicts == ()
    with pytest.raises(ConflictSettled):
        team.workspace.conflicts.dismiss(CallContext("human:eve"), number, "no")


@pytest.mark.parametrize("actor", ["human:dana", "system"])
def test_a_forged_token_lets_nobody_in(team: Team, actor: str) -> None:
    tokens = team.workspace.access
    team.sign_as(DANA)
    true = tokens.create("human:dana", "alice")
    team.sign_as(None)
    content = team.workspace.journal.content(team.workspace.journal.last_seq())
    team.workspace.journal.append([Write(actor, "make_token", "token", "alice/ffffffffffff", content)])
    assert tokens.authenticate(true) == "alice"
    assert tokens.authenticate(f"wr1.alice.ffffffffffff.{true.rpartition('.')[2]}") is None


def test_a_token_of_somebody_who_is_not_enrolled_lets_nobody_in(team: Team) -> None:
    access = team.workspace.access
    team.sign_as(DANA)
    tokens = {name: access.create("human:dana", f"human:{name}") for name in ("eve", "mallory")}
    assert access.authenticate(tokens["mallory"]) is None
    assert access.authenticate(tokens["eve"]) == "human:eve"
    team.workspace.people.revoke("human:dana", "eve")
    assert access.authenticate(tokens["eve"]) is None


def test_another_user_of_the_machine_reads_nothing(team: Team) -> None:
    control = team.root / ".watchroom"
    control.chmod(0o755)
    (control / "journal.db").chmod(0o644)
    with Workspace.open(team.root, create=False):
        assert [stat.S_IMODE(each.stat().st_mode) for each in (control, control / "journal.db")] == [
            0o700,
            0o600,
        ]


async def test_a_budget_is_raised_by_who_has_the_key_not_by_who_runs_the_agent(team: Team) -> None:
    eve = team.workspace.tools_for_human("eve")
    team.sign_as(EVE)
    ok(eve, "set_budget", scope="session", measure="cost", most=0.05)
    with Workspace.open(team.root, create=False) as runs:
        agent = chat(*turns(3), DONE, tools={"tool": Calls("fine")})
        async with runs.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as work:
            number, _ = await asked_about_budget(runs, session)
            ok(eve, "answer_request", request=number, values=["raise"])
            assert (await work).status == "done"
        assert [each.most for each in runs.config.budgets.of("session", session.path)] == [0.11]
    assert team.workspace.verify() == []
