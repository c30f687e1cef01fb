"""An agent's session in the dashboard: its texts and calls, and a person's actions on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from calls import ok, refused
from rules.rows import row
from runtime.weather import Chunk, call, calling
from tui.driver import NARROW, User, dashboard, past
from tui.sessions import PATIENCE, asks, running, says
from watchroom import Workspace
from watchroom.features.sessions.runtime import AgentState, ChatAgent, ModelPayload
from watchroom.texts import Language, catalogue
from watchroom_tui.formatters.transcript import entry_of_step, make_entries, make_session_step


class Speaker:
    """A model that says one word after the other, on request."""

    def __init__(self, *words: str) -> None:
        self._words = words
        self._may_go_on = asyncio.Semaphore(0)
        self.asked: list[ModelPayload] = []
        self.closed = asyncio.Event()

    def go_on(self, words: int = 1) -> None:
        for _ in range(words):
            self._may_go_on.release()

    async def __call__(self, payload: ModelPayload) -> AsyncIterator[Chunk]:
        self.asked.append(payload)
        try:
            for word in self._words:
                await self._may_go_on.acquire()
                yield {"content": word}
        finally:
            self.closed.set()


async def sees_agent(user: User, agent: str) -> None:
    await user.goes_to("2", "agents")
    await user.until(lambda: user.list("agents").items, "the agents")
    while user.cursor("agents").agent.id != agent:
        await user.press("down")


async def test_a_transcript_is_read_and_its_calls_unfolded(workspace: Workspace) -> None:
    save = call("save_to_my_workspace", filename="notes.md", content="line one\nline two")
    wrong = call("read_from_workspace", "call_2", agent_id="nobody", filename="x")
    answers = (calling(save, wrong, content="I save my notes."), says("All is saved."))
    async with (
        dashboard(workspace) as user,
        running(workspace, "alice", *answers, task="Write notes.") as alice,
    ):
        assert (await alice.ended()).status == "done"
        await sees_agent(user, "alice")
        await user.sees("Write notes.", "I save my notes.", "▸ save notes.md  → v1", "All is saved.", "done")
        await user.sees("✗ ▸ read", "unknown_agent")
        assert not user.shows("result:")
        await user.press("enter", "g", "down", "down", "enter")
        await user.sees("▾ save notes.md", "filename: notes.md", "result:", "version: 1")
        await user.press("enter")
        await user.sees("▸ save notes.md")
        await user.press("z")
        await user.sees("▾ save notes.md", "▾ read")


async def test_estimated_and_incomplete_answers_are_marked(workspace: Workspace) -> None:
    cut = [{"content": "It begins", "finish_reason": "length"}]
    async with dashboard(workspace) as user, running(workspace, "alice", cut, says("Done.")) as alice:
        assert (await alice.ended()).status == "done"
        await sees_agent(user, "alice")
        await user.sees("It begins", "the answer was cut off or empty", "Done.", "tokens (estimate)")


async def test_text_is_shown_while_the_model_writes_it(workspace: Workspace) -> None:
    speaker = Speaker("The first ", "the second ", "and the last.")
    agent = ChatAgent(model_runtime=speaker)
    messages = [{"role": "user", "content": "Speak."}]
    async with (
        dashboard(workspace) as user,
        workspace.sessions.begin("bob", agent, messages=messages) as session,
    ):
        work = asyncio.create_task(session.run())
        await sees_agent(user, "bob")
        await user.sees("Speak.", "idle")
        speaker.go_on()
        await user.sees("The first ▌", "thinking")
        speaker.go_on(2)
        await asyncio.wait_for(work, PATIENCE)
        await user.sees("The first the second and the last.", "done")
        assert not user.shows("▌")


async def test_a_message_is_read_with_the_next_turn(workspace: Workspace) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", says("Ready."), says("In French, then."), stay=True) as bob,
    ):
        await user.until(lambda: bob.session.state.status == "done", "the first answer")
        await sees_agent(user, "bob")
        await user.sees("Ready.")
        await user.press("m")
        await user.sees("Message to bob")
        await user.type("In French, please.")
        await user.press("enter")
        await user.is_told("bob reads this before its next step")
        await user.sees("In French, please.", "In French, then.")
        assert bob.model.asked[1].messages[-1].model_dump()["author"] == "human:dana"


def shown_status(user: User) -> str:
    """Return the status of bob's session in the dashboard."""
    bob = next(each for each in user.model.agents if each.agent.id == "bob")
    return bob.session.status if bob.session else "none"


async def test_an_agent_is_paused_and_goes_on(workspace: Workspace) -> None:
    speaker = Speaker("one ", "two")
    agent = ChatAgent(model_runtime=speaker)
    messages = [{"role": "user", "content": "Speak."}]
    async with (
        dashboard(workspace) as user,
        workspace.sessions.begin("bob", agent, messages=messages) as session,
    ):
        work = asyncio.create_task(session.run())
        await sees_agent(user, "bob")
        speaker.go_on()
        await user.sees("one ▌")
        await user.press("p")
        await user.is_told("bob is paused")
        await user.sees("paused")
        await asyncio.wait_for(speaker.closed.wait(), PATIENCE)
        assert not work.done()
        await user.until(lambda: shown_status(user) == "paused", "the pause")
        await user.press("p")
        speaker.go_on(2)
        state: AgentState = await asyncio.wait_for(work, PATIENCE)
        assert (state.status, state.messages[-1].content) == ("done", "one two")
        await user.sees("resumed", "one two")


async def test_a_session_is_ended_for_good_and_asks_nothing_any_more(workspace: Workspace) -> None:
    async with dashboard(workspace) as user, running(workspace, "bob", asks("Which?")) as bob:
        await user.until(lambda: user.model.requests, "a request")
        await sees_agent(user, "bob")
        await user.sees("waits: Which?")
        await user.press("X")
        await user.is_asked("End the session of bob for good?")
        await user.press("enter")
        assert (await bob.ended()).status == "cancelled"
        await user.sees("ended by a person")
        await user.until(lambda: not user.model.requests, "no request")
        assert bob.session.state.open_calls == ()
        await user.press("X")
        await user.is_told("The session of bob has already ended.")


async def test_a_message_to_an_agent_whose_session_was_ended_is_for_its_next_one(
    workspace: Workspace,
) -> None:
    async with dashboard(workspace) as user:
        async with running(workspace, "bob", asks("Which?")) as bob:
            await user.until(lambda: user.model.requests, "a request")
            ok(workspace.tools_for_human("dana"), "cancel_agent", agent_id="bob")
            await bob.ended()
        await sees_agent(user, "bob")
        await user.sees("ended by a person")
        await user.press("m")
        await user.sees("Message to bob")
        await user.type("Once more.")
        await user.press("enter")
        await user.is_told("The session of bob has ended. Its next session reads this.")
        async with running(workspace, "bob", says("Again.")) as bob:
            state = await bob.ended()
        assert "Once more." in [each.content for each in state.messages]


async def test_earlier_sessions_can_be_read(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        for number in ("first", "second"):
            async with running(workspace, "bob", says(f"The {number} answer."), task=f"The {number}.") as bob:
                await bob.ended()
        await sees_agent(user, "bob")
        await user.sees("The second answer.")
        await user.press("left_square_bracket")
        await user.sees("The first answer.")
        await user.press("right_square_bracket")
        await user.sees("The second answer.")


def test_a_step_is_found_by_its_version_although_versions_are_missing() -> None:
    function = {"name": "save_to_my_workspace", "arguments": "{}"}
    asks = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": function}]}
    said = {1: {"role": "user", "content": "Begin."}, 4: asks, 5: {"role": "tool", "tool_call_id": "c"}}
    said[6] = {"role": "assistant", "content": "Done."}
    steps = [
        make_session_step(row(zone="session", version=version), json.dumps({"messages": [message]}))
        for version, message in said.items()
    ]
    entries = make_entries("alice", steps, catalogue("en", "watchroom_tui.texts"))
    found = {step: entry_of_step(entries, step) for step in (1, 4, 5, 6)}
    assert {step: entry and entry.text for step, entry in found.items()} == {
        1: "Begin.",
        4: "save",
        5: "save",
        6: "Done.",
    }


async def test_a_session_that_is_being_read_stays_when_the_agent_begins_another(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        async with running(workspace, "bob", says("One.\nTwo.\nThree."), task="Count.") as bob:
            await bob.ended()
        await sees_agent(user, "bob")
        await user.sees("Three.")
        await user.press("enter", "up", "up")
        async with running(workspace, "bob", says("Four."), task="Count on.") as bob:
            await bob.ended()
        await user.has_taken_in(workspace)
        await user.sees("Three.", "] newer")
        await user.press("right_square_bracket")
        await user.sees("Four.")
        assert not user.shows("] newer")
        async with running(workspace, "bob", says("Five."), task="And on.") as bob:
            await bob.ended()
        await user.sees("Five.")


async def test_a_session_that_an_error_stopped_needs_a_person(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        async with running(workspace, "bob", ValueError("no such model"), task="Think.") as bob:
            assert (await bob.ended()).status == "error"
        await user.sees("✖ failed", "ValueError: no such", "⚑ 1 needs you")
        await user.press("exclamation_mark")
        await user.until(lambda: user.place == "agents", "the agents")
        await user.sees("Think.", "stopped by an error")
        await user.press("S")
        await user.is_asked("bob")
        await user.press("enter")
        await user.sees("✓ all well")


async def test_a_message_that_is_being_written_is_not_lost_by_quitting(workspace: Workspace) -> None:
    async with dashboard(workspace) as user, running(workspace, "bob", says("Hello."), stay=True):
        await sees_agent(user, "bob")
        await user.sees("Hello.")
        await user.press("m")
        await user.type("wait")
        await user.press("ctrl+q")
        await user.is_asked("Quit and discard: message to")
        await user.press("escape", "exclamation_mark", "enter")
        await user.is_told("bob reads this")
        await user.sees("wait!")


async def test_a_refused_message_can_be_corrected(workspace: Workspace) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", says("Hello."), says("Read."), stay=True),
    ):
        await sees_agent(user, "bob")
        await user.sees("Hello.")
        await user.press("m")
        await user.paste("x\n" * 50_000 + "the last word")
        await user.press("enter")
        await user.is_told("Invalid arguments for send_message")
        await user.press("m")
        await user.sees("the last word")
        await user.press(*["backspace"] * len("the last word"), "enter")
        await user.is_told("bob reads this")


@pytest.mark.parametrize(("language", "line"), [("en", "answer: expired"), ("zh", "回答: 已过期")])
@pytest.mark.parametrize("is_approval", [True, False])
async def test_an_unanswered_request_is_shown_as_expired(
    workspace: Workspace, is_approval: bool, language: Language, line: str
) -> None:
    asked = calling(call("list_workspace_files")) if is_approval else asks("Quick?")
    needs_approval = ["list_workspace_files"]
    async with running(workspace, "bob", asked, says("I go on."), ask=needs_approval, patience=0.05) as bob:
        assert (await bob.ended()).status == "done"
    async with dashboard(workspace, language=language) as user:
        await sees_agent(user, "bob")
        await user.sees(f"{line}  ", "I go on.")


async def test_every_key_to_earlier_sessions_counts(workspace: Workspace) -> None:
    for number in range(5):
        async with running(workspace, "bob", says(f"Answer {number}."), task=f"Task {number}.") as bob:
            await bob.ended()
    async with dashboard(workspace) as user:
        await sees_agent(user, "bob")
        await user.sees("Answer 4.")
        for _ in range(3):
            user.app.screen.action_session(1)  # type: ignore[attr-defined]  # as three keys in one burst do
        await user.sees("Answer 1.")


async def test_an_agent_without_a_session_hears_nothing(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await sees_agent(user, "charlie")
        await user.sees("No session yet.")
        await user.press("m")
        await user.is_told("charlie has no session, so it reads no messages.")


async def test_a_past_session_is_shown_as_it_was(workspace: Workspace) -> None:
    async with (
        running(workspace, "bob", asks("Which?"), says("Thanks.")) as bob,
        dashboard(workspace) as user,
    ):
        await user.until(lambda: user.model.requests, "a request")
        before = workspace.journal.last_seq()
        number = user.model.requests[0].id
        ok(workspace.tools_for_human("dana"), "answer_request", request=number, text="this")
        await bob.ended()
    async with past(workspace.journal, before) as user:
        await sees_agent(user, "bob")
        await user.sees("Which?", "waiting for a person")
        assert not user.shows("Thanks.")
        await user.press("X")
        assert not user.shows("for good")


async def test_where_there_is_little_space_the_session_is_a_pane_of_its_own(workspace: Workspace) -> None:
    async with (
        dashboard(workspace, size=NARROW) as user,
        running(workspace, "alice", says("Hello there.")) as alice,
    ):
        await alice.ended()
        await user.has_taken_in(workspace)
        await sees_agent(user, "alice")
        await user.press("enter")
        await user.sees("Hello there.")
        assert user.pane == "session"


async def test_agents_cannot_steer_or_answer_each_other(workspace: Workspace) -> None:
    async with dashboard(workspace) as user, running(workspace, "bob", asks("Which?")):
        await user.until(lambda: user.model.requests, "a request")
        charlie = workspace.tools("charlie")
        number = user.model.requests[0].id
        assert refused(charlie, "answer_request", request=number, text="x")["error"] == "permission_denied"
        assert refused(charlie, "cancel_agent", agent_id="bob")["error"] == "permission_denied"
