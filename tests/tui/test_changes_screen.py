"""The files screen in a repository: changes since HEAD, authors of lines, and actions on them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from textual.widgets import Input
from trees.git_repo import ENVIRONMENT
from trees.git_repository import Repository
from trees.tree_client import Refused, ScriptedClient
from tui.conflict_steps import is_asked_for_a_message
from tui.driver import MIDDLE, NARROW, WIDE, User, dashboard, running
from tui.team import has_opened_merge
from watchroom import Workspace
from watchroom.features.trees.comments import SENT
from watchroom.features.trees.rows import BASELINE, TRY_AGENT
from watchroom.kernel.call_context import CallContext
from watchroom_tui.app import WatchroomApp
from watchroom_tui.base_screen import BaseScreen


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    made = Repository(tmp_path / "project")
    made.commit(a__txt="one\ntwo\nthree\n", b__txt="b\n")
    return made


@pytest.fixture
def kept(repository: Repository) -> Iterator[Workspace]:
    with Workspace.open(repository.root, agents=["alice", "bob"]) as workspace:
        assert workspace.keep()
        yield workspace


@pytest.fixture
def alice(kept: Workspace, repository: Repository) -> ScriptedClient:
    return ScriptedClient(kept, "alice", repository.folder)


@pytest.fixture
def bob(kept: Workspace, repository: Repository) -> ScriptedClient:
    return ScriptedClient(kept, "bob", repository.folder)


def work(alice: ScriptedClient, bob: ScriptedClient) -> None:
    """Let alice change one file and add another, and bob append a line to the first with a command."""
    alice.read("a.txt")
    alice.edit("a.txt", "two", "TWO")
    alice.write("new.txt", "1\n2\n")
    bob.bash("echo four >> a.txt")


def collide(alice: ScriptedClient, bob: ScriptedClient) -> None:
    """Let bob's whole text be refused, because alice has changed the same line."""
    bob.read("a.txt")
    alice.read("a.txt")
    alice.edit("a.txt", "one", "ONE")
    with pytest.raises(Refused):
        bob.write("a.txt", "uno\ntwo\nthree\n")
    alice.stop()
    bob.stop()


def name_of_change(user: User) -> str:
    """The name of the changed file under the cursor, empty if there is none."""
    item = user.cursor("changes")
    return item.file.name if item is not None and item.file is not None else ""


async def opens_changes(user: User, count: int) -> None:
    await user.goes_to("4", "files")
    await user.until(lambda: len(user.list("changes").items) == count, f"{count} changes")
    assert user.pane == "changes"


async def test_changes_since_head_are_shown_with_their_authors(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    await asyncio.to_thread(work, alice, bob)
    async with dashboard(kept) as user:
        await opens_changes(user, 2)
        await user.sees("M a.txt", "alice +1 −1 · ~bob +1", "A new.txt", "+ │alice TWO", "+ │~bob")
        await user.press("L")
        await user.sees_no("│alice TWO")
        await user.press("L", "d")
        await user.sees("a.txt  HEAD → now", "− two", "+ TWO", "+ four")
        await user.press("d", "down")
        await user.sees("new.txt  with authors")
        assert "shared" not in user.shown_panes()


@pytest.mark.parametrize("screen", ["1 overview", "8 activity"])
async def test_an_edit_is_one_line_of_activity(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient, screen: str
) -> None:
    await asyncio.to_thread(collide, alice, bob)
    await asyncio.to_thread(alice.write, "new.txt", "1\n")
    key, name = screen.split()
    async with dashboard(kept) as user:
        await user.goes_to(key, name)
        rows = user.list("activity" if key == "1" else "rows")

        await user.until(lambda: len(rows.items) > 2, "the rows")
        alices = [row for row in rows.items if row.actor == "alice" and row.version is not None]
        bobs = [row for row in rows.items if row.actor == "bob" and row.outcome != "ok"]
        assert [row.zone for row in alices] == ["repo", "repo"]
        assert [row.zone for row in bobs] == ["repo"]
        assert not [row for row in rows.items if row.tool == BASELINE]
        await user.press("z")
        await user.until(lambda: [row for row in rows.items if row.tool == BASELINE], "all rows")
        assert {row.zone for row in rows.items if row.actor == "bob" and row.version is not None} == {
            "session"
        }


async def test_each_read_of_a_client_is_one_read_of_its_agent(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    def read() -> None:
        for client, name in ((bob, "a.txt"), (alice, "a.txt"), (alice, "b.txt"), (alice, "b.txt")):
            client.read(name)
        kept.flush()

    await asyncio.to_thread(read)
    async with dashboard(kept) as user:
        await user.sees("3 reads")
        assert not user.shows("4 reads")
        log = [(each.row.actor, each.readings) for each in user.model.activity_log if each.readings]
        assert log == [("alice", 3), ("bob", 1)]
        await user.goes_to("8", "activity")
        rows = [row.actor for row in user.list("rows").items if row.actor != "system"]
        assert rows == ["alice", "alice", "alice", "bob"]


async def test_reads_of_agents_at_the_same_time_are_counted_once(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    def read() -> None:
        given = {"file_path": str(alice.folder / "a.txt")}
        asked = [(client, client.ask("Read", given)[0]) for client in (alice, bob)]
        file = {"content": "one\ntwo\nthree\n", "startLine": 1, "numLines": 3, "totalLines": 3}
        for client, call in asked:
            client.report("Read", call, given, {"file": file})
        kept.flush()

    await asyncio.to_thread(read)
    async with dashboard(kept) as user:
        await user.sees("a.txt")
        log = [(each.row.actor, each.readings) for each in user.model.activity_log if each.readings]
        assert sorted(log) == [("alice", 1), ("bob", 1)]


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_write_that_a_client_refuses_is_in_its_session(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient, is_late: bool
) -> None:
    """``is_late``: the transcript reports the result before the hook reports the call."""

    def refuse() -> None:
        alice.read("a.txt")
        bob.read("a.txt")
        bob.edit("a.txt", "one", "ONE")
        error = "<tool_use_error>File has been modified since read</tool_use_error>"
        if is_late:
            alice.report_result("w1", error)
        given = {"file_path": str(alice.folder / "a.txt"), "content": "uno\n"}
        call = {"tool_name": "Write", "tool_use_id": "w1", "tool_input": given, "tool_response": error}
        alice.hook("PostToolBatch", tool_calls=[call])
        alice.report_result("w1", error)
        kept.flush()

    await asyncio.to_thread(refuse)
    async with dashboard(kept) as user:
        await user.goes_to("2", "agents")
        said = "File has been modified since read" if is_late else "Not written: bob changed 'a.txt'"
        await user.sees("✗ ▸ Write")
        await user.until(lambda: said in " ".join(user.words_in("#session").split()), "the refusal")
        await user.goes_to("8", "activity")
        rows = [row for row in user.list("rows").items if row.actor == "alice"]
        assert [(row.zone, row.outcome) for row in rows] == [("repo", "conflict"), ("repo", "ok")]


async def test_changes_follow_edits_and_commits(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    async with dashboard(kept) as user:
        await opens_changes(user, 0)
        await user.sees("No differences from HEAD.")
        await asyncio.to_thread(alice.write, "new.txt", "1\n")
        await user.sees("A new.txt")
        repository.git("add", ".")
        repository.git("commit", "-qm", "m")
        kept.trees.refresh_all()
        await user.sees("No differences from HEAD.")


async def test_a_file_that_was_not_among_the_changes_does_not_take_the_cursor_later(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    await asyncio.to_thread(alice.write, "new.txt", "needle\n")
    await asyncio.to_thread(alice.write, "old.txt", "1\n")
    repository.git("add", "new.txt")
    repository.git("commit", "-qm", "m")
    kept.trees.refresh_all()
    async with dashboard(kept) as user:
        await opens_changes(user, 1)
        await user.press("ctrl+f", *"needle")
        await user.until(lambda: user.list("hits").items, "the hit")
        await user.press("enter")
        await user.until(lambda: user.place == "RowDialog", "the row")
        await user.press("escape")
        await user.until(lambda: user.place == "files", "the files")
        assert name_of_change(user) == "old.txt"
        await asyncio.to_thread(alice.write, "new.txt", "2\n")
        await user.sees("M new.txt")
        assert name_of_change(user) == "old.txt"


async def test_keys_do_not_wait_for_changes_that_git_cannot_list(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    await asyncio.to_thread(alice.write, "new.txt", "needle\n")
    objects = repository.folder / ".git" / "objects"
    objects.rename(objects.with_name("moved"))
    objects.mkdir()
    async with dashboard(kept) as user:
        await user.goes_to("4", "files")
        await user.press("ctrl+f", *"needle")
        await user.until(lambda: user.list("hits").items, "the hit")
        await user.press("enter")
        await user.until(lambda: user.place == "RowDialog", "the row")
        screen = user.app.base_screen
        assert isinstance(screen, BaseScreen)
        await user.until(lambda: not screen.is_arriving, "that nothing is awaited")
        objects.rmdir()
        objects.with_name("moved").rename(objects)
        await user.press("escape")
        await user.sees("A new.txt")


async def test_versions_follow_a_single_row(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    await asyncio.to_thread(alice.write, "new.txt", "1\n")
    async with dashboard(kept) as user:
        await opens_changes(user, 1)
        await user.sees("v1 alice")
        # No later row brings another model.
        repository.write("new.txt", "2\n")
        await user.sees("v2 external")


async def test_space_groups_by_author_and_by_tree(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    await asyncio.to_thread(work, alice, bob)
    async with dashboard(kept) as user:
        await opens_changes(user, 2)
        await user.press("space")
        await user.sees("by author", "▾   alice", "▾   ~bob")
        await user.press("space")
        await user.sees("by tree", "▾   ⎇ main")
        await user.press("space")
        await user.sees_no("▾   ⎇ main")


async def test_versions_of_a_changed_file_are_compared(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    await asyncio.to_thread(work, alice, bob)
    async with dashboard(kept) as user:
        await opens_changes(user, 2)
        await user.until(lambda: len(user.list("versions").items) == 3, "the versions")
        await user.sees("v2 alice", "by its own tool")
        await user.press("tab")
        assert user.pane == "versions"
        await user.sees("a.txt v3", "4 ▌four")
        await user.press("d")
        await user.sees("v2 → v3", "+ four")
        await user.press("down")
        await user.sees("v1 → v2", "+ TWO")


async def test_the_work_of_one_agent_is_committed(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    await asyncio.to_thread(work, alice, bob)
    async with dashboard(kept) as user:
        await opens_changes(user, 2)
        await user.press("K")
        await user.is_asked("Commit the work of alice onto main? Files: 2.")
        assert "+TWO" in user.words_in("#changes")
        assert "four" not in user.words_in("#changes")
        await user.press("]")
        await user.is_asked("Commit the work of bob onto main? Files: 1.")
        await user.press("[")
        await user.is_asked("Commit the work of alice onto main? Files: 2.")
        await user.press("enter")
        await is_asked_for_a_message(user)
        await user.type("Two")
        await user.press("enter")
        await user.is_told("onto main. Files: 2.")
        await user.until(lambda: len(user.list("changes").items) == 1, "what bob changed")
        assert repository.git("show", "HEAD:a.txt") == "one\nTWO\nthree"
        assert repository.git("log", "-1", "--format=%an %s") == "alice Two"
        assert repository.read("a.txt") == "one\nTWO\nthree\nfour\n"


async def test_a_commit_can_go_to_a_new_branch(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    await asyncio.to_thread(work, alice, bob)
    async with dashboard(kept) as user:
        await opens_changes(user, 2)
        await user.press("K")
        await user.is_asked("onto main?")
        await user.press("z")
        await user.is_asked("onto watchroom/alice?")
        await user.press("enter")
        await is_asked_for_a_message(user)
        await user.type("Two")
        await user.press("enter")
        await user.is_told("onto watchroom/alice. Files: 2.")
        assert repository.git("show", "watchroom/alice:a.txt") == "one\nTWO\nthree"
        assert repository.git("log", "--format=%s", "HEAD") == "m\nstart"


async def test_a_conflict_in_a_tree_is_settled_on_the_merge_screen_and_on_disk(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    await asyncio.to_thread(collide, alice, bob)
    async with dashboard(kept) as user:
        await opens_changes(user, 1)
        await user.sees("⚔")
        await user.press("exclamation_mark")
        await has_opened_merge(user)
        await user.sees("incoming · bob")
        assert not any(kept.trees.all()[0].id in line for line in user.lines())
        await user.press("i", "w")
        await is_asked_for_a_message(user)
        await user.press("enter")
        await user.until(lambda: user.place == "files", "the files")
        await user.until(lambda: repository.read("a.txt") == "uno\ntwo\nthree\n", "the text of bob")
        await user.until(lambda: not user.model.conflicts, "no conflict")
        await user.sees("human:dana")


async def test_the_work_of_an_agent_is_taken_back_on_disk(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    await asyncio.to_thread(work, alice, bob)
    async with dashboard(kept) as user:
        await opens_changes(user, 2)
        await user.press("V")
        await user.until(lambda: "Revert 2 changes?" in user.words_in("#question"), "what it changes")
        shown = user.words_in("#changes")
        assert "a.txt" in shown
        assert "clients' own tools" not in shown
        assert kept.trees.all()[0].id not in shown
        await user.press("enter")
        await user.until(lambda: repository.read("a.txt") == "one\ntwo\nthree\nfour\n", "the text of git")
        await user.until(lambda: not (repository.folder / "new.txt").exists(), "no new file")
        await user.until(lambda: user.place == "files", "the screen beneath")
        await user.until(lambda: len(user.list("changes").items) == 1, "what bob changed")


async def test_files_of_trees_are_shown_as_they_were(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    await asyncio.to_thread(work, alice, bob)
    async with dashboard(kept, size=WIDE) as user:
        await opens_changes(user, 2)
        await user.press("T", "comma")
        await user.until(lambda: len(user.list("shared").items) == 2, "the files of the tree")
        assert "changes" not in user.shown_panes()
        await user.sees("new.txt", "alice")


async def test_rows_of_trees_are_shown_without_ids_and_with_how_sure_they_are(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    await asyncio.to_thread(work, alice, bob)
    async with dashboard(kept, size=WIDE) as user:
        await user.goes_to("8", "activity")
        await user.sees("~bob", "a.txt")
        await user.press("z")
        await user.sees("text in git")
        rows = [line for line in user.lines() if "a.txt" in line and "~bob" in line]
        assert rows
        assert kept.trees.all()[0].id not in rows[0]


async def test_the_header_names_the_branch_and_follows_a_checkout(
    kept: Workspace, repository: Repository
) -> None:
    async with dashboard(kept) as user:
        await user.sees("team/  ⎇ main  ● live")
        repository.git("switch", "-qc", "fares")
        kept.trees.refresh_all()
        await user.sees("team/  ⎇ fares  ● live")
        head = repository.git("rev-parse", "HEAD")
        repository.git("checkout", "-q", "--detach")
        kept.trees.refresh_all()
        await user.sees(f"team/  ⎇ {head[:8]}  ● live")


async def test_trees_come_first_without_tasks_and_lead_to_their_changes(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient, tmp_path: Path
) -> None:
    await asyncio.to_thread(work, alice, bob)
    repository.git("worktree", "add", "-q", "-b", "fares", str(tmp_path / "fares"))
    repository.git("-C", str(tmp_path / "fares"), "commit", "-q", "--allow-empty", "-m", "two")
    kept.trees.refresh_all()
    await asyncio.to_thread(lambda: ScriptedClient(kept, "bob", tmp_path / "fares").write("c.txt", "1\n"))
    async with dashboard(kept) as user:
        await user.goes_to("9", "tasks")
        assert user.pane == "trees"
        await user.sees("⎇ main", "alice, bob", "files: 2", "⎇ fares", "↑1 main", "files: 1")
        assert "members" not in user.shown_panes()
        await user.press("/", *"fares", "enter")
        await user.press("enter")
        await user.until(lambda: user.place == "files", "the files")
        await user.until(lambda: name_of_change(user) == "c.txt", "the change in that tree")


async def test_the_last_check_of_a_tree_is_shown(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path
) -> None:
    await asyncio.to_thread(alice.write, "new.txt", "1\n")
    dana = CallContext("human:dana", TRY_AGENT)
    git = kept.trees.all()[0].git
    async with dashboard(kept) as user:
        await user.goes_to("9", "tasks")
        for command, shown in (("exit 3", "✖ 3 "), ("exit 0", "✓ ")):
            words = ["sh", "-c", command]
            attempt = partial(kept.agent_commits.try_agent, git, ["alice"], words, call=dana)
            await asyncio.to_thread(attempt, cache=str(tmp_path / "cache"))
            await user.sees(shown)


async def comments(user: User, text: str) -> None:
    """Write a comment on the line under the cursor, in place of what is there."""
    await user.press(";")
    await user.until(lambda: user.place == "TextInputDialog", "where the comment is written")
    await user.press("ctrl+u", *text, "enter")
    await user.until(lambda: user.place == "files", "the files")


async def test_comments_stand_below_their_lines_and_are_sent_as_the_next_prompt(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    await asyncio.to_thread(work, alice, bob)
    async with dashboard(kept) as user:
        await opens_changes(user, 2)
        await user.press("enter")
        await user.sees("+ │alice TWO")
        await user.press("down")
        await comments(user, "Why in capitals?")
        await user.sees("┃ Why in capitals?", "comments: 1")
        await user.press("d")
        await user.sees("+ TWO", "┃ Why in capitals?")
        await user.press("d")
        await user.sees("a.txt  with authors")
        await user.press("down")
        await comments(user, "Why [bold]capitals[/]?")
        await user.sees("┃ Why [bold]capitals[/]?", "comments: 1")
        await user.goes_to("1", "overview")
    async with dashboard(kept) as user:
        await opens_changes(user, 2)
        await user.press("down", "enter")
        await user.sees("new.txt  with authors")
        await user.press("space", "down")
        await comments(user, "Both?")
        await user.sees("┃ Both?")
        await user.press("m")
        await user.is_asked("Send these comments to alice as its next prompt? Comments: 2.")
        shown = user.words_in("#changes")
        assert "a.txt, line 2: > TWO Why [bold]capitals[/]?" in shown
        assert "new.txt, line 1: > 1 > 2 Both?" in shown
        await user.press("enter")
        await user.is_told("Sent.")
        await user.sees("┃ ✓ Both?")
        assert kept.journal.rows_before(kept.journal.last_seq() + 1, limit=1)[0].tool == SENT
        await user.press("m")
        await user.until(lambda: user.place == "TextInputDialog", "where a message is written")


async def test_a_comment_without_text_is_removed(kept: Workspace, alice: ScriptedClient) -> None:
    await asyncio.to_thread(alice.write, "new.txt", "1\n2\n")
    async with dashboard(kept) as user:
        await opens_changes(user, 1)
        await user.press("enter")
        await user.sees("new.txt  with authors")
        await comments(user, "Why?")
        await user.sees("┃ Why?")
        await comments(user, "")
        await user.sees_no("┃ Why?")
        assert user.model.comments == ()


async def test_nobody_reads_a_comment_on_what_no_agent_wrote(kept: Workspace, repository: Repository) -> None:
    (repository.folder / "new.txt").write_text("1\n")
    kept.trees.refresh_all()
    async with dashboard(kept) as user:
        await opens_changes(user, 1)
        await user.press("enter")
        await user.sees("new.txt  with authors")
        await user.press(";")
        await user.is_told("No agent made this change")


async def test_the_work_of_an_agent_is_tried_before_it_is_committed(
    kept: Workspace,
    repository: Repository,
    alice: ScriptedClient,
    bob: ScriptedClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    await asyncio.to_thread(work, alice, bob)
    async with dashboard(kept) as user:
        await opens_changes(user, 2)
        await user.press("K")
        await user.is_asked("Commit the work of alice onto main? Files: 2.")
        await user.press("ctrl+t")
        await user.until(lambda: user.place == "TextInputDialog", "where the command is written")
        await user.press(*"cat a.txt; false", "enter")
        await user.is_asked("The command on the work of alice ended with status 1")
        assert "TWO three" in user.words_in("#changes")
        assert "four" not in user.words_in("#changes")
        await user.press("escape", "K")
        await user.is_asked("Commit the work of alice onto main? Files: 2.")
        await user.press("ctrl+t")
        await user.sees("cat a.txt; false")
        await user.press("ctrl+u", *"true", "enter")
        await user.is_asked("ended with status 0")
        await user.press("enter")
        await is_asked_for_a_message(user)
        await user.type("Two")
        await user.press("enter")
        await user.is_told("onto main. Files: 2.")


async def test_the_work_of_an_agent_is_committed_from_the_agents_screen(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    await asyncio.to_thread(work, alice, bob)
    async with dashboard(kept) as user:
        await user.goes_to("2", "agents")
        user.list("agents").move_to("bob")
        await user.press("K")
        await user.is_asked("Commit the work of bob onto main? Files: 1.")


async def test_an_agent_without_a_client_has_no_terminal(kept: Workspace, alice: ScriptedClient) -> None:
    await asyncio.to_thread(alice.write, "new.txt", "1\n")
    async with dashboard(kept) as user:
        await opens_changes(user, 1)
        await user.press("J")
        await user.is_told("No client of alice runs on this machine.")


@pytest.mark.parametrize("size", [NARROW, MIDDLE, WIDE])
async def test_a_revert_is_reported_with_names_of_files(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient, size: tuple[int, int]
) -> None:
    await asyncio.to_thread(work, alice, bob)
    for number in range(20):
        await asyncio.to_thread(alice.write, f"{number}-of-many-files.txt", "1\n")
    tree = kept.trees.all()[0].id
    async with dashboard(kept, size=size) as user:
        await opens_changes(user, 22)
        changes = user.list("changes")
        a_txt = next(each for each in changes.items if each.file.name == "a.txt")
        changes.move_to(changes.item_key(a_txt))
        await user.press("V")
        await user.until(lambda: "Revert 22 changes?" in user.words_in("#question"), "what it changes")
        await user.press("enter")
        await user.until(lambda: user.place == "files", "the screen beneath")
        await user.until(lambda: len(user.list("changes").items) == 1, "what bob changed")
        await user.until(lambda: len(user.list("versions").items) == 4, "the version of the revert")
        # Its author is certain: the person at this dashboard.
        versions = user.list("versions")
        assert "revert work" in versions.item_text(versions.items[0])
        assert "no command" not in versions.item_text(versions.items[0])
        await user.goes_to("9", "tasks")
        await user.until(lambda: user.list("messages").items, "the message")
        user.app.screen.query_one("#messages").focus()
        names = ("a.txt, new.txt", "0-of-many-files.txt")
        await user.until(lambda: any(each in user.words_in("#messages") for each in names), "the files")
        shown = user.words_in("#messages")
        assert tree not in shown
        # The text goes on in the dialog of the message.
        assert "…" in shown
        # The messages have the free rows.
        assert user.list("messages").size.height > 12


@pytest.mark.parametrize("size", [NARROW, MIDDLE, WIDE])
async def test_without_agents_it_says_how_to_start_one(repository: Repository, size: tuple[int, int]) -> None:
    with Workspace.open(repository.root) as workspace:
        app = WatchroomApp(
            workspace.journal,
            place="project",
            person="dana",
            root=str(repository.root),
            open_workspace=lambda: workspace,
        )
        async with running(app, size, paints=False) as user:
            for key, screen, pane in (
                ("2", "agents", "agents"),
                ("8", "activity", "rows"),
                ("1", "overview", "agents"),
            ):
                await user.goes_to(key, screen)
                await user.until(partial(user.words_in, f"#{pane}"), pane)
                assert ("watchroom claude" in user.words_in(f"#{pane}")) == (pane == "agents")
                assert "watchroom init" not in user.words_in(f"#{pane}")
                assert "watchroom call" not in user.words_in(f"#{pane}")


@pytest.mark.parametrize("size", [NARROW, MIDDLE, WIDE])
async def test_a_message_to_an_idle_agent_promises_no_next_step(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient, size: tuple[int, int]
) -> None:
    await asyncio.to_thread(collide, alice, bob)
    async with dashboard(kept, size=size) as user:
        await user.goes_to("2", "agents")
        await user.until(lambda: user.cursor("agents") is not None, "an agent")
        await user.press("m")
        await user.sees("Message to alice")
        assert "alice is idle. It reads this when it continues" in user.words_in("#hint")
        # The hint has a frame of its own, as wide as the text below it.
        hint, text = (user.app.screen.query_one(each).region for each in ("#hint", "#text"))
        top = user.lines()[hint.y]
        assert (top[hint.x], top[hint.right - 1]) == ("╭", "╮")
        assert (hint.x, hint.width) == (text.x, text.width)


async def test_a_task_is_not_proposed_inside_of_the_git_folder(
    kept: Workspace, repository: Repository
) -> None:
    async with dashboard(kept) as user:
        await user.press("N")
        await user.until(lambda: user.place == "NewTaskDialog", "the dialog")
        assert user.app.screen.query_one("#folder", Input).value == f"{repository.folder}-task-1"
