"""Buffers as rows: opened, edited and closed with tools, rebuilt from the journal, refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calls import ok, refused
from watchroom import Json, Toolbox, Workspace
from watchroom.features.buffers.reads import WHOLE_EVERY, read_buffer
from watchroom.features.buffers.rules import MAX_NAME
from watchroom.features.buffers.service import MAX_OPEN
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import RowFilter
from watchroom.model import MAX_TEXT_BYTES


def text(workspace: Workspace, name: str = "plan", agent: str = "alice") -> str:
    return workspace.buffers.find(CallContext(agent), name).text


def write(toolbox: Toolbox, content: str, path: str = "plan.md") -> None:
    ok(toolbox, "collab_write", filepath=path, content=content, message="m", expected_version=-1)


class TestOpening:
    def test_a_buffer_is_named_after_its_file(self, alice: Toolbox) -> None:
        for path, name in [
            ("docs/Plan.md", "plan"),
            ("notes/plan.txt", "plan-2"),
            ("Ünsere Notizen.md", "nsere-notizen"),
            ("计划.md", "text"),
            ("a" * 60, "a" * (MAX_NAME - 3)),
            ("whiteboard.md", "whiteboard-2"),
        ]:
            assert ok(alice, "open_buffer", source="collab", path=path)["buffer"] == name

    def test_what_it_opens_is_shown(self, alice: Toolbox) -> None:
        write(alice, "one\ntwo\n")
        opened = ok(alice, "open_buffer", source="collab", path="plan.md", name="draft")
        assert (opened["buffer"], opened["source"]) == ("draft", "collab:plan.md")
        assert opened["tools"] == ["draft_replace", "draft_append"]
        assert "```text\none\ntwo\n```" in opened["markdown"]

    @pytest.mark.parametrize("source", ["private", "file"])
    def test_a_source_is_called_as_its_agent_knows_it(self, alice: Toolbox, source: str) -> None:
        opened = ok(alice, "open_buffer", source=source, path="docs/plan.md")
        assert opened["source"] == f"{source}:docs/plan.md"
        answer = refused(alice, "open_buffer", source=source, path="docs/plan.md", name="other")
        assert f" {source}:docs/plan.md " in answer["message"]

    def test_a_source_is_opened_once(self, workspace: Workspace, alice: Toolbox) -> None:
        write(alice, "one\n")
        ok(alice, "open_buffer", source="collab", path="plan.md")
        ok(alice, "plan_append", text="two\n")
        again = ok(alice, "open_buffer", source="collab", path="plan.md")
        assert (again["buffer"], again["source"]) == ("plan", "collab:plan.md")
        assert "one\ntwo\n" in again["markdown"]
        answer = refused(alice, "open_buffer", source="collab", path="plan.md", name="other")
        assert answer["error"] == "buffer_taken"
        answer = refused(alice, "open_buffer", source="collab", path="else.md", name="plan")
        assert answer["error"] == "buffer_taken"
        assert "collab:plan.md" in answer["message"]

    @pytest.mark.parametrize("name", ["Plan", "-plan", "a b", "a/b", "a" * (MAX_NAME + 1), "whiteboard"])
    def test_a_name_that_tools_cannot_have_is_refused(self, alice: Toolbox, name: str) -> None:
        assert refused(alice, "open_buffer", source="collab", path="plan.md", name=name)["error"] == (
            "invalid_buffer"
        )

    def test_there_is_a_most(self, alice: Toolbox) -> None:
        for number in range(MAX_OPEN):
            ok(alice, "open_buffer", source="collab", path=f"file{number}.md")
        answer = refused(alice, "open_buffer", source="collab", path="more.md")
        assert answer["error"] == "too_many_buffers"
        ok(alice, "close_buffer", buffer="file0")
        ok(alice, "open_buffer", source="collab", path="more.md")

    def test_paths_are_those_of_the_zone(self, alice: Toolbox) -> None:
        for source in ("private", "collab"):
            assert refused(alice, "open_buffer", source=source, path="../x")["error"] == "invalid_path"
        assert refused(alice, "open_buffer", source="file", path="../x")["error"] == "path_traversal_blocked"
        assert refused(alice, "open_buffer", source="board", path="nowhere")["error"] == "board_not_found"
        assert refused(alice, "open_buffer", source="disk", path="x")["error"] == "invalid_arguments"

    def test_that_the_source_was_read_comes_before_what_was_made_of_it(
        self, workspace: Workspace, alice: Toolbox
    ) -> None:
        write(alice, "one\n")
        ok(alice, "open_buffer", source="collab", path="plan.md")
        ok(alice, "plan_append", text="two\n")
        workspace.flush()
        tools = [row.tool for row in workspace.journal.rows(0, limit=100) if row.actor == "alice"]
        assert tools == ["collab_write", "collab_read", "open_buffer", "plan_append"]

    def test_each_agent_has_its_own(self, workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
        write(alice, "one\n")
        ok(alice, "open_buffer", source="collab", path="plan.md")
        ok(bob, "open_buffer", source="collab", path="plan.md")
        ok(alice, "plan_append", text="alice\n")
        ok(bob, "plan_append", text="bob\n")
        assert text(workspace) == "one\nalice\n"
        assert text(workspace, agent="bob") == "one\nbob\n"

    def test_people_have_none(self, workspace: Workspace) -> None:
        person = workspace.tools_for_human("dana")
        assert person.get_tool_definitions(toolsets=["buffer"]) == []
        refused(person, "open_buffer", source="collab", path="plan.md")
        refused(person, "plan_replace", old_text="a", new_text="b")


class TestClosing:
    def test_its_tools_go_with_it(self, alice: Toolbox) -> None:
        ok(alice, "open_buffer", source="collab", path="plan.md")
        ok(alice, "close_buffer", buffer="plan")
        assert refused(alice, "plan_append", text="x")["error"] == "buffer_not_found"
        assert [each["name"] for each in alice.get_tool_definitions(toolsets=["buffer"])] == ["open_buffer"]
        assert refused(alice, "close_buffer", buffer="plan")["error"] == "buffer_not_found"
        assert refused(alice, "close_buffer", buffer="../plan")["error"] == "buffer_not_found"

    def test_what_is_not_written_is_not_lost_by_mistake(self, workspace: Workspace, alice: Toolbox) -> None:
        write(alice, "one\n")
        ok(alice, "open_buffer", source="collab", path="plan.md")
        ok(alice, "plan_append", text="two\n")
        assert refused(alice, "close_buffer", buffer="plan")["error"] == "buffer_unflushed"
        ok(alice, "close_buffer", buffer="plan", discard=True)
        closed = workspace.journal.head("buffer", "alice/plan")
        assert closed is not None
        before = workspace.journal.version("buffer", "alice/plan", (closed.version or 0) - 1)
        assert before is not None
        assert read_buffer(workspace.journal, before).text == "one\ntwo\n"

    def test_it_can_be_opened_again(self, workspace: Workspace, alice: Toolbox) -> None:
        write(alice, "one\n")
        ok(alice, "open_buffer", source="collab", path="plan.md")
        ok(alice, "plan_append", text="two\n")
        ok(alice, "close_buffer", buffer="plan", discard=True)
        ok(alice, "open_buffer", source="collab", path="plan.md")
        assert text(workspace) == "one\n"


class TestRows:
    def test_each_call_is_a_row(self, workspace: Workspace, alice: Toolbox) -> None:
        write(alice, "two two\n")
        ok(alice, "open_buffer", source="collab", path="plan.md")
        refused(alice, "plan_replace", old_text="two", new_text="2")
        ok(alice, "plan_discard_selection")
        refused(alice, "plan_replace", old_text="three", new_text="3")
        ok(alice, "plan_append", text="more\n")
        ok(alice, "plan_diff")
        ok(alice, "plan_flush")
        workspace.flush()
        rows = workspace.journal.rows_before(10**9, only=RowFilter(zone="buffer"))
        assert [(row.tool, row.version, row.outcome, row.error) for row in reversed(rows)] == [
            ("open_buffer", 1, "ok", ""),
            ("plan_replace", 2, "ok", ""),
            ("plan_discard_selection", 3, "ok", ""),
            ("plan_replace", None, "failed", "no_match"),
            ("plan_append", 4, "ok", ""),
            ("plan_diff", None, "ok", ""),
            ("plan_flush", 5, "ok", ""),
        ]
        assert {row.path for row in rows} == {"alice/plan"}
        sought = workspace.journal.version("buffer", "alice/plan", 2)
        assert sought is not None
        assert json.loads(workspace.journal.content(sought.seq) or "") == {"old_text": "two", "new_text": "2"}
        missed, looked = (
            next(row for row in rows if row.tool == tool and row.version is None)
            for tool in ("plan_replace", "plan_diff")
        )
        assert json.loads(workspace.journal.content(missed.seq) or "")["old_text"] not in ("", "two")
        assert workspace.journal.content(looked.seq) is None, "a reading gives nothing to keep"

    def test_a_refused_call_is_a_row_of_the_buffer(self, workspace: Workspace, alice: Toolbox) -> None:
        ok(alice, "open_buffer", source="collab", path="plan.md")
        refused(alice, "plan_replace", old_text="a")
        (row,) = workspace.journal.rows_before(10**9, only=RowFilter(zone="buffer", tool="plan_replace"))
        assert (row.path, row.outcome, row.error) == ("alice/plan", "denied", "invalid_arguments")

    @pytest.mark.parametrize(
        ("tool", "given", "code"),
        [
            ("plan_append", {"text": "a\0b"}, "not_text"),
            ("plan_append", {"text": "x" * MAX_TEXT_BYTES}, "too_large"),
            ("plan_replace", {"old_text": "", "new_text": "x"}, "empty_needle"),
        ],
    )
    def test_what_could_not_be_done_is_told_and_noted_as_that(
        self, workspace: Workspace, alice: Toolbox, tool: str, given: dict[str, Json], code: str
    ) -> None:
        write(alice, "one\n")
        ok(alice, "open_buffer", source="collab", path="plan.md")
        answer = refused(alice, tool, **given)
        assert (answer["error"], answer["status"]) == (code, "NoOp")
        (row,) = workspace.journal.rows_before(10**9, only=RowFilter(zone="buffer", tool=tool))
        assert (row.version, row.outcome, row.error) == (None, "failed", code)

    def test_rows_carry_what_was_put_in_and_now_and_then_the_whole(
        self, workspace: Workspace, alice: Toolbox
    ) -> None:
        write(alice, "start\n")
        ok(alice, "open_buffer", source="collab", path="plan.md")
        for number in range(3 * WHOLE_EVERY):
            ok(alice, "plan_append", text=f"{number}\n")
        contents = workspace.journal.versions("buffer", "alice/plan", limit=10_000)
        assert sum(len(content or "") > 20 for _, content in contents) == 3
        assert all(len(content or "") <= 4 for _, content in contents[1 : WHOLE_EVERY - 1])
        for row, _ in contents:
            lines = "".join(f"{number}\n" for number in range((row.version or 0) - 1))
            assert read_buffer(workspace.journal, row).text == f"start\n{lines}"

    def test_choices_alone_never_hide_the_text(self, workspace: Workspace, alice: Toolbox) -> None:
        write(alice, "two two\n")
        ok(alice, "open_buffer", source="collab", path="plan.md")
        for number in range(2 * WHOLE_EVERY + 3):
            refused(alice, "plan_replace", old_text="two", new_text=str(number))
        head = workspace.journal.head("buffer", "alice/plan")
        assert head is not None
        found = read_buffer(workspace.journal, head)
        assert found.text == "two two\n"
        assert found.pending is not None
        assert found.pending.new == str(2 * WHOLE_EVERY + 2)


def test_a_difference_without_end_is_cut(alice: Toolbox) -> None:
    ok(alice, "open_buffer", source="collab", path="plan.md")
    ok(alice, "plan_append", text="a line\n" * 100_000)
    answer = ok(alice, "plan_diff")
    assert len(answer["diff"]) < 21_000
    assert "more characters]" in answer["diff"].splitlines()[-1]
    assert len(answer["markdown"]) < 22_000


class TestProcesses:
    """Whatever process comes next goes on from the rows."""

    def test_an_open_choice_outlives_its_process(self, root: Path) -> None:
        with Workspace.open(root, agents=["alice"]) as first:
            alice = first.tools("alice")
            write(alice, "two [[SEL#1]] two\n")
            ok(alice, "open_buffer", source="collab", path="plan.md")
            refused(alice, "plan_replace", old_text="two", new_text="2")
            shown = alice.show_buffers()
        with Workspace.open(root) as second:
            alice = second.tools("alice")
            assert alice.show_buffers() == shown
            assert "[[SEL2#1]]two[[/SEL2#1]]" in shown
            ok(alice, "plan_replace_selection", selection_id=2)
            assert text(second) == "two [[SEL#1]] 2\n"

    def test_two_processes_of_one_agent_edit_one_text(self, root: Path) -> None:
        with Workspace.open(root, agents=["alice"]) as first, Workspace.open(root) as second:
            one, two = first.tools("alice"), second.tools("alice")
            write(one, "start\n")
            ok(one, "open_buffer", source="collab", path="plan.md")
            for number in range(5):
                ok(one, "plan_append", text=f"one {number}\n")
                ok(two, "plan_append", text=f"two {number}\n")
            assert text(first) == text(second)
            assert text(first).count("\n") == 11
            ok(two, "plan_flush")
            assert ok(one, "collab_read", filepath="plan.md")["content"] == text(first)

    def test_open_places_of_a_merge_outlive_their_process(self, root: Path) -> None:
        with Workspace.open(root, agents=["alice", "bob"]) as first:
            alice = first.tools("alice")
            write(alice, "one\n")
            ok(alice, "open_buffer", source="collab", path="plan.md")
            ok(alice, "plan_replace", old_text="one", new_text="mine")
            write(first.tools("bob"), "theirs\n")
            assert ok(alice, "plan_refresh")["status"] == "ExternalConflict"
        with Workspace.open(root) as second:
            alice = second.tools("alice")
            assert refused(alice, "plan_flush")["error"] == "unresolved"
            for number in range(WHOLE_EVERY + 1):
                ok(alice, "plan_append", text=f"{number}\n")
            ok(alice, "plan_replace", old_text="<<<<<<< current\n", new_text="Title\n=======\n")
            ok(alice, "plan_replace", old_text=">>>>>>> incoming\n", new_text="")
        with Workspace.open(root) as third:
            alice = third.tools("alice")
            assert "4: `=======`" in refused(alice, "plan_flush")["message"]
            ok(alice, "plan_replace", old_text="theirs\n=======\nmine\n", new_text="ours\n")
            rest = text(third).partition("ours\n")[2]
            ok(alice, "plan_replace", old_text=rest, new_text="")
            ok(alice, "plan_flush")
            found = ok(alice, "collab_read", filepath="plan.md")
            assert found["content"] == "Title\n=======\nours\n"


class TestRepeatedCalls:
    """A call that the end of its process cut off is made again, and done once."""

    def test_the_answer_is_given_once_more(self, workspace: Workspace, alice: Toolbox) -> None:
        write(alice, "two two\n")
        calls: list[tuple[str, dict[str, Json]]] = [
            ("open_buffer", {"source": "collab", "path": "plan.md"}),
            ("plan_replace", {"old_text": "two", "new_text": "2"}),
            ("plan_replace_selection", {"selection_id": 1}),
            ("plan_append", {"text": "more\n"}),
            ("plan_flush", {}),
        ]
        for tool, arguments in calls:
            key = f"call-{tool}"
            first = alice.dispatch_tool_call(tool, arguments, call=key)
            versions = len(workspace.journal.history("buffer", "alice/plan"))
            again = alice.dispatch_tool_call(tool, arguments, call=key, again=True)
            first.pop("notice", None)
            assert again == first
            assert len(workspace.journal.history("buffer", "alice/plan")) == versions
        assert text(workspace) == "2 two\nmore\n"

    def test_a_flush_that_was_cut_off_after_its_writing_is_done(
        self, workspace: Workspace, alice: Toolbox
    ) -> None:
        write(alice, "one\n")
        ok(alice, "open_buffer", source="collab", path="plan.md")
        ok(alice, "plan_append", text="two\n")
        # What a flush writes first, and nothing after it.
        workspace.collab.write(CallContext("alice", "flush_buffer"), "plan.md", "one\ntwo\n", 1)
        answer = alice.dispatch_tool_call("plan_flush", {}, call="cut", again=True)
        assert answer["success"] is True, answer
        assert answer["workflow_state"] == "Synced"
        found = ok(alice, "collab_read", filepath="plan.md")
        assert (found["content"], found["version"]) == ("one\ntwo\n", 2)
