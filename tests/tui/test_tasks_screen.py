"""The tasks screen: the agents of each task, their messages, and their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok
from tui.driver import MIDDLE, NARROW, WIDE, User, dashboard, past
from tui.sessions import running, says
from tui.societies import begins, needs_sandbox, runs, to_pane, to_tasks, works
from watchroom import Agent, Workspace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "calculator"


@pytest.fixture
def task(workspace: Workspace, folder: Path) -> str:
    return works(workspace, folder)


async def chooses_agent(user: User, agent: str) -> None:
    await to_pane(user, "members")
    await user.press("g")
    while user.cursor("members").member.id != agent:
        await user.press("down")


async def test_an_empty_screen_says_how_a_task_begins(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("9", "tasks")
        await user.until(lambda: 'watchroom task "…" --workspace DIR' in user.words_in("#tasks"), "the way")
        assert "No tasks yet. Press N" in user.words_in("#tasks")


async def test_the_newest_task_comes_first_with_its_state(
    workspace: Workspace, task: str, tmp_path: Path
) -> None:
    begins(workspace, tmp_path / "other", "Write a poem.")
    dana = workspace.tools_for_human("dana")
    async with dashboard(workspace) as user:
        await to_tasks(user)
        assert [each.task.row.message for each in user.list("tasks").items] == [
            "Write a poem.",
            "Build a calculator.",
        ]
        await user.sees("● Write a poem.", "1 agent", "3 agents")
        ok(dana, "end_task", task_id=user.cursor("tasks").task.id, status="failed", report="No.")
        await user.sees("✖ Write a poem.", "failed")


async def test_agents_are_below_their_parents_and_ended_ones_show_how(
    workspace: Workspace, task: str
) -> None:
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.sees("● root", "● ╰ ada", "●   ├ eve", "–   ╰ tom")
        tree = [(each.guides, each.member.id) for each in user.list("members").items]
        assert tree == [("", "root"), ("╰ ", "ada"), ("  ├ ", "eve"), ("  ╰ ", "tom")]
        for role in ("architect", "programmer", "tester"):
            assert role in user.words_in("#members")
        await user.sees("ended by ada")
        dana = workspace.tools_for_human("dana")
        ok(dana, "terminate_agent", agent_id="ada", reason="too slow")
        await user.sees("ended by human:dana", "ended with ada")
        ok(dana, "end_task", task_id=task, status="done", report="")
        await user.sees("ended with the task", "✓ Build a calculator.")


async def test_layers_are_named_where_there_is_space(workspace: Workspace, task: str) -> None:
    async with dashboard(workspace, size=WIDE) as user:
        await to_tasks(user)
        for layer in ("top", "mid", "bottom"):
            assert layer in user.words_in("#members")


async def test_what_an_agent_does_just_now_stands_beside_it(workspace: Workspace, task: str) -> None:
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.sees("message → ada")
        async with running(workspace, "eve", says("Done."), stay=True):
            await user.until(lambda: "bottom idle" in user.words_in("#members"), "that it is idle")


async def test_messages_show_who_wrote_to_whom_and_how_far_they_got(workspace: Workspace, task: str) -> None:
    async with dashboard(workspace, size=WIDE) as user:
        await to_tasks(user)
        shown = [(each.sender, each.receiver) for each in user.list("messages").items]
        assert shown == [("root", "user"), ("tom", "ada"), ("eve", "ada")]
        words = user.words_in("#messages")
        assert "root → you ✓ May I go on?" in words
        assert "eve → ada · It is written." in words
        ok(workspace.tools_for_human("dana"), "mark_as_seen", row=user.list("messages").items[0].row.seq)
        await user.until(
            lambda: "root → you ✓✓ May I go on?" in user.words_in("#messages"), "that it was read"
        )


async def test_a_mark_changes_while_a_person_reads_further_down(workspace: Workspace, task: str) -> None:
    async with dashboard(workspace, size=WIDE) as user:
        await to_tasks(user)
        await to_pane(user, "messages")
        await user.press("down")
        ok(workspace.tools_for_human("dana"), "mark_as_seen", row=user.list("messages").items[0].row.seq)
        await user.until(lambda: "root → you ✓✓" in user.words_in("#messages"), "that it was read")
        assert not user.shows("new ↑")
        ok(workspace.tools("root"), "send_message", to="user", payload={"text": "And now?"})
        await user.sees("1 new ↑")
        assert user.cursor("messages").sender == "tom"


async def test_enter_opens_a_message_whole(workspace: Workspace, task: str) -> None:
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await to_pane(user, "messages")
        await user.press("enter")
        await user.until(lambda: user.place == "RowDialog", "the message")
        await user.sees("The plan is in README.md.")
        await user.press("escape")
        assert user.pane == "messages"


async def test_a_task_is_read_whole(workspace: Workspace, task: str, folder: Path) -> None:
    ok(workspace.tools("root"), "end_task", status="done", report="It prints values.")
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.chooses("task_detail")
        await user.until(lambda: user.place == "TaskDialog", "the task")
        await user.sees(
            "It reads a line and prints its value.", "human:dana", str(folder)[:40], "It prints values."
        )
        await user.sees("4 layers below the first agent", "done")
        await user.press("escape")
        assert user.place == "tasks"


async def test_each_task_has_messages_and_files_of_its_own(
    workspace: Workspace, task: str, tmp_path: Path
) -> None:
    begins(workspace, tmp_path / "other", "Write a poem.")
    other = workspace.tools("root-2")
    ok(other, "write_file", path="poem.md", content="Roses are red.\n")
    ok(other, "send_message", to="user", payload={"text": "Of what?"})
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.sees("poem.md", "Roses are red.")
        assert [each.row.message for each in user.list("messages").items] == ["Of what?"]
        await user.press("down")
        await user.sees("calc/value.py", "May I go on?")
        await user.until(lambda: len(user.list("files").items) == 2, "its files")
        assert [each.sender for each in user.list("messages").items] == ["root", "tom", "eve"]


async def test_the_preview_marks_what_the_newest_version_changed(workspace: Workspace, task: str) -> None:
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.sees("# Calculator", "v1 eve", "v2 eve")
        await to_pane(user, "files")
        await user.press("down")
        await user.sees("calc/value.py v2", "▌    return int(line)")
        assert not user.shows("▌def value")
        ok(workspace.tools("eve"), "write_file", path="calc/value.py", content="value = int\n")
        await user.sees("calc/value.py v3", "▌value = int")
        await user.press("enter")
        assert user.pane == "preview"
        await user.press("escape")
        assert user.pane == "files"


async def test_a_deleted_file_is_left_out_and_one_that_is_no_text_is_said_in_words(
    workspace: Workspace, task: str, folder: Path
) -> None:
    (folder / "README.md").unlink()
    (folder / "image.bin").write_bytes(b"\xff\xfe\x00" * 700)
    workspace.tools("eve").dispatch_tool_call("read_file", {"path": "README.md"})
    workspace.tools("eve").dispatch_tool_call("read_file", {"path": "image.bin"})
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.until(lambda: len(user.list("files").items) == 2, "its files")
        await to_pane(user, "files")
        await user.press("G")
        assert [each.path.rpartition("/")[2] for each in user.list("files").items] == [
            "value.py",
            "image.bin",
        ]
        await user.until(
            lambda: "Not text, or larger than 10 MB: 2.1 KB." in user.words_in("#preview"), "why"
        )


async def test_files_that_come_while_one_looks_are_shown(workspace: Workspace, task: str) -> None:
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.sees("README.md")
        ok(workspace.tools("eve"), "write_file", path="notes.md", content="More.\n")
        await user.sees("notes.md")
        assert user.cursor("files").path.endswith("README.md")


async def test_a_message_to_people_leads_to_itself_and_is_marked_as_seen(
    workspace: Workspace, task: str, tmp_path: Path
) -> None:
    begins(workspace, tmp_path / "other", "Write a poem.")
    async with dashboard(workspace) as user:
        await user.until(lambda: user.model.needs, "the need")
        await user.press("exclamation_mark")
        await user.until(lambda: user.place == "tasks", "the tasks")
        await user.until(lambda: user.pane == "messages", "the messages")
        assert user.cursor("tasks").task.id == task
        assert user.cursor("messages").row.message == "May I go on?"
        await user.press("S")
        await user.is_asked("Mark as seen: May I go on?: root wrote to you?")
        await user.press("enter")
        await user.until(lambda: not user.model.needs, "nothing that waits")


async def test_a_message_that_is_held_back_while_one_reads_is_led_to_all_the_same(
    workspace: Workspace, task: str
) -> None:
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await to_pane(user, "messages")
        await user.press("down")
        ok(workspace.tools("root"), "send_message", to="user", payload={"text": "And now?"})
        await user.sees("1 new ↑")
        await user.press("exclamation_mark")
        await user.until(lambda: user.cursor("messages").row.message == "And now?", "the cursor on it")


async def test_writing_back_closes_the_need_as_well(workspace: Workspace, task: str) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "root", says("Fine."), says("Good."), stay=True),
    ):
        await user.press("exclamation_mark")
        await user.until(lambda: user.pane == "messages", "the messages")
        await user.has_taken_in(workspace)
        await user.press("m")
        await user.sees("Message to root")
        await user.type("Go on.")
        await user.press("enter")
        await user.is_told("root reads this before its next step")
        await user.until(lambda: not user.model.needs, "nothing that waits")
        await user.until(
            lambda: "human:dana → root ✓✓ Go on." in user.words_in("#messages"), "that it was read"
        )


async def test_a_person_writes_to_the_agent_under_the_cursor(workspace: Workspace, task: str) -> None:
    async with (
        dashboard(workspace) as user,
        running(workspace, "eve", says("Fine."), says("Good."), stay=True),
    ):
        await to_tasks(user)
        await user.has_taken_in(workspace)
        await chooses_agent(user, "eve")
        await user.press("m")
        await user.sees("Message to eve")
        await user.type("Faster.")
        await user.press("enter")
        await user.is_told("eve reads this before its next step")
        await chooses_agent(user, "tom")
        assert not user.shows(" m message"), "who has ended reads nothing"


async def test_an_agent_without_a_session_hears_nothing(workspace: Workspace, task: str) -> None:
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.press("m")
        await user.is_told("root has no session, so it reads no messages.")


async def test_ending_an_agent_ends_those_that_it_made(workspace: Workspace, task: str) -> None:
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await chooses_agent(user, "ada")
        await user.press("X")
        await user.is_asked(
            "End ada for good? Its work stays, but the agent cannot be resumed. Agents that it"
        )
        assert "eve" in user.words_in("#question")
        await user.press("escape")
        assert [each.id for each in workspace.members.of_task(task) if each.ended] == ["tom"]
        await user.press("X", "enter")
        await user.is_told("ada has ended.")
        await user.sees("ended with ada")
        assert [each.id for each in workspace.members.of_task(task) if not each.ended] == ["root"]
        assert not user.shows("X end"), "who has ended is ended"


async def test_ending_the_first_agent_cancels_the_task_and_the_question_says_so(
    workspace: Workspace, task: str
) -> None:
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await to_pane(user, "members")
        await user.press("X")
        await user.is_asked("End root? The task cannot continue without it and is cancelled.")
        await user.press("enter")
        await user.sees("⊘ Build a calculator.")


async def test_a_task_is_cancelled_with_all_of_its_agents(workspace: Workspace, task: str) -> None:
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.press("X")
        await user.is_asked("Cancel 'Build a calculator.'? All of its agents end (3 running).")
        await user.press("enter")
        await user.is_told("'Build a calculator.' is cancelled.")
        await user.sees("⊘ Build a calculator.", "cancelled")
        assert workspace.tasks.find(task).status == "cancelled"


async def test_enter_on_an_agent_goes_to_its_session_and_esc_comes_back(
    workspace: Workspace, task: str
) -> None:
    async with dashboard(workspace) as user, running(workspace, "eve", says("All is written.")) as eve:
        await eve.ended()
        await to_tasks(user)
        await user.has_taken_in(workspace)
        await chooses_agent(user, "eve")
        await user.press("enter")
        await user.until(lambda: user.place == "agents", "the agents")
        await user.sees("All is written.")
        await user.until(lambda: user.pane == "session", "the keys in the session")
        await user.press("escape")
        await user.until(lambda: user.place == "tasks", "the tasks")
        await user.until(lambda: user.pane == "members", "the keys among the agents")
        assert user.cursor("members").member.id == "eve"


async def test_ended_agents_are_dimmed_among_the_agents(workspace: Workspace, task: str) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("2", "agents")
        await user.until(lambda: "– tom" in user.words_in("#agents"), "that tom has ended")
        assert "tom bottom ended" in user.words_in("#agents")
        assert "● eve" in user.words_in("#agents")


async def test_the_overview_says_who_wrote_what_and_how_often(workspace: Workspace, task: str) -> None:
    async with dashboard(workspace) as user:
        await user.until(lambda: "» message root May I go on?" in user.words_in("#needs"), "the message")
        ok(workspace.tools("root"), "send_message", to="user", payload={"text": "Well?"})
        await user.until(lambda: "» message root ×2 Well?" in user.words_in("#needs"), "the second message")


async def test_what_went_wrong_with_a_command_shows_beside_its_agent(workspace: Workspace, task: str) -> None:
    needs_sandbox(workspace)
    runs(workspace, "eve", "echo oh; exit 1")
    async with dashboard(workspace) as user:
        await user.until(lambda: "$ echo oh; exit 1" in user.words_in("#agents"), "the command")
        await to_tasks(user)
        await user.until(lambda: "$ echo oh; exit 1" in user.words_in("#members"), "the command")


async def test_the_activity_says_what_a_society_does(workspace: Workspace, task: str) -> None:
    async with dashboard(workspace, size=WIDE) as user:
        ok(workspace.tools_for_human("dana"), "end_task", task_id=task, status="failed", report="Too slow.")
        await user.goes_to("8", "activity")
        await user.sees(
            "spawn agent", "architect · Plan it.", "end agent", "no more to test", "message", "→ you"
        )
        await user.until(lambda: f"new task {task[:8]}" in user.words_in("#rows"), "the task")
        await user.sees("Too slow.")
        (ended,) = [line for line in user.lines() if "Too slow." in line]
        assert "end task" in ended
        assert "failed" in ended


async def test_narrow_what_belongs_together_shows_and_the_tab_in_front_is_always_seen(
    workspace: Workspace, task: str
) -> None:
    ok(workspace.tools("root"), "send_message", to="user", payload={"text": "Well?"})
    async with dashboard(workspace, size=NARROW) as user:
        await to_tasks(user)
        for panes, name in (
            (["tasks", "members"], "Tasks 1"),
            (["tasks", "members"], "Agents 4"),
            (["messages"], "Messages 4"),
            (["files", "preview"], "Files 2"),
            (["files", "preview"], "Preview"),
            (["commands", "output"], "Commands 0"),
            (["commands", "output"], "Output"),
        ):
            assert user.shown_panes() == panes
            await user.until(lambda name=name: name in user.lines()[1], name)  # type: ignore[misc]
            await user.press("tab")


@pytest.mark.parametrize("size", [MIDDLE, WIDE])
async def test_all_panes_show_where_there_is_space(
    workspace: Workspace, task: str, size: tuple[int, int]
) -> None:
    async with dashboard(workspace, size=size) as user:
        await to_tasks(user)
        assert len(user.shown_panes()) == 7


async def test_the_past_shows_that_moment_only_and_offers_no_acts(workspace: Workspace, task: str) -> None:
    workspace.flush()
    moment = workspace.journal.last_seq()
    eve = workspace.tools("eve")
    ok(eve, "write_file", path="later.md", content="Later.\n")
    ok(eve, "send_message", to="ada", payload={"text": "Later, too."})
    ok(workspace.tools_for_human("dana"), "end_task", task_id=task, status="done", report="")
    workspace.flush()
    last = workspace.journal.last_seq()
    async with past(workspace.journal, moment) as user:
        await to_tasks(user, "● Build a calculator.")
        await user.sees("README.md")
        assert [each.path.partition("/")[2] for each in user.list("files").items] == [
            "README.md",
            "calc/value.py",
        ]
        assert [each.sender for each in user.list("messages").items] == ["root", "tom", "eve"]
        for offered in ("X end", " m message", "sandbox:"):
            assert not user.shows(offered)
        for key in ("X", "X", "m"):
            await user.press(key)
            await user.is_told("This is the past: nothing can be changed here.")
        await user.chooses("sandbox")
        await user.is_told("not possible for the selected item: Show the sandboxes")
    assert workspace.journal.last_seq() == last


async def test_a_crowd_is_drawn_by_the_line(workspace: Workspace, task: str) -> None:
    workspace.register(Agent(f"worker-{n}", "worker", supervisor="ada", task=task) for n in range(200))
    eve = workspace.tools("eve")
    for n in range(500):
        ok(eve, "send_message", to="ada", payload={"text": f"Message {n}."})
    async with dashboard(workspace) as user:
        await to_tasks(user)
        await user.sees("Message 499.")
        assert len(user.list("members").items) == 204
        assert len(user.list("messages").items) == 500
        await to_pane(user, "members")
        await user.press("G")
        await user.sees("╰ worker-199")
