"""What happens to a buffer while its agent is busy elsewhere: another process of the same agent, an end
between the two rows of a flush, a move to another task or another place in the team."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from calls import ok, refused
from watchroom import Agent, Toolbox, Workspace
from watchroom.features.files.service import SharedFiles
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import Journal, RowFilter
from watchroom.model import Row
from watchroom_whiteboards.whiteboards import Whiteboards

Between = Callable[[Callable[[], object]], None]


@pytest.fixture
def between(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Between:
    """Has something done, once, just before a call takes its turn to make rows."""
    waiting: list[Callable[[], object]] = []
    kind = type(workspace.journal)
    original = kind.exclusive

    def exclusive(journal: Journal, key: str) -> AbstractContextManager[None]:
        while waiting:
            waiting.pop()()
        return original(journal, key)

    monkeypatch.setattr(kind, "exclusive", exclusive)
    return waiting.append


@pytest.fixture
def elsewhere(workspace: Workspace, root: Path) -> Iterator[Toolbox]:
    """Alice in another process."""
    with Workspace.open(root) as second:
        yield second.tools("alice")


def write(toolbox: Toolbox, content: str) -> None:
    ok(toolbox, "collab_write", filepath="plan.md", content=content, message="m", expected_version=-1)


def text(workspace: Workspace, name: str = "plan") -> str:
    return workspace.buffers.find(CallContext("alice"), name).text


class TestAnotherProcess:
    def test_what_it_puts_in_is_not_closed_away(
        self, workspace: Workspace, alice: Toolbox, elsewhere: Toolbox, between: Between
    ) -> None:
        ok(alice, "open_buffer", source="collab", path="plan.md")
        between(lambda: ok(elsewhere, "plan_append", text="more\n"))
        assert refused(alice, "close_buffer", buffer="plan")["error"] == "buffer_unflushed"
        assert text(workspace) == "more\n"

    def test_selections_that_it_lapses_have_to_be_matched_again(
        self, workspace: Workspace, alice: Toolbox, elsewhere: Toolbox, root: Path
    ) -> None:
        ok(alice, "open_buffer", source="collab", path="plan.md")
        ok(alice, "plan_append", text="one one\n")
        refused(alice, "plan_replace", old_text="one", new_text="1")
        assert "no longer valid" in ok(elsewhere, "plan_append", text="more\n")["guidance"]
        assert refused(alice, "plan_replace_selection", selection_id=1)["error"] == "selection_lapsed"
        with Workspace.open(root) as third:
            answer = refused(third.tools("alice"), "plan_replace_selection", selection_id=1)
        assert answer["error"] == "selection_lapsed"
        assert "plan_replace" in answer["suggestion"]

    def test_selections_lapse_with_a_refresh(self, alice: Toolbox, bob: Toolbox, elsewhere: Toolbox) -> None:
        write(bob, "one one\n")
        ok(alice, "open_buffer", source="collab", path="plan.md")
        refused(alice, "plan_replace", old_text="one", new_text="1")
        write(bob, "one two\n")
        assert "no longer valid" in ok(elsewhere, "plan_refresh")["guidance"]
        assert refused(alice, "plan_replace_selection", selection_id=1)["error"] == "selection_lapsed"

    def test_a_source_is_opened_once(
        self, workspace: Workspace, alice: Toolbox, elsewhere: Toolbox, between: Between
    ) -> None:
        between(lambda: ok(elsewhere, "open_buffer", source="collab", path="plan.md", name="draft"))
        assert ok(alice, "open_buffer", source="collab", path="plan.md")["buffer"] == "draft"
        assert workspace.buffers.open_names("alice") == ["draft"]

    def test_a_name_stands_for_one_source(self, alice: Toolbox, elsewhere: Toolbox, between: Between) -> None:
        between(lambda: ok(elsewhere, "open_buffer", source="collab", path="else.md", name="plan"))
        answer = refused(alice, "open_buffer", source="collab", path="plan.md", name="plan")
        assert answer["error"] == "buffer_taken"

    def test_a_buffer_begins_with_the_newest_version(
        self, workspace: Workspace, alice: Toolbox, bob: Toolbox, between: Between
    ) -> None:
        write(bob, "one\n")
        between(lambda: write(bob, "two\n"))
        assert "two\n" in ok(alice, "open_buffer", source="collab", path="plan.md")["markdown"]
        assert workspace.buffers.find(CallContext("alice"), "plan").record.base == 2

    def test_what_it_puts_in_during_a_flush_is_no_conflict(
        self, workspace: Workspace, alice: Toolbox, elsewhere: Toolbox, between: Between
    ) -> None:
        write(alice, "one\n")
        ok(alice, "open_buffer", source="collab", path="plan.md")
        ok(alice, "plan_append", text="two\n")
        between(lambda: ok(elsewhere, "plan_append", text="three\n"))
        ok(alice, "plan_flush")
        ok(elsewhere, "plan_flush")
        assert ok(alice, "collab_read", filepath="plan.md")["content"] == "one\ntwo\nthree\n"
        assert workspace.buffers.find(CallContext("alice"), "plan").syncing == "Synced"
        assert not workspace.journal.refused("collab", "plan.md")

    def test_its_flush_during_a_flush_is_no_conflict(
        self, workspace: Workspace, alice: Toolbox, elsewhere: Toolbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ok(alice, "open_buffer", source="collab", path="plan.md")
        ok(alice, "plan_append", text="one\n")
        original = SharedFiles.write

        def write_after(*given: Any, **named: Any) -> Row:
            monkeypatch.setattr(SharedFiles, "write", original)
            ok(elsewhere, "plan_append", text="two\n")
            ok(elsewhere, "plan_flush")
            return original(*given, **named)

        monkeypatch.setattr(SharedFiles, "write", write_after)
        ok(alice, "plan_flush")
        assert ok(alice, "collab_read", filepath="plan.md")["content"] == "one\ntwo\n"
        assert text(workspace) == "one\ntwo\n"


def test_what_was_put_in_behind_a_flush_that_was_cut_off_is_still_to_be_written(
    workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "open_buffer", source="collab", path="plan.md")
    ok(alice, "plan_append", text="one\n")
    ok(alice, "plan_append", text="two\n")
    # What the flush of an earlier edition writes first, and nothing after it.
    workspace.collab.write(CallContext("alice", "flush_buffer"), "plan.md", "one\n", 0)
    assert workspace.buffers.find(CallContext("alice"), "plan").record.is_changed
    assert refused(alice, "close_buffer", buffer="plan")["error"] == "buffer_unflushed"
    ok(alice, "plan_flush")
    assert ok(alice, "collab_read", filepath="plan.md")["content"] == "one\ntwo\n"
    ok(alice, "close_buffer", buffer="plan")


@pytest.mark.parametrize("kind", ["private", "collab", "file", "board"])
def test_a_flush_that_was_cut_off_is_no_conflict_with_what_came_after(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, tmp_path: Path, root: Path, kind: str
) -> None:
    path = "global" if kind == "board" else "plan.md"
    ok(alice, "open_buffer", source=kind, path=path, name="plan")
    ok(alice, "plan_append", text="mine\n")
    mine = text(workspace)
    theirs = f"{mine}theirs\n"
    base = workspace.buffers.find(CallContext("alice"), "plan").record.base
    # What a flush writes first, and nothing after it; then somebody else writes.
    if kind == "private":
        workspace.private.write(CallContext("alice", "flush_buffer"), "alice", path, mine, expected=base)
        (root / "agents/alice/plan.md").write_text(theirs)
    elif kind == "collab":
        workspace.collab.write(CallContext("alice", "flush_buffer"), path, mine, base)
        write(bob, theirs)
    elif kind == "file":
        workspace.task_files.write(CallContext("alice", "flush_buffer"), path, mine, expected=base)
        (tmp_path / "work/plan.md").write_text(theirs)
    else:
        Whiteboards.of(workspace).write(CallContext("alice", "flush_buffer"), path, mine, base)
        ok(bob, "whiteboard_write", board=path, content=theirs, message="m", expected_version=-1)
    answer = alice.dispatch_tool_call("plan_flush", {}, call="cut", again=True)
    assert answer["success"] is True, answer
    assert ok(alice, "plan_refresh")["workflow_state"] == "Synced"
    assert text(workspace) == theirs
    assert workspace.verify() == []


def test_another_text_under_the_name_of_a_flush_is_merged(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, "one\ntwo\n")
    ok(alice, "open_buffer", source="collab", path="plan.md")
    ok(alice, "plan_append", text="mine\n")
    workspace.collab.write(CallContext("alice", "flush_buffer"), "plan.md", "1\ntwo\n", 1)
    assert refused(alice, "plan_flush")["error"] == "flush_conflict"
    ok(alice, "plan_refresh")
    assert text(workspace) == "1\ntwo\nmine\n"


class TestAMove:
    """The agent is another one's colleague by now; what it had open stays as it is."""

    def test_the_file_of_another_task_is_not_written(
        self, workspace: Workspace, alice: Toolbox, tmp_path: Path
    ) -> None:
        ok(alice, "open_buffer", source="file", path="main.py")
        ok(alice, "main_append", text="old\n")
        ok(alice, "main_flush")
        ok(alice, "main_append", text="more\n")
        (tmp_path / "other").mkdir()
        (tmp_path / "other/main.py").write_text("new\n")
        task = workspace.tasks.submit("human:dana", "Build something else.", tmp_path / "other")
        workspace.register([Agent("alice", "strategy", "top", task=task.id)])
        assert refused(alice, "main_flush")["status"] == "PersistFailure"
        assert refused(alice, "main_refresh")["error"] == "source_unreadable"
        assert (tmp_path / "other/main.py").read_text() == "new\n"
        assert ok(alice, "open_buffer", source="file", path="main.py")["buffer"] == "main-2"

    def test_a_board_that_is_gone_takes_no_other_tool_away(self, root: Path) -> None:
        team = [Agent("zoe", "helper", "bottom"), Agent("bob", "strategy", "top")]
        with Workspace.open(root, agents=team) as first:
            zoe = first.tools("zoe")
            ok(zoe, "open_buffer", source="board", path="bottom-layer-zoe", name="own")
            ok(zoe, "own_append", text="mine\n")
            first.register([Agent("zoe", "strategy", "top")])
        with Workspace.open(root) as second:
            zoe = second.tools("zoe")
            assert "own_append" in [each["name"] for each in zoe.get_tool_definitions()]
            assert "mine\n" in zoe.show_buffers()
            assert refused(zoe, "own_flush")["status"] == "PersistFailure"
            ok(zoe, "close_buffer", buffer="own", discard=True)


class TestRepeatedAfterClosing:
    def test_what_was_done_is_told_once_more(self, workspace: Workspace, alice: Toolbox) -> None:
        ok(alice, "open_buffer", source="collab", path="plan.md")
        ok(alice, "plan_append", text="x\n")
        first = alice.dispatch_tool_call("plan_flush", {}, call="flush")
        ok(alice, "close_buffer", buffer="plan")
        assert alice.dispatch_tool_call("plan_flush", {}, call="flush", again=True) == first
        again = alice.dispatch_tool_call("plan_append", {"text": "y\n"}, call="other", again=True)
        assert again["error"] == "buffer_not_found"

    def test_what_is_closed_cannot_be_shown(self, alice: Toolbox) -> None:
        given = {"source": "collab", "path": "plan.md"}
        alice.dispatch_tool_call("open_buffer", given, call="open")
        ok(alice, "close_buffer", buffer="plan")
        again = alice.dispatch_tool_call("open_buffer", given, call="open", again=True)
        assert again["error"] == "buffer_not_found"


def test_opening_once_more_tells_the_source_and_is_a_row(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "open_buffer", source="collab", path="plan.md")
    ok(alice, "plan_append", text="x\n")
    assert ok(alice, "open_buffer", source="collab", path="plan.md")["source"] == "collab:plan.md"
    (again, first) = workspace.journal.rows_before(10**9, only=RowFilter(zone="buffer", tool="open_buffer"))
    assert (first.version, again.version, again.path) == (1, None, "alice/plan")


def test_a_template_that_was_accepted_stays_accepted(workspace: Workspace, root: Path) -> None:
    alice = workspace.tools("alice")
    ok(alice, "open_buffer", source="board", path="global")
    workspace.register([Agent("zoe", "helper", "bottom")])
    ok(alice, "global_accept_source")
    with Workspace.open(root) as second:
        assert second.buffers.find(CallContext("alice"), "global").syncing == "Synced"
