"""Budgets: the call over one is held, a person decides, and that very call goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest
from runtime.scripted import at_work, say, status_is, until
from runtime.weather import Calls, Model, call, calling
from runtime.working import ASK, HELLO, asked_in, chat
from watchroom import Workspace
from watchroom.features.overview.fold import Fold
from watchroom.features.overview.model import Need
from watchroom.features.sessions.runtime import ChatAgent, Session
from watchroom.model import BUDGET_WARNING

Chunk = Mapping[str, object]


def costing(cost: float | None, chunks: Any) -> list[Chunk]:
    """An answer of a model, with what it cost."""
    used: dict[str, object] = {"input_tokens": 30, "output_tokens": 20, "cache_read_tokens": 9000}
    if cost is not None:
        used |= {"cost": cost, "priced_by": "client"}
    return [*chunks, {"usage": used}]


def turns(count: int, cost: float | None = 0.02) -> list[Any]:
    return [costing(cost, calling(call("tool", f"c{turn}"))) for turn in range(count)]


DONE = costing(0.02, [{"content": "Done."}])


async def asked_about_budget(workspace: Workspace, session: Session) -> tuple[int, Any]:
    await status_is(session, "waiting_for_human_input")
    asked = session.state.asked
    assert asked is not None
    budget: Any = asked.metadata["budget"]
    row = workspace.journal.version("request", budget["request"], 1)
    assert row is not None
    return row.seq, asked


def warnings(workspace: Workspace) -> list[str]:
    return [row.message for row in workspace.journal.rows(0, limit=10_000) if row.tool == BUDGET_WARNING]


def needs(workspace: Workspace) -> tuple[Need, ...]:
    fold = Fold(workspace.journal.content, workspace.journal.row)
    fold.apply(workspace.journal.rows(0, limit=10_000))
    return fold.model().needs


async def test_a_budget_of_five_cents_holds_the_third_call_which_then_goes_on(workspace: Workspace) -> None:
    say(workspace, "set_budget", scope="session", measure="cost", most=0.05)
    model = Model(*[costing(0.025, each[:-1]) for each in turns(2)], DONE)
    tool = Calls("fine")
    agent = ChatAgent(chat(tools={"tool": tool}).tools.values(), model_runtime=model)  # type: ignore[arg-type]
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as work:
        number, asked = await asked_about_budget(workspace, session)
        # The second answer reached the budget: neither the call that it wants nor a third answer is made.
        assert (len(model.asked), len(tool.given)) == (2, 1)
        assert asked.prompt == (
            f"The session {session.path} has used $0.05 of its budget of $0.05. "
            "The next call is held until you decide."
        )
        assert [each.label for each in asked.options] == ["Raise to $0.10", "This call only", "Stop"]
        assert say(workspace, "answer_request", request=number, values=["raise"])["success"]
        state = await work
    assert (state.status, len(model.asked), len(tool.given)) == ("done", 3, 2)
    assert [message.role for message in state.messages] == ["user", *["assistant", "tool"] * 2, "assistant"]
    config = workspace.config.budgets
    assert [each.most for each in config.of("session", session.path)] == [0.1]
    assert [each.most for each in config.of("session", "alice/another")] == [0.05]


async def test_once_more_lets_one_call_pass_and_stop_ends_the_session(workspace: Workspace) -> None:
    say(workspace, "set_budget", scope="agent", name="alice", measure="tokens", most=40)
    model, tool = Model(*turns(5), DONE), Calls("fine")
    agent = ChatAgent(chat(tools={"tool": tool}).tools.values(), model_runtime=model)  # type: ignore[arg-type]
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as work:
        number, _ = await asked_about_budget(workspace, session)
        # Cached tokens are not counted: 50 are used, not 9050.
        assert (len(model.asked), len(tool.given)) == (1, 0)
        say(workspace, "answer_request", request=number, values=["once"])
        await until(lambda: len(tool.given) == 1)
        again, asked = await asked_about_budget(workspace, session)
        assert again != number
        assert (len(model.asked), asked.prompt[:40]) == (1, "Agent alice has used 50 tokens of its bu")
        say(workspace, "answer_request", request=again, values=["stop"])
        state = await work
    assert (state.status, len(model.asked), len(tool.given)) == ("cancelled", 1, 1)


async def test_an_approved_call_of_an_agent_that_was_stopped_meanwhile_is_held(
    workspace: Workspace,
) -> None:
    """Another session of the agent reaches its budget while a call waits for its approval."""
    tool = Calls("fine")
    agent = chat(*turns(1), DONE, tools={"tool": tool}, policies=ASK)
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session, at_work(session) as work:
        number = await asked_in(workspace, session)
        say(workspace, "set_budget", scope="agent", name="alice", measure="steps", most=1)
        assert await asyncio.to_thread(workspace.budgets.hold_call, "alice") is not None
        (budget,) = [row for row in workspace.journal.heads("request", "alice/calls/") if row.version == 1]
        say(workspace, "answer_request", request=budget.seq, values=["stop"])
        say(workspace, "answer_request", request=number, approved=True)
        # This session is asked about as well, and the call is not made.
        await until(lambda: session.state.asked is not None and "budget" in session.state.asked.metadata)
        again, _ = await asked_about_budget(workspace, session)
        assert (again != budget.seq, tool.given) == (True, [])
        say(workspace, "answer_request", request=again, values=["stop"])
        state = await work
    assert (state.status, tool.given) == ("cancelled", [])


async def test_people_are_warned_once_at_four_fifths(workspace: Workspace) -> None:
    say(workspace, "set_budget", scope="team", measure="cost", most=0.05)
    agent = chat(*turns(2), DONE, tools={"tool": Calls("fine")})
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session:
        await session.run()
    assert warnings(workspace) == ["The team has used $0.04 of its budget of $0.05."]
    assert [(need.kind, need.key, need.answers) for need in needs(workspace)] == [
        ("budget", "team cost", ("seen",))
    ]
    say(workspace, "set_budget", scope="team", measure="cost", most=1)
    assert needs(workspace) == ()


async def test_who_shares_a_budget_waits_for_one_request(workspace: Workspace) -> None:
    say(workspace, "set_budget", scope="team", measure="steps", most=2)
    async with AsyncExitStack() as stack:
        sessions, work = [], []
        for name in ("alice", "bob"):
            agent = chat(*turns(4), DONE, tools={"tool": Calls("fine")})
            session = await stack.enter_async_context(workspace.sessions.begin(name, agent, messages=HELLO))
            sessions.append(session)
            work.append(await stack.enter_async_context(at_work(session)))
        asked = [await asked_about_budget(workspace, each) for each in sessions]
        assert asked[0][0] == asked[1][0]
        # A larger budget, set by hand, is heeded by all, and the request is nobody's any more.
        say(workspace, "set_budget", scope="team", measure="steps", most=1000)
        states = await asyncio.gather(*work)
        assert [state.status for state in states] == ["done", "done"]
        refused = say(workspace, "answer_request", request=asked[0][0], values=["raise"])
        assert "was withdrawn" in refused["message"]


async def test_a_held_session_is_held_after_a_restart(workspace: Workspace) -> None:
    say(workspace, "set_budget", scope="session", measure="cost", most=0.01)
    first = chat(*turns(1), tools={"tool": Calls("fine")})
    begun = workspace.sessions.begin("alice", first, messages=HELLO, session_id="s1")
    async with begun as session, at_work(session):
        number, first_asked = await asked_about_budget(workspace, session)
    tool = Calls("fine")
    later = chat(DONE, tools={"tool": tool})
    say(workspace, "set_budget", scope="session", measure="cost", most=0.02)
    async with workspace.sessions.resume("alice", "s1", later) as session, at_work(session) as work:
        await until(lambda: session.state.asked not in (None, first_asked))
        again, _ = await asked_about_budget(workspace, session)
        assert again != number
        assert not tool.given
        say(workspace, "answer_request", request=again, values=["raise"])
        assert (await work).status == "done"


async def test_tokens_without_a_price_are_said_and_hold_nothing(workspace: Workspace) -> None:
    say(workspace, "set_budget", scope="session", measure="cost", most=0.01)
    agent = chat(*turns(2, None), DONE, tools={"tool": Calls("fine")})
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session:
        state = await session.run()
    assert (state.status, state.spent.unpriced_tokens) == ("done", 2 * 9050)


@pytest.mark.parametrize(
    "given",
    [
        {"scope": "team", "measure": "cost", "most": 0},
        {"scope": "team", "name": "alice", "measure": "cost", "most": 1},
        {"scope": "agent", "name": "nobody", "measure": "cost", "most": 1},
        {"scope": "session", "name": "alice", "measure": "cost", "most": 1},
        {"scope": "task", "name": "t" * 501, "measure": "cost", "most": 1},
        {"scope": "all", "measure": "cost", "most": 1},
    ],
)
def test_what_is_no_budget_is_refused(workspace: Workspace, given: dict[str, Any]) -> None:
    before = workspace.journal.head("config", "config.toml")
    assert say(workspace, "set_budget", **given)["success"] is False
    assert workspace.journal.head("config", "config.toml") == before
