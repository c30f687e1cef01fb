"""What every source of a buffer keeps to, whatever it is: a private file, a shared file, a file of a task, a
whiteboard (EDIT-5.3, EDIT-9: the smoke test with real sources)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from calls import ok, refused
from watchroom import Agent, Toolbox, Workspace
from watchroom.features.buffers.reads import read_buffer
from watchroom.features.overview.fold import Fold
from watchroom.kernel.call_context import CallContext

Writes = Callable[[str], None]


class Source:
    """One source of alice's: as her tools name it, and how somebody else writes and reads it."""

    def __init__(self, kind: str, path: str, writes: Writes, reads: Callable[[], str]) -> None:
        self.kind = kind
        self.path = path
        self.others_write = writes
        self.now = reads


@pytest.fixture(params=["private", "collab", "file", "board"])
def source(
    request: pytest.FixtureRequest, workspace: Workspace, tmp_path: Path, root: Path, bob: Toolbox
) -> Source:
    alice = workspace.tools("alice")
    private = root / "agents" / "alice" / "notes" / "plan.md"
    file = tmp_path / "work" / "plan.py"
    by_hand: dict[str, Path] = {"private": private, "file": file}
    if request.param in by_hand:
        path = by_hand[request.param]

        def by_a_command(text: str) -> None:
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text)

        name = "notes/plan.md" if request.param == "private" else "plan.py"
        return Source(request.param, name, by_a_command, path.read_text)
    if request.param == "collab":

        def by_bob(text: str) -> None:
            ok(bob, "collab_write", filepath="plan.md", content=text, message="m", expected_version=-1)

        read = lambda: str(ok(alice, "collab_read", filepath="plan.md")["content"])  # noqa: E731
        return Source("collab", "plan.md", by_bob, read)

    def on_the_board(text: str) -> None:
        ok(bob, "whiteboard_write", board="global", content=text, message="m", expected_version=-1)

    read = lambda: str(ok(alice, "whiteboard_read", board="global")["content"])  # noqa: E731
    return Source("board", "global", on_the_board, read)


def begin(alice: Toolbox, source: Source, text: str = "one\ntwo\nthree\n") -> None:
    source.others_write(text)
    ok(alice, "open_buffer", source=source.kind, path=source.path, name="plan")


def test_a_flush_writes_the_next_version(workspace: Workspace, alice: Toolbox, source: Source) -> None:
    begin(alice, source)
    ok(alice, "plan_replace", old_text="two", new_text="2")
    assert source.now() == "one\ntwo\nthree\n"
    assert ok(alice, "plan_flush", message="Number it.")["workflow_state"] == "Synced"
    assert source.now() == "one\n2\nthree\n"
    found = workspace.buffers.find(CallContext("alice"), "plan")
    row = workspace.journal.head(found.record.zone, found.record.path)
    assert row is not None
    assert (row.actor, row.message, row.version) == ("alice", "Number it.", found.record.base)
    assert workspace.verify() == []


def test_a_source_that_moved_on_is_not_written_over(alice: Toolbox, source: Source) -> None:
    begin(alice, source)
    ok(alice, "plan_replace", old_text="two", new_text="2")
    source.others_write("one\ntwo\nthree\nfour\n")
    answer = refused(alice, "plan_flush")
    assert (answer["error"], answer["workflow_state"]) == ("flush_conflict", "OutOfSync")
    assert source.now() == "one\ntwo\nthree\nfour\n"
    assert "plan_refresh" in answer["notice"]
    assert ok(alice, "plan_refresh")["workflow_state"] == "PersistPending"
    assert ok(alice, "plan_flush")["workflow_state"] == "Synced"
    assert source.now() == "one\n2\nthree\nfour\n"


def test_the_model_is_told_that_it_moved_on(alice: Toolbox, source: Source) -> None:
    begin(alice, source)
    source.others_write("other\n")
    assert "call plan_refresh" in alice.show_buffers()
    names = [each["name"] for each in alice.get_tool_definitions(toolsets=["buffer"])]
    assert names[2:] == ["plan_replace", "plan_append", "plan_refresh", "plan_diff", "plan_accept_source"]
    ok(alice, "plan_refresh")
    assert "other\n" in alice.show_buffers()


def test_the_source_can_be_taken_and_nothing_is_lost(
    workspace: Workspace, alice: Toolbox, source: Source
) -> None:
    begin(alice, source)
    ok(alice, "plan_append", text="mine\n")
    mine = workspace.buffers.find(CallContext("alice"), "plan").row
    source.others_write("theirs\n")
    assert ok(alice, "plan_diff")["diff"].count("\n-theirs\n") == 1
    assert ok(alice, "plan_accept_source")["workflow_state"] == "Synced"
    assert workspace.buffers.find(CallContext("alice"), "plan").text == "theirs\n"
    assert read_buffer(workspace.journal, mine).text.endswith("mine\n")


@pytest.mark.parametrize("source", ["private", "collab", "file"], indirect=True)
def test_what_is_not_there_yet_begins_empty(alice: Toolbox, source: Source) -> None:
    ok(alice, "open_buffer", source=source.kind, path=source.path, name="plan")
    ok(alice, "plan_append", text="first\n")
    ok(alice, "plan_flush")
    assert source.now() == "first\n"


@pytest.mark.parametrize("source", ["private", "file"], indirect=True)
def test_what_went_away_can_be_written_again(
    alice: Toolbox, source: Source, tmp_path: Path, root: Path
) -> None:
    begin(alice, source)
    ok(alice, "plan_append", text="more\n")
    for path in (root / "agents/alice/notes/plan.md", tmp_path / "work/plan.py"):
        path.unlink(missing_ok=True)
    assert refused(alice, "plan_flush")["error"] == "flush_conflict"
    # Where one took everything out and the other put something in, both are asked for.
    assert ok(alice, "plan_refresh")["status"] == "ExternalConflict"
    ok(alice, "plan_accept_source")
    ok(alice, "plan_append", text="again\n")
    ok(alice, "plan_flush")
    assert source.now() == "again\n"


def test_a_board_that_may_only_be_read_is_not_written(workspace: Workspace) -> None:
    workspace.register([Agent("zoe", "helper", "bottom")])
    zoe = workspace.tools("zoe")
    ok(zoe, "open_buffer", source="board", path="global")
    ok(zoe, "global_append", text="x\n")
    answer = refused(zoe, "global_flush")
    assert (answer["error"], answer["status"]) == ("read_only", "PersistFailure")
    assert "PersistReadOnly" in answer["flags"]
    assert workspace.buffers.find(CallContext("zoe"), "global").text.endswith("x\n")


def test_a_source_that_is_no_text_any_more_changes_nothing(alice: Toolbox, root: Path) -> None:
    ok(alice, "save_to_my_workspace", filename="plan.md", content="one\n")
    ok(alice, "open_buffer", source="private", path="plan.md")
    ok(alice, "plan_append", text="mine\n")
    (root / "agents/alice/plan.md").write_bytes(b"\xff\0")
    assert refused(alice, "plan_refresh")["error"] == "source_unreadable"
    assert "mine\n" in alice.show_buffers()


def test_a_private_file_that_is_no_text_any_more_is_not_written_over(alice: Toolbox, root: Path) -> None:
    file = root / "agents/alice/plan.md"
    ok(alice, "save_to_my_workspace", filename="plan.md", content="one\n")
    ok(alice, "open_buffer", source="private", path="plan.md")
    ok(alice, "plan_append", text="mine\n")
    file.write_bytes(b"\xff\0")
    for _ in range(2):
        assert refused(alice, "plan_flush")["status"] == "PersistFailure"
    assert file.read_bytes() == b"\xff\0"
    file.write_text("one\n")
    ok(alice, "plan_flush")
    assert file.read_text() == "one\nmine\n"


def test_a_task_that_has_ended_takes_nothing(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "open_buffer", source="file", path="src/main.py")
    ok(alice, "main_append", text="print()\n")
    (task,) = workspace.tasks.list()
    workspace.tasks.end(CallContext("human:dana"), task.id, "cancelled", "Enough.")
    assert refused(alice, "main_flush")["error"] == "agent_ended"


class TestEditsByHand:
    """A shared file or board that somebody edited on disk has no new version, and is a newer source."""

    @pytest.fixture(params=["collab", "board"])
    def by_hand(self, request: pytest.FixtureRequest, root: Path, alice: Toolbox) -> Path:
        """The file on disk of a source that alice has open as ``plan``."""
        if request.param == "collab":
            ok(alice, "collab_write", filepath="plan.md", content="one\ntwo\nthree\n", message="m")
            ok(alice, "open_buffer", source="collab", path="plan.md", name="plan")
            return root / "collaborative/current/plan.md"
        text = "# Board\n\none\ntwo\nthree\n"
        ok(alice, "whiteboard_write", board="global", content=text, message="m", expected_version=-1)
        ok(alice, "open_buffer", source="board", path="global", name="plan")
        return root / "global-whiteboard.md"

    def test_a_flush_does_not_replace_what_it_has_not_seen(
        self, workspace: Workspace, alice: Toolbox, by_hand: Path
    ) -> None:
        ok(alice, "plan_replace", old_text="one", new_text="1")
        edited = by_hand.read_text() + "by hand\n"
        by_hand.write_text(edited)
        answer = refused(alice, "plan_flush")
        assert (answer["error"], answer["workflow_state"]) == ("flush_conflict_by_hand", "OutOfSync")
        assert by_hand.read_text() == edited
        assert "external edit" in answer["notice"]
        assert "+1\n" in ok(alice, "plan_diff")["diff"]
        assert ok(alice, "plan_refresh")["workflow_state"] == "PersistPending"
        assert "by hand\n" in alice.show_buffers()
        assert ok(alice, "plan_flush")["workflow_state"] == "Synced"
        assert by_hand.read_text() == edited.replace("one", "1")
        found = workspace.buffers.find(CallContext("alice"), "plan")
        conflicts = workspace.journal.refused(found.record.zone, found.record.path)
        assert [workspace.journal.content(row.seq) for row in conflicts] == [edited]
        assert workspace.verify() == []

    def test_the_model_is_told_before_it_flushes(self, alice: Toolbox, by_hand: Path) -> None:
        by_hand.write_text("by hand\n")
        assert "external edit" in alice.show_buffers()
        assert [each["name"] for each in alice.get_tool_definitions(toolsets=["buffer"])][4] == "plan_refresh"
        ok(alice, "plan_refresh")
        assert "external edit" not in alice.show_buffers()
        by_hand.write_text("once more\n")
        assert "external edit" in alice.show_buffers()
        ok(alice, "plan_accept_source")
        assert "once more\n" in alice.show_buffers()

    def test_people_see_that_the_buffer_is_behind(
        self, workspace: Workspace, alice: Toolbox, by_hand: Path
    ) -> None:
        fold = Fold(lambda number: workspace.journal.content(number))

        def state() -> str:
            fold.apply(workspace.journal.rows(fold.seq))
            (view,) = fold.model().buffers
            return view.state

        assert state() == "synced"
        by_hand.write_text(by_hand.read_text() + "by hand\n")
        workspace.check([by_hand])
        assert state() == "behind"
        ok(alice, "plan_replace", old_text="one", new_text="1")
        assert state() == "apart"
        ok(alice, "plan_refresh")
        assert state() == "unwritten"
        ok(alice, "plan_flush")
        assert state() == "synced"
        by_hand.write_text("other\n")
        workspace.check([by_hand])
        assert state() == "behind"
        record = workspace.buffers.find(CallContext("alice"), "plan").record
        (edit,) = workspace.journal.refused(record.zone, record.path, limit=1)
        dana = workspace.tools_for_human("dana")
        ok(dana, "revert_outside_edit", filepath=record.path, conflict=edit.seq, message="No.")
        assert state() == "synced"

    def test_what_was_taken_in_outlives_its_process(
        self, workspace: Workspace, alice: Toolbox, by_hand: Path, root: Path
    ) -> None:
        by_hand.write_text("by hand\n")
        ok(alice, "plan_refresh")
        with Workspace.open(root) as second:
            again = second.tools("alice")
            assert "external edit" not in again.show_buffers()
            ok(again, "plan_append", text="more\n")
            ok(again, "plan_flush")
        assert by_hand.read_text() == "by hand\nmore\n"
        assert "Nothing to write" in alice.show_buffers()

    def test_an_edit_that_was_taken_back_is_news_as_well(
        self, workspace: Workspace, alice: Toolbox, by_hand: Path
    ) -> None:
        before = by_hand.read_text()
        by_hand.write_text("by hand\n")
        ok(alice, "plan_refresh")
        by_hand.write_text(before)
        ok(alice, "plan_append", text="more\n")
        assert refused(alice, "plan_flush")["error"] == "flush_conflict_by_hand"
        assert by_hand.read_text() == before

    def test_what_is_no_text_any_more_is_not_replaced(self, alice: Toolbox, by_hand: Path) -> None:
        ok(alice, "plan_append", text="more\n")
        by_hand.write_bytes(b"\xff\0")
        assert refused(alice, "plan_flush")["status"] == "PersistFailure"
        assert by_hand.read_bytes() == b"\xff\0"
        assert "cannot be read" in alice.show_buffers()

    def test_the_very_text_of_the_buffer_is_no_conflict(self, alice: Toolbox, by_hand: Path) -> None:
        ok(alice, "plan_append", text="more\n")
        by_hand.write_text(by_hand.read_text() + "more\n")
        assert ok(alice, "plan_flush")["workflow_state"] == "Synced"
