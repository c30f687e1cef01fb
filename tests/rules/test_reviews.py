"""A review gives the text with the hunks that a person takes, and nothing else, and tells the agent which."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from merge.triples import triple
from watchroom.algorithms.merge import diff_lines, split_lines
from watchroom.features.requests.reviews import (
    MAX_COMMENT_CHARACTERS,
    MAX_COMMENTS,
    LineComment,
    LineKey,
    Review,
    decide_call,
    decide_calls,
    describe_comments,
    describe_review,
)
from watchroom.features.requests.rows import CallDecision, PendingCall
from watchroom.features.requests.rules import parse_version, proposed_write, replace_content
from watchroom.model import Json
from watchroom.texts import catalogue

TEXTS = catalogue("en")
BEFORE = "one\ntwo\nthree\nfour\nfive\n"
AFTER = "one\n2\nthree\nfive\nsix\n"
"""A line is replaced, one is removed, and one is added."""


def review_of(before: str = BEFORE, after: str = AFTER, *declined: int) -> Review:
    return Review(before, after, tuple(diff_lines(before, after)), frozenset(declined))


@given(st.integers(min_value=0, max_value=2**32))
def test_all_taken_is_the_text_after_none_the_text_before_and_any_others_apply(seed: int) -> None:
    before, after, _ = triple(seed)
    whole = review_of(before, after)
    every = frozenset(range(len(whole.hunks)))
    assert whole.text() == after
    assert Review(before, after, whole.hunks, every).text() == before
    chance = random.Random(seed)
    declined = frozenset(each for each in every if chance.random() < 0.5)
    chosen = Review(before, after, whole.hunks, declined)
    # Hunks are taken one after the other, in any order: each leaves the lines of the others as they are.
    lines = split_lines(before)
    for index in sorted(every - declined, reverse=True):
        hunk = whole.hunks[index]
        lines[hunk.old_start : hunk.old_end] = split_lines(after)[hunk.new_start : hunk.new_end]
    assert chosen.text() == "".join(lines)
    assert split_lines(chosen.text()) == lines, "no two lines run into one"


def test_declined_hunks_are_left_out_and_named_by_their_lines() -> None:
    review = review_of().toggle(0).toggle(1)
    assert review.text() == "one\ntwo\nthree\nfour\nfive\nsix\n"
    assert review.is_partial
    said = describe_review(review, TEXTS)
    assert "1 of the 3 hunks of this call were taken, 2 declined." in said
    assert "Declined: lines 2; removed lines 4 of the old text." in said
    assert "Taken: lines 5." in said
    assert "nothing was done" in describe_review(review, TEXTS, is_writable=False)
    assert review.toggle(0).toggle(1) == review_of()
    with pytest.raises(IndexError):
        review.toggle(3)


def test_comments_are_told_with_their_lines_whatever_was_taken() -> None:
    review = review_of().comment(LineKey(1), " in words, please ").comment(LineKey(3, is_old=True), "keep it")
    comments = "Line 2 (2): in words, please\nLine 4 of the old text (four): keep it"
    assert describe_comments(review, TEXTS) == comments
    assert describe_review(review, TEXTS) == f"All hunks were taken.\n{comments}"
    rejected = Review(BEFORE, AFTER, review.hunks, frozenset({0, 1, 2}), review.comments)
    assert rejected.is_rejected
    assert describe_review(rejected, TEXTS) == f"No hunk of this call was taken (of 3).\n{comments}"
    assert review.comment(LineKey(1), "").comment(LineKey(3, is_old=True), "  ") == review_of()
    assert not review_of().is_begun
    assert describe_review(review_of(), TEXTS) == ""


def test_the_decision_on_a_call_writes_what_is_taken_or_sends_it_back() -> None:
    given = {"filepath": "a.md", "content": AFTER, "message": "m", "expected_version": 1}
    write = PendingCall("c1", "collab_write", json.dumps(given))
    flush = PendingCall("c2", "plan_flush", "{}")
    partly = decide_call(write, review_of(BEFORE, AFTER, 0), TEXTS)
    assert partly.approved
    assert partly.arguments is not None
    assert json.loads(partly.arguments) == {**given, "content": "one\ntwo\nthree\nfive\nsix\n"}
    assert "Declined: lines 2." in partly.reason
    back = decide_call(flush, review_of(BEFORE, AFTER, 0), TEXTS)
    assert (back.approved, back.arguments) == (False, None)
    assert "nothing was done" in back.reason
    for call in (write, flush):
        assert decide_call(call, review_of(), TEXTS) == CallDecision(call.id, True)
        none = decide_call(call, review_of(BEFORE, AFTER, 0, 1, 2), TEXTS)
        assert (none.approved, none.arguments) == (False, None)
    # What it writes is not what was reviewed: nothing is made of it.
    other = PendingCall("c3", "collab_write", json.dumps({**given, "content": "other\n"}))
    assert not decide_call(other, review_of(BEFORE, AFTER, 0), TEXTS).approved


def test_of_several_calls_each_gets_its_own_decision_and_what_was_said_of_its_lines() -> None:
    calls = [PendingCall(name, "collab_write", "{}") for name in ("said", "silent", "edited")]
    reviews = {name: review_of().comment(LineKey(1), f"Of {name}.") for name in ("said", "edited")}
    said, silent, edited = decide_calls(
        calls, reviews, TEXTS, approved={"edited"}, edited={"edited": '{"content": "x"}'}
    )
    assert not said.approved
    assert "Of said." in said.reason
    assert silent == CallDecision("silent", False, "", None)
    assert (edited.approved, edited.arguments) == (True, '{"content": "x"}')
    assert "Of edited." in edited.reason


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (2**31 - 1, 2**31 - 1),
        ("2", 2),
        (2.0, 2),
        (2**31, None),
        (-(2**31), None),
        (1.5, None),
        (True, None),
        ("x", None),
    ],
)
def test_a_version_is_a_whole_number_that_a_journal_can_be_asked_for(given: Json, taken: int | None) -> None:
    assert parse_version(given) == taken


def test_a_review_goes_on_where_the_text_before_has_changed() -> None:
    said = review_of(BEFORE, AFTER, 2).comment(LineKey(1), "why?").comment(LineKey(3, is_old=True), "keep it")
    before = "zero\n" + BEFORE
    moved = said.carry_over(before, AFTER, diff_lines(before, AFTER))
    assert moved.text() == "one\n2\nthree\nfive\n", "the added line is declined still"
    assert moved.comments == (LineComment(LineKey(1), "why?"),)
    assert said.carry_over(BEFORE, AFTER, said.hunks) is said


def test_a_line_belongs_to_the_hunk_that_adds_or_removes_it() -> None:
    review = review_of()
    assert [review.hunk_of(LineKey(line)) for line in range(5)] == [None, 0, None, None, 2]
    assert [review.hunk_of(LineKey(line, is_old=True)) for line in range(5)] == [None, 0, None, 1, None]


def test_what_is_said_is_bounded() -> None:
    review = review_of()
    for line in range(MAX_COMMENTS):
        review = review.comment(LineKey(line), "x")
    for key, text in ((LineKey(MAX_COMMENTS), "x"), (LineKey(0), "x" * (MAX_COMMENT_CHARACTERS + 1))):
        with pytest.raises(ValueError, match="comments"):
            review.comment(key, text)
    said = {}
    for hunks in (301, 5000):
        many = "".join(f"{number}\n\n" for number in range(hunks))
        said[hunks] = describe_review(review_of(many, many.replace("\n\n", "!\n\n"), 0), TEXTS)
    assert "more" not in said[301]
    assert "and 4699 more" in said[5000]
    assert len(said[5000]) < 5000


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("collab_write", {"filepath": "a.md", "content": "x", "message": "m", "expected_version": 1}),
        ("save_to_my_workspace", {"filename": "a.md", "content": "x"}),
        ("handoff_file", {"to_agent": "bob", "filename": "a.md", "content": "x"}),
        ("whiteboard_write", {"board": "plan", "content": "x"}),
        ("write_file", {"path": "a.md", "content": "x"}),
    ],
)
def test_a_call_that_writes_a_whole_text_can_write_another(tool: str, arguments: dict[str, str]) -> None:
    changed = replace_content(tool, arguments, "y")
    assert changed is not None
    given, taken = (proposed_write("alice", tool, each) for each in (arguments, changed))
    assert given is not None
    assert taken == given._replace(content="y")


@pytest.mark.parametrize("tool", ["collab_rollback", "delete_from_my_workspace", "plan_flush", "run_command"])
def test_other_calls_cannot_be_made_in_part(tool: str) -> None:
    assert replace_content(tool, {"filepath": "a.md", "to_version": 1, "content": "x"}, "y") is None
