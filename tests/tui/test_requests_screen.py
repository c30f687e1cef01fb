"""Requests of agents are answered in the dashboard, and the agents continue."""

from __future__ import annotations

import asyncio
import json

import pytest
from calls import ok
from runtime.weather import ANSWER, QUESTION, Calls, call, calling, weather_agent, weather_model
from tui.driver import NARROW, User, dashboard, past
from tui.recorded import SECOND
from tui.sessions import asks, running, says
from tui.team import PLAN, write
from watchroom import Toolbox, Workspace
from watchroom.features.sessions.runtime import Session, ToolMessage
from watchroom_tui.dialogs.text_input import TextDraft, TextInputDialog
from watchroom_tui.services.request_actions import RequestActions


async def sees_request(user: User, *texts: str) -> None:
    """Go to the most urgent request, and wait for its texts."""
    await user.until(lambda: user.model.requests, "a request")
    await user.press("exclamation_mark")
    await user.until(lambda: user.place == "requests", "the requests")
    await user.sees(*texts)


def told(session: Session, call_id: str = "call_1") -> object:
    """Return the result of a call that the model got."""
    (content,) = [
        message.content
        for message in session.state.messages
        if isinstance(message, ToolMessage) and message.tool_call_id == call_id
    ]
    return json.loads(content)


async def test_the_weather_is_asked_and_the_call_approved_in_the_dashboard(workspace: Workspace) -> None:
    """RUN-flow."""
    tool = Calls({"temperature": 25, "condition": "sunny"})
    agent = weather_agent(weather_model(), tool)
    messages = [{"role": "user", "content": QUESTION}]
    async with (
        dashboard(workspace) as user,
        workspace.sessions.begin("alice", agent, messages=messages) as session,
    ):
        work = asyncio.create_task(session.run())
        await sees_request(user, "get_weather", "city: Beijing", "approve · alice")
        assert not tool.given
        await user.press("a")
        await user.is_told("alice: approved")
        state = await asyncio.wait_for(work, 20)
        assert (state.status, state.messages[-1].content) == ("done", ANSWER)
        assert tool.given == [{"city": "Beijing"}]
        await user.press("t")
        await user.until(lambda: user.place == "agents", "the agents")
        await user.sees(QUESTION, "get_weather Beijing", "answer: approved", ANSWER, "done")


async def test_a_calls_change_is_shown_before_its_approval(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, "one\ntwo\nthree\n", 0)
    change = call(
        "collab_write", filepath=PLAN, content="one\n2\nthree\n", message="digits", expected_version=1
    )
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", calling(change), says("Done."), ask=["collab_write"]) as bob,
    ):
        await sees_request(user, "write shared", "message: digits", "now v1 by alice", "− two", "+ 2")
        await user.press("a")
        assert (await bob.ended()).status == "done"
        assert workspace.journal.content(workspace.journal.head("collab", PLAN).seq) == "one\n2\nthree\n"  # type: ignore[union-attr]


async def test_a_call_from_an_older_version_says_that_it_would_be_refused(
    workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "one\n", 0)
    write(alice, "two\n", 1)
    change = call("collab_write", filepath=PLAN, content="three\n", message="x", expected_version=1)
    async with dashboard(workspace) as user, running(workspace, "bob", calling(change), ask=["collab_write"]):
        await sees_request(user, "It is based on v1, but v2 is current")


async def test_a_rejection_reaches_the_model_with_its_reason(workspace: Workspace) -> None:
    save = call("save_to_my_workspace", filename="x.md", content="x")
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", calling(save), says("I leave it."), ask=["save_to_my_workspace"]) as bob,
    ):
        await sees_request(user, "save")
        await user.press("r")
        await user.type("not on a Friday")
        await user.press("enter")
        assert (await bob.ended()).messages[-1].content == "I leave it."
        result = told(bob.session)
        assert isinstance(result, dict)
        assert result["error"] == "rejected"
        assert "human:dana rejected this call: not on a Friday" in result["message"]
        assert workspace.journal.head("private", "bob/x.md") is None
        await user.sees("rejected")


async def test_arguments_are_changed_before_the_call_is_approved(workspace: Workspace) -> None:
    save = call("save_to_my_workspace", filename="x.md", content="draft")
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", calling(save), says("Saved."), ask=["save_to_my_workspace"]) as bob,
    ):
        await sees_request(user, "save")
        await user.press("e")
        await user.sees("Arguments of")
        await user.press("backspace", "ctrl+s")
        await user.sees("Not valid JSON: line")
        await user.type(', "message": "by dana"}')
        await user.press("ctrl+s")
        await bob.ended()
        head = workspace.journal.head("private", "bob/x.md")
        assert head is not None
        assert head.message == "by dana"
        result = told(bob.session)
        assert isinstance(result, dict)
        assert result["edited_arguments"]["message"] == "by dana"
        await user.sees("approved, ed")


async def test_refused_arguments_can_be_corrected(workspace: Workspace) -> None:
    save = call("save_to_my_workspace", filename="x.md", content="draft")
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", calling(save), says("Saved."), ask=["save_to_my_workspace"]) as bob,
    ):
        await sees_request(user, "save")
        await user.press("e")
        await user.sees("Arguments of")
        # A number for Python's parser, but not valid JSON.
        await user.press("backspace")
        await user.type(', "message": NaN}')
        await user.press("ctrl+s")
        await user.is_told("edited arguments must be a JSON object")
        await user.press("e")
        await user.sees('"message": NaN}')
        await user.press(*["backspace"] * len("NaN}"))
        await user.type('"by dana"}')
        await user.press("ctrl+s")
        await bob.ended()
        head = workspace.journal.head("private", "bob/x.md")
        assert head is not None
        assert head.message == "by dana"


async def test_a_question_is_answered_with_a_text(workspace: Workspace) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asks("Which month?"), says("Thanks.")) as bob,
    ):
        await sees_request(user, "Which month?", "question · bob")
        await user.press("enter")
        await user.type("October")
        await user.press("escape", "enter")
        await user.sees("October")
        await user.press("ctrl+j", "2", "enter")
        await bob.ended()
        assert told(bob.session) == {"success": True, "answer": "October\n2", "by": "human:dana"}


async def test_nothing_is_lost_of_what_is_typed_and_sent_at_once(workspace: Workspace) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asks("Which month?"), says("Thanks.")) as bob,
    ):
        await sees_request(user, "Which month?")
        await user.press("enter")
        await user.press_at_once(*"October", "ctrl+j", *"or so", "enter")
        await bob.ended()
        assert told(bob.session) == {"success": True, "answer": "October\nor so", "by": "human:dana"}


@pytest.mark.parametrize("place", ["requests", "overview"])
@pytest.mark.parametrize("question", ["text", "choice"])
async def test_a_question_is_declined_and_what_is_typed_at_once_is_its_reason(
    workspace: Workspace, question: str, place: str
) -> None:
    asked = asks("Which?", "tea", "coffee") if question == "choice" else asks("Which?")
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asked, says("I go on.")) as bob,
    ):
        await user.until(lambda: user.model.requests, "the request")
        if place == "requests":
            await sees_request(user, "Which?")
        # Each letter would be a command: one key quits the dashboard, another goes to a screen.
        await user.press_at_once("r", *"quit 28Xq", "enter")
        assert (await bob.ended()).messages[-1].content == "I go on."
        result = told(bob.session)
        assert isinstance(result, dict)
        assert (result["error"], result["reason"]) == ("rejected", "quit 28Xq")
        assert "human:dana declined to answer: quit 28Xq" in result["message"]
        assert user.place == place
        await user.is_told("bob: rejected")


async def test_going_back_before_the_dialog_is_open_does_no_harm(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        answers: list[str | None] = []
        draft = TextDraft("answer", "bob", "October")
        screen = TextInputDialog("Answer", "Which month?", draft)
        pushed = user.app.push_screen(screen, answers.append)
        # As with a key that was pressed before the screen was composed.
        screen.dismiss(None)
        await pushed
        await user.until(lambda: answers == [None], "the way back")
        assert (user.place, draft.text) == ("overview", "October")


async def test_one_of_several_options_is_chosen(workspace: Workspace) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asks("Which?", "tea", "coffee"), says("Thanks.")) as bob,
    ):
        await sees_request(user, "Which?", "○ tea", "○ coffee")
        await user.press("enter", "down", "enter")
        await bob.ended()
        assert told(bob.session) == {"success": True, "answer": ["coffee"], "by": "human:dana"}


async def test_several_options_are_ticked_and_sent(workspace: Workspace) -> None:
    question = asks("Which?", "one", "two", "three", several=True)
    async with dashboard(workspace) as user, running(workspace, "bob", question, says("Thanks.")) as bob:
        await sees_request(user, "Which?", "☐ one", "☐ three")
        await user.press("enter", "enter")
        await user.is_told("Select something first")
        await user.press("space", "down", "down", "space")
        await user.sees("☑ one", "☐ two", "☑ three")
        await user.press("enter")
        await bob.ended()
        assert told(bob.session) == {"success": True, "answer": ["one", "three"], "by": "human:dana"}


async def test_of_two_calls_one_is_approved_and_one_rejected(workspace: Workspace) -> None:
    calls = [
        call("save_to_my_workspace", f"call_{number}", filename=f"{number}.md", content="x")
        for number in (1, 2)
    ]
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", calling(*calls), says("Done."), ask=["save_to_my_workspace"]) as bob,
    ):
        await sees_request(user, "☑ save")
        await user.press("enter", "space", "a")
        await bob.ended()
        assert workspace.journal.head("private", "bob/1.md") is None
        assert workspace.journal.head("private", "bob/2.md") is not None
        first = told(bob.session, "call_1")
        assert isinstance(first, dict)
        assert first["error"] == "rejected"
        await user.sees("some appr")


async def test_the_second_person_to_answer_sees_who_was_first(workspace: Workspace) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asks("Which?"), says("Thanks.")) as bob,
    ):
        await sees_request(user, "Which?")
        await user.press("enter")
        await user.type("mine")
        number = user.model.requests[0].id
        ok(workspace.tools_for_human("eve"), "answer_request", request=number, text="hers")
        await user.press("enter")
        await user.is_told("already closed by human:eve")
        await bob.ended()
        result = told(bob.session)
        assert isinstance(result, dict)
        assert result["answer"] == "hers"


async def test_a_request_whose_time_is_over_reads_expired(workspace: Workspace) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asks("Quick?"), says("I go on."), patience=0.05) as bob,
    ):
        assert (await bob.ended()).status == "done"
        await user.goes_to("7", "requests")
        await user.sees("expired", "Quick?")


async def test_the_time_that_is_left_is_counted_down(workspace: Workspace) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asks("Quick?"), says("I go on."), patience=90),
    ):
        await sees_request(user, "Quick?", "1 m left")
        asked = user.model.requests[0]
        assert asked.expires is not None
        end = asked.expires
        user.app.now = lambda: end - 12 * SECOND  # type: ignore[method-assign]
        await user.until(lambda: user.words_in("#request").endswith("12 s left"), "the time left")
        user.app.now = lambda: end + SECOND  # type: ignore[method-assign]
        await user.until(lambda: user.words_in("#request").endswith("expired"), "that it is over")
        await user.press("enter")
        await user.is_told("The request has expired")


@pytest.mark.parametrize("calls", [1, 2])
async def test_a_call_is_approved_where_its_need_is_listed_unless_there_is_more_to_read(
    workspace: Workspace, calls: int
) -> None:
    saves = [
        call("save_to_my_workspace", f"call_{number}", filename=f"{number}.md", content="x")
        for number in range(calls)
    ]
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", calling(*saves), says("Done."), ask=["save_to_my_workspace"]) as bob,
    ):
        await user.until(lambda: user.model.needs, "the need")
        RequestActions(user.app).approve_need(user.model.needs[0])
        if calls == 1:
            await user.is_told("bob: approved")
            assert (await bob.ended()).status == "done"
        else:
            await user.is_told("several calls")
            assert user.model.requests


async def test_a_question_is_not_approved_where_its_need_is_listed(workspace: Workspace) -> None:
    async with dashboard(workspace) as user, running(workspace, "bob", asks("Which month?")):
        await user.until(lambda: user.model.needs, "the need")
        RequestActions(user.app).approve_need(user.model.needs[0])
        await user.is_told("enter answers")
        assert user.model.requests


async def test_an_answer_that_is_not_sent_stays_and_is_asked_about(workspace: Workspace) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "bob", asks("Which month?"), says("Thanks.")) as bob,
    ):
        await sees_request(user, "Which month?")
        await user.press("enter")
        await user.paste("Octo\x1b[31m")
        await user.press("escape", "1", "q")
        await user.is_asked("discard: answer to bob")
        await user.press("escape", "7", "enter")
        await user.sees("Octo␛[31m")
        await user.press(*["backspace"] * 5, *"ber", "enter")
        await bob.ended()
        result = told(bob.session)
        assert isinstance(result, dict)
        assert result["answer"] == "October"
        await user.press("q")
        await user.until(lambda: user.app._exit, "the end")


async def test_in_little_space_the_request_is_below_the_list(
    workspace: Workspace,
) -> None:
    save = call("save_to_my_workspace", filename="x.md", content="x")
    async with (
        dashboard(workspace, size=NARROW) as user,
        running(workspace, "bob", calling(save), says("Done."), ask=["save_to_my_workspace"]) as bob,
    ):
        await user.until(lambda: user.model.requests, "a request")
        await user.goes_to("7", "requests")
        await user.sees("save x.md", "filename: x.md")
        assert user.pane == "requests"
        await user.press("a")
        assert (await bob.ended()).status == "done"


async def test_the_list_is_back_when_the_choices_are_answered_in_a_little_space(workspace: Workspace) -> None:
    question = asks("Which?", "tea", "coffee")
    async with (
        dashboard(workspace, size=NARROW) as user,
        running(workspace, "bob", question, says("Thanks.")) as bob,
    ):
        await sees_request(user, "Which?")
        await user.press("enter", "enter")
        await bob.ended()
        await user.sees("chosen")
        await user.until(lambda: user.shown_panes() == ["requests", "request"], "no choices any more")
        await user.until(lambda: user.pane == "requests", "the keys in the list")


async def test_in_the_past_nothing_is_answered(workspace: Workspace) -> None:
    async with running(workspace, "bob", asks("Which?")), dashboard(workspace) as user:
        await user.until(lambda: user.model.requests, "a request")
        async with past(workspace.journal, workspace.journal.last_seq()) as user:
            await user.goes_to("7", "requests")
            await user.sees("Which?")
            await user.press("enter")
            assert not user.shows("Answer to bob")


async def test_without_requests_no_answer_is_offered(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("7", "requests")
        await user.sees("Requests of agents appear here")
        footer = user.lines()[-1]
        assert not any(word in footer for word in ("a approve", "r reject", "t write", "e edit"))
