"""The editor as a model uses it.

It replaces text that occurs once, offers a choice of text that occurs several times, and never guesses
(EDIT-5, EDIT-8).
"""

from __future__ import annotations

import re
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchroom.algorithms.editing import (
    ContentChanged,
    TextEditFlag,
    TextEditMetrics,
    TextEditor,
    TextEditResponse,
    TextEditStatus,
    WorkflowState,
    render_buffer,
)
from watchroom.errors import NotText, TooLarge

THREE = "def foo():\n    return foo\n# foo\n"


def facts(response: TextEditResponse) -> tuple[str, str, str]:
    return response.status.value, response.workflow_state.value, response.code


class TestSingleMatch:
    """EDIT-5.1."""

    def test_what_stands_once_is_replaced_at_once(self) -> None:
        editor = TextEditor("one foo two\n")
        response = editor.replace("foo", "bar")
        assert (response.status, response.workflow_state) == (TextEditStatus.SUCCESS, WorkflowState.IDLE)
        assert response.metrics == TextEditMetrics(delta=0, new_length=12)
        assert response.candidates is None
        assert response.flags == TextEditFlag(0)
        assert editor.snapshot() == "one bar two\n"

    def test_it_may_be_removed_and_grow(self) -> None:
        editor = TextEditor("one foo two")
        assert editor.replace(" foo", "").metrics.delta == -4
        assert editor.replace("two", "two and three").metrics == TextEditMetrics(delta=10, new_length=17)

    @pytest.mark.parametrize(
        ("old", "new", "code"),
        [("", "x", "empty_needle"), ("foo", "foo", "same_text"), ("foo", "a\0b", "not_text")],
    )
    def test_what_would_change_nothing_or_cannot_be_kept_is_no_operation(
        self, old: str, new: str, code: str
    ) -> None:
        editor = TextEditor("one foo two")
        assert facts(editor.replace(old, new)) == ("NoOp", "Idle", code)
        assert (editor.snapshot(), editor.version) == ("one foo two", 1)


class TestSeveralMatches:
    """EDIT-5.2."""

    def test_a_choice_is_offered_and_made(self) -> None:
        editor = TextEditor(THREE)
        response = editor.replace("foo", "bar")
        assert facts(response) == ("MultiMatch", "SelectionPending", "multi_match")
        assert response.flags == TextEditFlag.SELECTION_PENDING
        assert response.metrics.selection_count == 3
        assert response.candidates
        assert [(each.id, each.occurrence) for each in response.candidates] == [(1, 0), (2, 1), (3, 2)]
        for candidate in response.candidates:
            assert "foo" in THREE[candidate.context_start : candidate.context_end]
        assert editor.snapshot() == THREE
        shown = render_buffer(editor).detail
        assert "return [[SEL#2]]foo[[/SEL#2]]\n" in shown
        chosen = editor.replace_selection(2)
        assert facts(chosen) == ("Success", "Idle", "selection_replaced")
        assert editor.snapshot() == "def foo():\n    return bar\n# foo\n"

    def test_the_replacement_may_be_another_one(self) -> None:
        editor = TextEditor(THREE)
        editor.replace("foo", "bar")
        editor.replace_selection(1, "baz")
        assert editor.snapshot().startswith("def baz():")

    def test_of_many_places_five_are_offered_and_all_are_counted(self) -> None:
        editor = TextEditor("a " * 12)
        response = editor.replace("a", "b")
        assert response.code == "multi_match_more"
        assert response.metrics.selection_count == 12
        assert len(response.candidates or ()) == 5
        assert "12" in response.summary
        assert "5" in response.summary

    def test_places_that_overlap_are_each_a_choice(self) -> None:
        editor = TextEditor("aaa")
        assert editor.replace("aa", "b").metrics.selection_count == 2
        editor.replace_selection(2)
        assert editor.snapshot() == "ab"

    def test_places_are_counted_at_once_where_a_long_text_repeats_itself(self) -> None:
        blank = "\n" * 10_000_000
        editor = TextEditor(blank)
        assert editor.replace(blank[: len(blank) // 2], "").metrics.selection_count == 5_000_001
        assert [each.context_start for each in editor.replace("\n" * 99, "").candidates or ()] == [0] * 5

    @given(st.text("ab", max_size=60), st.text("ab", min_size=1, max_size=6), st.integers(1, 9))
    def test_all_places_are_counted(self, text: str, part: str, times: int) -> None:
        text, needle = text + part * times + text, part * (times // 2 + 1)
        count = sum(text.startswith(needle, at) for at in range(len(text)))
        assert (TextEditor(text).replace(needle, "").metrics.selection_count or 1) == count

    def test_a_number_that_is_not_offered_changes_nothing_and_the_choice_stays(self) -> None:
        editor = TextEditor(THREE)
        editor.replace("foo", "bar")
        for number in (0, 4, -1):
            response = editor.replace_selection(number)
            assert facts(response) == ("NoMatch", "SelectionPending", "selection_unknown")
            assert response.candidates
        assert editor.snapshot() == THREE

    def test_a_choice_can_be_given_up(self) -> None:
        editor = TextEditor(THREE)
        editor.replace("foo", "bar")
        assert facts(editor.discard_selection()) == ("Success", "Idle", "selection_discarded")
        assert facts(editor.replace_selection(1)) == ("NoMatch", "Idle", "no_selection")
        assert facts(editor.discard_selection()) == ("NoOp", "Idle", "no_selection")

    @pytest.mark.parametrize("how", ["append", "update", "replace"])
    def test_any_change_makes_it_lapse(self, how: str) -> None:
        editor = TextEditor(THREE)
        editor.replace("foo", "bar")
        if how == "append":
            hint = editor.append("more\n").guidance
        elif how == "update":
            hint = editor.try_update("foo foo").message
        else:
            hint = editor.replace("return", "yield").guidance
        assert hint == "The selections are no longer valid: search for the text again with buffer_replace."
        before = editor.snapshot()
        response = editor.replace_selection(1)
        assert facts(response) == ("NoMatch", "Idle", "selection_lapsed")
        assert response.guidance == hint
        assert editor.snapshot() == before
        assert facts(editor.discard_selection()) == ("NoOp", "Idle", "selection_lapsed")
        editor.replace("foo", "bar")
        editor.discard_selection()
        assert editor.replace_selection(1).code == "no_selection"

    def test_a_more_precise_search_takes_the_place_of_a_choice(self) -> None:
        editor = TextEditor(THREE)
        editor.replace("foo", "bar")
        assert facts(editor.replace("return foo", "return bar")) == ("Success", "Idle", "replaced")
        editor.replace("o", "0")
        editor.replace("foo", "bar")
        assert editor.selections
        assert editor.selections.needle == "foo"

    def test_what_is_not_found_leaves_a_choice_open(self) -> None:
        editor = TextEditor(THREE)
        editor.replace("foo", "bar")
        assert facts(editor.replace("quux", "bar")) == ("NoMatch", "SelectionPending", "no_match")
        assert editor.replace_selection(3).status is TextEditStatus.SUCCESS


class TestNoMatch:
    def test_the_nearest_lines_are_shown(self) -> None:
        editor = TextEditor("alpha = 1\nbeta_value = compute(alpha)\ngamma = 3\n")
        response = editor.replace("beta_value = compute( alpha )", "x")
        assert facts(response) == ("NoMatch", "Idle", "no_match_near")
        assert "2: `beta_value = compute(alpha)`" in response.summary
        assert response.candidates is None

    def test_other_line_ends_are_named(self) -> None:
        editor = TextEditor("one\r\ntwo\r\n")
        assert editor.replace("one\ntwo", "x").code == "line_ends"
        assert TextEditor("one\ntwo").replace("one\r\ntwo", "x").code == "line_ends"

    def test_what_is_said_differs_from_what_is_said_of_many_matches(self) -> None:
        editor = TextEditor(THREE)
        many, none = editor.replace("foo", "x"), editor.replace("nothing like it", "x")
        assert many.summary != none.summary
        assert many.guidance != none.guidance


class TestMarks:
    def test_marks_in_the_text_are_not_taken_for_ours(self) -> None:
        text = "[[SEL#1]]foo[[/SEL#1]] and foo\n"
        editor = TextEditor(text)
        response = editor.replace("foo", "bar")
        assert response.candidates
        assert [each.marker_start for each in response.candidates] == ["[[SEL2#1]]", "[[SEL2#2]]"]
        shown = render_buffer(editor).detail
        assert "[[SEL#1]][[SEL2#1]]foo[[/SEL2#1]][[/SEL#1]] and [[SEL2#2]]foo[[/SEL2#2]]" in shown
        assert "`[[SEL2#1]]`" in shown

    def test_taking_the_marks_out_gives_the_text(self) -> None:
        text = "a ``` b\n" * 3 + "aaa aa"
        editor = TextEditor(text)
        editor.replace("aa", "b")
        shown = render_buffer(editor).detail
        block = re.search(r"^(`{4,})text\n(.*?)\n\1$", shown, flags=re.DOTALL | re.MULTILINE)
        assert block, "the fence is longer than any in the text"
        assert re.sub(r"\[\[/?SEL#\d\]\]", "", block[2]) == text

    def test_of_a_long_text_what_surrounds_the_selections_is_shown(self) -> None:
        editor = TextEditor("x" * 50_000 + "needle" + "y" * 50_000 + "needle" + "z" * 50_000)
        editor.replace("needle", "pin")
        shown = render_buffer(editor, max_shown=2_000).detail
        assert len(shown) < 4_000
        assert shown.count("[[SEL#") == 4, "two in the text, two in the legend"
        assert "characters omitted" in shown
        editor.discard_selection()
        assert "characters omitted" in render_buffer(editor, max_shown=2_000).detail


class TestBuffer:
    def test_each_change_is_told_with_its_version_and_time(self) -> None:
        heard: list[ContentChanged] = []
        clock = count(100)
        editor = TextEditor("one", clock=lambda: next(clock))
        end = editor.subscribe(heard.append)
        editor.append(" two")
        editor.replace("one", "1")
        editor.replace("nothing", "x")
        editor.try_update("all new")
        end()
        editor.append("!")
        assert [(each.version, each.timestamp, each.metrics.delta) for each in heard] == [
            (2, 100, 4),
            (3, 101, -2),
            (4, 102, 2),
        ]
        assert editor.version == 5

    def test_an_update_from_outside_is_taken_or_refused_whole(self) -> None:
        editor = TextEditor("one")
        assert editor.try_update("two").value is True
        assert editor.try_update("two").value is False
        assert editor.version == 2
        refused = editor.try_update("a\0b")
        assert (refused.ok, refused.error_code) == (False, "not_text")
        assert refused.message
        assert editor.snapshot() == "two"

    def test_no_buffer_is_larger_than_a_file_may_be(self) -> None:
        editor = TextEditor("x" * (10 * 1024 * 1024 - 1))
        assert editor.append("é").code == "too_large"
        assert editor.append("e").status is TextEditStatus.SUCCESS
        assert editor.replace_selection(1).code == "no_selection"
        with pytest.raises(TooLarge):
            TextEditor("x" * (10 * 1024 * 1024 + 1))
        with pytest.raises(NotText):
            TextEditor("\ud800")
