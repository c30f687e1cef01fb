"""``watchroom answer``, and the views of agents' requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from calls import ok
from cli.running import Captured, misuse, printed, printed_json, refusal, run
from runtime.weather import call, calling
from tui.sessions import Running, asks, running, says
from watchroom import Workspace
from watchroom.features.sessions.runtime import ToolMessage
from watchroom_cli.main import REFUSED

SAVE = call("save_to_my_workspace", filename="plan.md", content="one\n2\n")


@asynccontextmanager
async def bob_asks(
    workspace: Workspace, capsys: Captured, *answers: object
) -> AsyncIterator[tuple[Running, str]]:
    """Yield bob's session once he asks, and the number of his request."""
    committed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wake() -> None:
        loop.call_soon_threadsafe(committed.set)

    end = workspace.subscribe(wake)
    async with running(workspace, "bob", *answers, ask=["save_to_my_workspace"]) as bob:  # type: ignore[arg-type]  # as given
        while not (requests := printed_json(capsys, "show", workspace.root, "requests", "--json")):
            await committed.wait()
            committed.clear()
        yield bob, str(requests[0]["request"])
    end()


def told(bob: Running) -> dict[str, object]:
    (message,) = [each for each in bob.session.state.messages if isinstance(each, ToolMessage)]
    result: dict[str, object] = json.loads(message.content)
    return result


async def test_a_request_is_printed_with_its_change(workspace: Workspace, capsys: Captured) -> None:
    async with bob_asks(workspace, capsys, calling(SAVE)) as (_, number):
        (request,) = printed_json(capsys, "show", workspace.root, "requests", "--json")
        assert (request["agent"], request["kind"], request["what"]) == ("bob", "approve", "save plan.md")
        (session,) = printed_json(capsys, "show", workspace.root, "sessions", "--json")
        assert (session["agent"], session["status"]) == ("bob", "waiting_for_human_input")
        shown = printed(capsys, "answer", workspace.root, number)
        assert "filename: plan.md" in shown
        assert "+ 2" in shown


async def test_a_call_is_approved(workspace: Workspace, capsys: Captured) -> None:
    async with bob_asks(workspace, capsys, calling(SAVE), says("Done.")) as (bob, number):
        answer = printed_json(capsys, "answer", workspace.root, number, "--approve", "--as", "dana")
        assert answer == {"success": True, "request": int(number), "outcome": "approved"}
        assert (await bob.ended()).status == "done"
        assert told(bob)["success"] is True


async def test_a_call_is_rejected_with_a_reason(workspace: Workspace, capsys: Captured) -> None:
    async with bob_asks(workspace, capsys, calling(SAVE), says("Done.")) as (bob, number):
        printed(capsys, "answer", workspace.root, number, "--reject", "not now", "--as", "dana")
        await bob.ended()
        assert "human:dana rejected this call: not now" in str(told(bob)["message"])


async def test_a_call_is_approved_with_other_arguments(workspace: Workspace, capsys: Captured) -> None:
    async with bob_asks(workspace, capsys, calling(SAVE), says("Done.")) as (bob, number):
        edited = '{"filename": "other.md", "content": "x"}'
        printed(capsys, "answer", workspace.root, number, "--approve", "--arguments", edited)
        await bob.ended()
        assert workspace.journal.head("private", "bob/other.md") is not None


OLD = "".join(f"line {number}\n" for number in range(1, 13))
NEW = OLD.replace("line 2\n", "LINE 2\n").replace("line 6\n", "").replace("line 11\n", "LINE 11\nmore\n")


async def test_hunks_are_taken_and_declined_and_lines_commented_on(
    workspace: Workspace, capsys: Captured
) -> None:
    ok(workspace.tools("bob"), "save_to_my_workspace", filename="plan.md", content=OLD)
    write = call("save_to_my_workspace", filename="plan.md", content=NEW)
    async with bob_asks(workspace, capsys, calling(write), says("Done.")) as (bob, number):
        shown = printed(capsys, "answer", workspace.root, number)
        assert [f"hunk {each} of 3" in shown for each in (1, 2, 3, 4)] == [True, True, True, False]
        for options, says_why in (
            (["--take", "4"], "unknown hunk “4”"),
            (["--take", "1,2", "--decline", "2,3"], "Check: 2"),
            (["--take", "1", "--decline", "2"], "Check: 3"),
            (["--take", "1", "--reject"], "exclude --reject"),
            (["--comment", "2:why"], "--comment needs"),
            (["--approve", "--comment", "99:why"], "line 99 does not exist"),
            (["--approve", "--comment", "why"], "“why” is not a comment"),
            (["--approve", "--take", "1", "--arguments", "{}"], "Do not use --take"),
        ):
            assert says_why in misuse(capsys, "answer", workspace.root, number, *options)
        comments = ("--comment", "2:why loud?", "--comment", "old:6:keep it")
        printed(capsys, "answer", workspace.root, number, "--decline", "2", *comments)
        await bob.ended()
        kept = workspace.journal.head("private", "bob/plan.md")
        assert kept is not None
        expected = NEW.replace("line 5\n", "line 5\nline 6\n")
        assert workspace.journal.content(kept.seq) == expected
        notice = str(told(bob)["notice"])
        assert "2 of the 3 hunks of this call were taken, 1 declined." in notice
        assert "Declined: removed lines 6 of the old text." in notice
        assert "Line 2 (LINE 2): why loud?" in notice
        assert "Line 6 of the old text (line 6): keep it" in notice


async def test_comments_go_with_a_rejection(workspace: Workspace, capsys: Captured) -> None:
    async with bob_asks(workspace, capsys, calling(SAVE), says("Done.")) as (bob, number):
        comment = ("--comment", "2:in words")
        printed(capsys, "answer", workspace.root, number, "--reject", "not so", *comment)
        await bob.ended()
        assert "not so\nLine 2 (2): in words" in str(told(bob)["message"])


async def test_each_of_several_calls_is_named_or_approved(workspace: Workspace, capsys: Captured) -> None:
    other = call("save_to_my_workspace", filename="b.md", content="b\n")
    async with bob_asks(workspace, capsys, calling(SAVE, other), says("Done.")) as (bob, number):
        asked = workspace.requests.find(int(number))
        first, second = (each.id for each in asked.calls)
        assert "--arguments needs its call" in misuse(capsys, "answer", workspace.root, number, "--take", "1")
        unnamed = misuse(capsys, "answer", workspace.root, number, "--decline", f"{first}=1")
        assert f"these calls are not decided: {second}" in unnamed
        printed(capsys, "answer", workspace.root, number, "--approve", "--decline", f"{first}=1")
        await bob.ended()
        assert workspace.journal.head("private", "bob/plan.md") is None
        assert workspace.journal.head("private", "bob/b.md") is not None


async def test_a_question_and_a_choice_are_answered(workspace: Workspace, capsys: Captured) -> None:
    async with bob_asks(workspace, capsys, asks("Which month?"), says("Done.")) as (bob, number):
        printed(capsys, "answer", workspace.root, number, "--text", "October")
        await bob.ended()
        assert told(bob)["answer"] == "October"
    question = asks("Which?", "one", "two", "three", several=True)
    async with bob_asks(workspace, capsys, question, says("Done.")) as (bob, number):
        printed(capsys, "answer", workspace.root, number, "--choose", "one", "--choose", "three")
        await bob.ended()
        assert told(bob)["answer"] == ["one", "three"]


async def test_an_answer_that_does_not_fit_is_refused_and_the_request_stays(
    workspace: Workspace, capsys: Captured
) -> None:
    async with bob_asks(workspace, capsys, asks("Which?", "one", "two"), says("Done.")) as (bob, number):
        status, out, _ = run(capsys, "answer", workspace.root, number, "--choose", "three")
        assert (status, json.loads(out)["error"]) == (REFUSED, "invalid_answer")
        status, out, _ = run(capsys, "answer", workspace.root, number, "--approve")
        assert (status, json.loads(out)["error"]) == (REFUSED, "invalid_answer")
        printed(capsys, "answer", workspace.root, number, "--choose", "two")
        assert (await bob.ended()).status == "done"


async def test_the_second_answer_is_refused(workspace: Workspace, capsys: Captured) -> None:
    async with bob_asks(workspace, capsys, asks("Which?"), says("Done.")) as (bob, number):
        printed(capsys, "answer", workspace.root, number, "--text", "first", "--as", "dana")
        status, out, _ = run(capsys, "answer", workspace.root, number, "--text", "second", "--as", "eve")
        result = json.loads(out)
        assert (status, result["error"]) == (REFUSED, "request_closed")
        assert "already closed by human:dana" in result["message"]
        await bob.ended()
        assert told(bob)["answer"] == "first"


def test_an_unknown_request_is_refused(workspace: Workspace, capsys: Captured) -> None:
    assert "Row 1 is not a request" in refusal(capsys, "answer", workspace.root, "1", "--approve")


async def test_wrong_usage_says_how(workspace: Workspace, capsys: Captured) -> None:
    two = call("save_to_my_workspace", "call_2", filename="b.md", content="b")
    async with bob_asks(workspace, capsys, calling(SAVE, two)) as (_, number):
        assert "--approve" in misuse(capsys, "answer", workspace.root, number, "--arguments", "{}")
        command = ("answer", workspace.root, number, "--approve", "--arguments")
        assert "call_1, call_2" in misuse(capsys, *command, "{}")
        assert (
            printed_json(capsys, *command, 'call_2={"filename": "c.md", "content": "c"}')["outcome"]
            == "edited"
        )
