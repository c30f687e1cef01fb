"""Which version each line of a text comes from: what holds for every history of a file."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from watchroom.algorithms.merge import diff_lines, split_lines
from watchroom.features.overview.reads import blame, update_blame

# Few different lines, so that versions share many of them, some without an end or with CRLF.
lines = st.sampled_from(["", "a", "b", "c", "港口", "d\r", "e\u2028f", "\x0c"])
texts = st.lists(lines, max_size=8).map("\n".join)
histories = st.lists(texts, min_size=1, max_size=8)


def numbered(history: list[str]) -> list[tuple[int, str]]:
    return list(enumerate(history, start=1))


@given(histories)
def test_every_line_of_the_last_version_has_its_version_and_no_other_has(history: list[str]) -> None:
    assert len(blame(numbered(history))) == len(split_lines(history[-1]))


@given(texts)
def test_all_of_a_file_with_one_version_comes_from_it(text: str) -> None:
    assert blame([(1, text)]) == [1] * len(split_lines(text))


@given(histories)
def test_a_line_comes_from_a_version_that_has_it_and_brought_it(history: list[str]) -> None:
    found = blame(numbered(history))
    for line, version in zip(split_lines(history[-1]), found, strict=True):
        before = history[version - 2] if version > 1 else ""
        after = split_lines(history[version - 1])
        brought = {
            after[place]
            for change in diff_lines(before, history[version - 1])
            for place in range(change.new_start, change.new_end)
        }
        assert line in brought


@given(histories)
def test_a_version_that_changes_nothing_gets_no_line(history: list[str]) -> None:
    again = [*history, history[-1]]
    assert blame(numbered(again)) == blame(numbered(history))


@given(histories, texts)
def test_lines_that_the_last_change_left_alone_keep_their_version(history: list[str], last: str) -> None:
    before, after = blame(numbered(history)), blame(numbered([*history, last]))
    changed = diff_lines(history[-1], last)
    assert after == update_blame(before, changed, len(history) + 1)
    kept = sum(change.new_end - change.new_start for change in changed)
    assert after.count(len(history) + 1) == kept


def test_each_line_is_told_apart() -> None:
    history = ["one\ntwo\nthree\n", "zero\none\ntwo\nthree\n", "zero\none\n2\nthree\n", "zero\none\n2\n"]
    assert blame(numbered(history)) == [2, 1, 3]


def test_no_version_has_no_line() -> None:
    assert blame(numbered([])) == []
