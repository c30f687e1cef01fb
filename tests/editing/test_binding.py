"""Bindings of buffers to sources: nothing is overwritten, and nothing is lost (EDIT-5.3, EDIT-9)."""

from __future__ import annotations

import re

import pytest
from effort import rounds
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from watchroom.algorithms.editing import (
    BoundEditor,
    DataSourceBinding,
    ReadOnlySourceError,
    SourceText,
    StaleSourceError,
    TextEditFlag,
    TextEditor,
    TextEditResponse,
    TextEditStatus,
    WorkflowState,
    build_frames,
    list_tool_names,
    render,
)
from watchroom.errors import DiskFailed, WatchroomError


class Source:
    """A source in memory that others can write to, and that can be made to fail."""

    def __init__(self, text: str = "one\ntwo\nthree\n") -> None:
        self.texts = [text]
        self.failure: Exception | None = None

    def version(self) -> int:
        return len(self.texts)

    def edit(self) -> int:
        return 0

    def read(self) -> SourceText:
        if isinstance(self.failure, WatchroomError):
            raise self.failure
        return SourceText(self.texts[-1] if self.texts else "", len(self.texts))

    def write(self, text: str, expected: int, message: str = "", *, edit: int = 0) -> int:
        if self.failure is not None:
            raise self.failure
        if expected != len(self.texts):
            raise StaleSourceError
        self.texts.append(text)
        return len(self.texts)


def bound(text: str = "one\ntwo\nthree\n") -> tuple[TextEditor, Source, DataSourceBinding]:
    editor, source = TextEditor(name="plan"), Source(text)
    return editor, source, DataSourceBinding(editor, source, name="plan")


def stands(binding: DataSourceBinding) -> WorkflowState:
    return binding.state


class TestTogether:
    """EDIT-5.3: editing and synchronising are independent."""

    def test_what_was_edited_is_noticed_flushed_and_in_step_again(self) -> None:
        editor, source, binding = bound()
        assert stands(binding) is WorkflowState.SYNCED
        editor.replace("two", "2")
        (frame,) = build_frames([BoundEditor(editor, binding)])
        assert stands(binding) is WorkflowState.PERSIST_PENDING
        assert TextEditFlag.PERSIST_PENDING in binding.flags
        assert "call plan_flush" in frame.shown.detail
        assert "plan_flush" in frame.tools
        response = binding.flush()
        assert (response.status, response.workflow_state) == (TextEditStatus.SUCCESS, WorkflowState.SYNCED)
        assert source.texts[-1] == "one\n2\nthree\n"
        (frame,) = build_frames([BoundEditor(editor, binding)])
        assert frame.tools == ("plan_replace", "plan_append")

    def test_there_is_nothing_to_flush_where_nothing_changed(self) -> None:
        editor, source, binding = bound()
        assert (binding.flush().status, len(source.texts)) == (TextEditStatus.NO_OP, 1)
        editor.replace("two", "2")
        editor.replace("2", "two")
        assert stands(binding) is WorkflowState.SYNCED

    def test_a_source_that_moved_on_is_never_written_over(self) -> None:
        editor, source, binding = bound()
        editor.replace("two", "2")
        source.texts.append("one\ntwo\nthree\nfour\n")
        response = binding.flush()
        assert (response.status, response.code) == (TextEditStatus.EXTERNAL_CONFLICT, "flush_conflict")
        assert response.workflow_state is WorkflowState.OUT_OF_SYNC
        assert {"OutOfSync", "ExternalConflict", "PersistPending"} <= set(response.flags.names)
        for offered in ("plan_diff", "plan_refresh", "plan_accept_source"):
            assert offered in (response.guidance or "")
            assert offered in list_tool_names("plan", editor.state, binding.state)
        assert editor.snapshot() == "one\n2\nthree\n"
        assert source.texts[-1].endswith("four\n")

    def test_a_refresh_merges_what_both_changed(self) -> None:
        editor, source, binding = bound()
        editor.replace("one", "1")
        source.texts.append("one\ntwo\nthree\nfour\n")
        binding.update()
        assert stands(binding) is WorkflowState.OUT_OF_SYNC
        response = binding.refresh()
        assert (response.code, response.workflow_state) == ("merged", WorkflowState.PERSIST_PENDING)
        assert editor.snapshot() == "1\ntwo\nthree\nfour\n"
        assert binding.flush().status is TextEditStatus.SUCCESS
        assert source.texts[-1] == "1\ntwo\nthree\nfour\n"

    def test_a_refresh_merges_line_ends_apart_from_the_lines(self) -> None:
        editor, source, binding = bound("one\r\ntwo\r\nthree\r\n")
        editor.replace("one", "mine")
        source.texts.append("\ufeffone\ntwo\ntheirs")
        response = binding.refresh()
        assert response.code == "merged"
        assert "LF, no final newline, byte order mark" in response.summary
        assert editor.snapshot() == "\ufeffmine\ntwo\ntheirs"
        assert binding.flush().status is TextEditStatus.SUCCESS

    def test_a_conflict_is_as_small_where_all_line_ends_changed(self) -> None:
        editor, source, binding = bound("one\r\ntwo\r\nthree\r\n")
        editor.replace("two", "mine")
        source.texts.append("\ufeffone\ntheirs\nthree")
        assert binding.refresh().code == "merged_with_conflicts"
        block = "<<<<<<< current\ntheirs\n=======\nmine\n>>>>>>> incoming\n"
        assert editor.snapshot() == f"\ufeffone\n{block}three"
        for mark in ("<<<<<<< current\n", "=======\n", ">>>>>>> incoming\n"):
            assert binding.flush().code == "unresolved"
            editor.replace(mark, "")
        assert binding.flush().status is TextEditStatus.SUCCESS

    def test_marks_of_a_merge_are_found_where_line_ends_become_longer(self) -> None:
        editor, source, binding = bound()
        editor.replace("two", "mine")
        source.texts.append("one\r\ntheirs\r\nthree\r\n")
        assert binding.refresh().code == "merged_with_conflicts"
        assert "2: `<<<<<<< current`" in binding.flush().summary
        editor.replace("<<<<<<< current\r\n", "")
        editor.replace(">>>>>>> incoming\r\n", "")
        assert binding.flush().code == "unresolved"
        editor.replace("=======\r\n", "")
        assert binding.flush().status is TextEditStatus.SUCCESS

    def test_a_difference_in_line_ends_is_told_apart_from_the_lines(self) -> None:
        editor, _, binding = bound("one\r\ntwo\r\n")
        editor.try_update("one\n2\n")
        response = binding.diff()
        assert "CRLF becomes LF" in response.summary
        assert [line for line in (response.diff or "").split("\n")[3:] if line] == [" one", "-two", "+2"]
        editor.try_update("one\ntwo\n")
        assert (binding.diff().code, binding.diff().diff) == ("differs", None)

    def test_where_both_changed_one_line_both_stand_there_until_it_is_decided(self) -> None:
        editor, source, binding = bound()
        editor.replace("two", "mine")
        source.texts.append("one\ntheirs\nthree\n")
        response = binding.refresh()
        assert (response.status, response.code) == (TextEditStatus.EXTERNAL_CONFLICT, "merged_with_conflicts")
        assert "mine\n" in editor.snapshot()
        assert "theirs\n" in editor.snapshot()
        assert binding.flush().code == "unresolved"
        assert binding.refresh().code in ("nothing_new", "unresolved")
        marked = re.search("<<<<<<<.*>>>>>>>[^\n]*\n", editor.snapshot(), flags=re.DOTALL)
        assert marked
        editor.replace(marked[0], "both\n")
        assert binding.flush().status is TextEditStatus.SUCCESS
        assert source.texts[-1] == "one\nboth\nthree\n"

    def test_lines_that_look_like_marks_and_are_part_of_the_text_can_be_flushed(self) -> None:
        text = "<<<<<<< current\na\n=======\nb\n>>>>>>> incoming\nend\n"
        editor, source, binding = bound(text)
        editor.append("more\n")
        assert binding.flush().status is TextEditStatus.SUCCESS
        editor.replace("end\n", "mine\n")
        source.texts.append(source.texts[-1].replace("end\n", "theirs\n"))
        assert binding.refresh().code == "merged_with_conflicts"
        assert binding.flush().code == "unresolved"
        last = editor.snapshot().rindex("<<<<<<<")
        marked = re.search("<<<<<<<.*>>>>>>>[^\n]*\n", editor.snapshot()[last:], flags=re.DOTALL)
        assert marked
        editor.replace(marked[0], "ours\n")
        assert binding.flush().status is TextEditStatus.SUCCESS

    def test_without_changes_a_refresh_takes_the_source(self) -> None:
        editor, source, binding = bound()
        assert binding.refresh().code == "nothing_new"
        source.texts.append("new\n")
        response = binding.refresh()
        assert (response.code, response.workflow_state) == ("refreshed", WorkflowState.SYNCED)
        assert editor.snapshot() == "new\n"

    def test_accepting_the_source_keeps_what_it_puts_aside(self) -> None:
        editor, source, binding = bound()
        editor.replace("two", "mine")
        source.texts.append("theirs\n")
        response = binding.accept_source()
        assert (response.code, response.workflow_state) == ("accepted", WorkflowState.SYNCED)
        assert editor.snapshot() == "theirs\n"
        assert binding.discarded == ["one\nmine\nthree\n"]
        assert binding.accept_source().code == "accepted_same"
        assert len(binding.discarded) == 1

    def test_the_difference_is_told_and_shown(self) -> None:
        editor, _, binding = bound()
        assert binding.diff().code == "no_difference"
        editor.replace("two", "2")
        response = binding.diff()
        assert response.diff is not None
        assert "-two\n+2\n" in response.diff
        assert "```diff\n--- v1\n+++ plan\n" in render(response).detail


ADVISED = re.compile(r"plan_[a-z]+(?:_[a-z]+)*")


class TestAdvice:
    """Return the tools that an answer or a notice tells an agent to call."""

    def test_only_tools_that_are_there_are_advised(self) -> None:
        editor, source, binding = bound()

        def advised(response: TextEditResponse) -> set[str]:
            told = set(ADVISED.findall(f"{response.guidance} {binding.notice()}"))
            assert told <= set(list_tool_names("plan", editor.state, binding.state))
            return told

        source.texts.append("1\ntwo\nthree\n")
        assert advised(binding.diff()) == {"plan_refresh"}
        binding.refresh()
        editor.replace("two", "mine")
        assert advised(binding.diff()) == {"plan_flush"}
        source.texts.append("1\ntheirs\nthree\n")
        assert advised(binding.flush()) == {"plan_diff", "plan_refresh", "plan_accept_source"}
        assert advised(binding.diff()) == {"plan_refresh", "plan_accept_source"}
        assert advised(binding.refresh()) == {"plan_replace", "plan_flush"}

    def test_a_merge_that_leaves_nothing_of_ones_own_is_nothing_to_write(self) -> None:
        editor, source, binding = bound()
        editor.replace("two", "2")
        source.texts.append("one\n2\nthree\nfour\n")
        response = binding.refresh()
        assert (response.code, response.workflow_state) == ("refreshed", WorkflowState.SYNCED)

    def test_marks_of_a_merge_are_noticed_until_they_are_gone(self) -> None:
        editor, source, binding = bound()
        editor.replace("two", "mine")
        source.texts.append("one\ntheirs\nthree\n")
        binding.refresh()
        assert "conflict markers" in binding.notice()
        editor.try_update("one\nboth\nthree\n")
        assert "conflict markers" not in binding.notice()
        assert "plan_flush" in binding.notice()

    def test_that_nothing_is_there_yet_is_noticed(self) -> None:
        source = Source()
        source.texts = []
        binding = DataSourceBinding(TextEditor(name="plan"), source, name="plan")
        assert "does not exist yet" in binding.notice()
        source.texts.append("")
        binding.refresh()
        assert "does not exist yet" not in binding.notice()


class TestFailures:
    @pytest.mark.parametrize(
        ("failure", "code", "flag"),
        [
            (DiskFailed(reason="no space"), "flush_failed", "DiagnosticHint"),
            (ReadOnlySourceError("It is bob's."), "read_only", "PersistReadOnly"),
        ],
    )
    def test_what_cannot_be_written_stays_in_the_buffer(
        self, failure: Exception, code: str, flag: str
    ) -> None:
        editor, source, binding = bound()
        editor.append("more\n")
        source.failure = failure
        response = binding.flush()
        assert (response.status, response.code) == (TextEditStatus.PERSIST_FAILURE, code)
        assert flag in response.flags.names
        assert response.workflow_state is WorkflowState.PERSIST_PENDING
        assert editor.snapshot().endswith("more\n")
        source.failure = None
        assert binding.flush().status is TextEditStatus.SUCCESS

    def test_a_source_that_cannot_be_read_changes_nothing(self) -> None:
        editor, source, binding = bound()
        editor.append("more\n")
        source.failure = DiskFailed(reason="gone")
        for response in (binding.refresh(), binding.diff(), binding.accept_source()):
            assert (response.status, response.code) == (TextEditStatus.PERSIST_FAILURE, "source_unreadable")
        assert editor.snapshot().endswith("more\n")
        assert binding.discarded == []

    def test_what_the_buffer_refuses_is_not_taken(self) -> None:
        editor, source, binding = bound()
        editor.append("more\n")
        source.texts.append("a\0b")
        assert binding.accept_source().code == "buffer_refused"
        assert editor.snapshot().endswith("more\n")
        assert binding.discarded == []


class Binding(RuleBasedStateMachine):
    """Every word that anyone wrote is in the buffer, in a version of the source, or among the discarded
    texts."""

    def __init__(self) -> None:
        super().__init__()
        self.editor, self.source, self.binding = bound()
        self.words = 0
        self.taken_out: set[str] = set()

    def word(self) -> str:
        self.words += 1
        return f"w{self.words}\n"

    @rule(line=st.integers(0, 5))
    def agent_adds_a_line(self, line: int) -> None:
        lines = self.editor.snapshot().splitlines(keepends=True)
        at = min(line, len(lines))
        assert self.editor.try_update("".join([*lines[:at], self.word(), *lines[at:]])).ok

    @rule()
    def agent_appends(self) -> None:
        self.editor.append(self.word())

    @rule(line=st.integers(0, 5))
    def others_add_a_line(self, line: int) -> None:
        lines = self.source.texts[-1].splitlines(keepends=True)
        at = min(line, len(lines))
        self.source.texts.append("".join([*lines[:at], self.word(), *lines[at:]]))

    @rule()
    def flush(self) -> None:
        before = list(self.source.texts)
        response = self.binding.flush()
        assert self.source.texts[: len(before)] == before
        if response.status is TextEditStatus.SUCCESS:
            assert self.source.texts[-1] == self.editor.snapshot()
            assert response.workflow_state is WorkflowState.SYNCED

    @rule()
    def refresh(self) -> None:
        self.binding.refresh()

    @rule()
    def accept(self) -> None:
        self.binding.accept_source()
        assert self.editor.snapshot() == self.source.texts[-1]

    @rule()
    def look(self) -> None:
        self.binding.update()
        self.binding.diff()

    @rule()
    def settle(self) -> None:
        """Remove the conflict markers of a merge, and keep all other lines."""
        if self.binding.flush().code == "unresolved":
            lines = self.editor.snapshot().splitlines(keepends=True)
            kept = [line for line in lines if not re.match("<<<<<<<|=======|>>>>>>>", line)]
            self.editor.try_update("".join(kept))

    @invariant()
    def nothing_is_lost(self) -> None:
        everything = "".join([self.editor.snapshot(), *self.source.texts, *self.binding.discarded])
        found = set(re.findall(r"w\d+", everything))
        assert {f"w{number}" for number in range(1, self.words + 1)} <= found

    @invariant()
    def what_is_new_in_the_buffer_is_known_to_be(self) -> None:
        if self.editor.snapshot() != self.source.texts[-1]:
            self.binding.update()
            assert self.binding.state is not WorkflowState.SYNCED


def test_nothing_is_lost_in_any_order_of_calls() -> None:
    run_state_machine_as_test(
        Binding,
        settings=settings(max_examples=rounds(70, 150), stateful_step_count=25),
    )


HEADED = "Plan\n=======\nkeep\n"
BLOCK = "<<<<<<< current\ntheirs\n=======\nmine\n>>>>>>> incoming\n"


def conflicting(text: str = f"{HEADED}two\n") -> tuple[TextEditor, Source, DataSourceBinding]:
    """Return a buffer after a merge in which both sides changed the line ``two``."""
    editor, source, binding = bound(text)
    editor.replace("two\n", "mine\n")
    source.texts.append(text.replace("two\n", "theirs\n"))
    assert binding.refresh().code == "merged_with_conflicts"
    assert BLOCK in editor.snapshot()
    return editor, source, binding


class TestMarksOfAMerge:
    """A conflict is resolved when all marker lines of the merge are gone. Equal lines of others do not
    count."""

    @pytest.mark.parametrize(
        "edits",
        [
            [("<<<<<<< current\n", ""), (">>>>>>> incoming\n", "")],
            [(BLOCK, "theirs\n=======\nmine\n")],
            [("<<<<<<< current\ntheirs\n", "theirs\n"), ("mine\n>>>>>>> incoming", "mine")],
            [(f"{HEADED}<<<<<<< current\n", ""), (">>>>>>> incoming\n", "")],
        ],
    )
    def test_the_mark_in_the_middle_counts(self, edits: list[tuple[str, str]]) -> None:
        editor, source, binding = conflicting()
        for old, new in edits:
            assert editor.replace(old, new).status is TextEditStatus.SUCCESS
        response = binding.flush()
        assert (response.code, len(source.texts)) == ("unresolved", 2)
        line = editor.snapshot().split("\n").index("theirs") + 2
        assert f"{line}: `=======`" in response.summary
        assert f"{line}: `=======`" in binding.notice()

    @pytest.mark.parametrize(
        "edits",
        [
            [(BLOCK, "both\n")],
            [("<<<<<<< current\n", ""), ("theirs\n=======\nmine", "both"), (">>>>>>> incoming\n", "")],
            [(f"{HEADED}{BLOCK}", f"{HEADED}both\n")],
            [(BLOCK, "Both\n"), ("Both\n", "Both\n=======\n")],
            [(BLOCK, "both\n"), (HEADED, "")],
        ],
    )
    def test_underlined_headings_can_be_flushed(self, edits: list[tuple[str, str]]) -> None:
        editor, source, binding = conflicting()
        for old, new in edits:
            assert editor.replace(old, new).status is TextEditStatus.SUCCESS
        assert binding.flush().status is TextEditStatus.SUCCESS
        assert source.texts[-1] == editor.snapshot()

    def test_a_heading_that_goes_does_not_stand_for_a_mark(self) -> None:
        editor, _, binding = conflicting()
        editor.replace("Plan\n=======\n", "# Plan\n")
        editor.replace("<<<<<<< current\n", "")
        editor.replace(">>>>>>> incoming\n", "")
        assert binding.flush().code == "unresolved"

    @pytest.mark.parametrize(("end", "last"), [("\r\n", "\r\n"), ("\r\n", ""), ("\r", "")])
    def test_other_line_ends(self, end: str, last: str) -> None:
        editor, source, binding = bound(f"one{end}two{end}")
        editor.replace("two", "mine")
        source.texts.append(f"one{end}theirs{last}")
        assert binding.refresh().code == "merged_with_conflicts"
        assert "2: `<<<<<<< current`" in binding.flush().summary
        editor.replace(f"<<<<<<< current{end}", "")
        editor.replace(f">>>>>>> incoming{last}", "")
        assert binding.flush().code == "unresolved"
        editor.replace(f"======={end}", "")
        assert binding.flush().status is TextEditStatus.SUCCESS
