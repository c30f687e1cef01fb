"""Reverting versions of a text leaves what others wrote, and can itself be reverted."""

from __future__ import annotations

from typing import NamedTuple

from effort import rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from watchroom.features.reverts.rules import PathPlan, PathVersion, first_needed, plan_path
from watchroom.kernel.rules.file_versions import Blob

EXAMPLES = rounds(100, 4000)


def plan(before: str | None, *texts: str | None, revert: set[int]) -> PathPlan:
    """What reverting does to a text that was ``before``, then each of ``texts`` in turn, from version 1."""
    versions = [PathVersion(number, text) for number, text in enumerate(texts, 1)]
    return plan_path(revert, versions, None if before is None else PathVersion(0, before))


def test_lines_that_only_the_reverted_ones_touched_are_as_they_were() -> None:
    planned = plan("a\nb\nc\nd\n", "A\nb\nc\nd\n", "A\nb\nc\nD\n", revert={1})
    assert planned == PathPlan("clean", "a\nb\nc\nD\n", "a\nb\nc\nD\n", took=(1,))


def test_a_change_of_all_line_ends_touches_no_line() -> None:
    lines = "a\nb\nc\nd\n"
    after = lines.replace("b", "B").replace("\n", "\r\n")
    assert plan(lines, lines.replace("b", "B"), after, revert={1})[:2] == (
        "clean",
        lines.replace("\n", "\r\n"),
    )
    assert plan(lines, lines.replace("\n", "\r\n"), after, revert={1})[:2] == (
        "clean",
        lines.replace("b", "B"),
    )
    # A style that the first version brought, or that others changed since, stays.
    assert plan("a\r\nb\r\n", "A\r\nb\r\n", "\ufeffA\r\nb\r\n", revert={1}).content == "\ufeffa\r\nb\r\n"
    assert plan("a\nm\nb", "a\r\nm\r\nb\r\n", "a\r\nm\r\nB", revert={1}).content == "a\nm\nB"


def test_what_somebody_else_changed_since_is_for_people_to_decide() -> None:
    planned = plan("a\nb\nc\n", "x\nb\nc\n", "x!\nb\nC\n", revert={1})
    # Version 2 made its line of one that it was not to have: both are shown, and what stands goes on.
    assert planned.kind == "conflict"
    assert (planned.content, planned.proposal) == ("x!\nb\nC\n", "a\nx!\nb\nC\n")


def test_what_others_had_written_before_comes_back_at_once() -> None:
    planned = plan("a\nb\n", "A\nb\n", "x\nb\n", revert={2})
    assert (planned.kind, planned.content) == ("clean", "A\nb\n")


def test_a_file_that_only_the_reverted_ones_wrote_goes_and_one_they_deleted_comes_back() -> None:
    assert plan(None, "a\n", "a\nb\n", revert={1, 2})[:2] == ("clean", None)
    assert plan("a\n", None, revert={1})[:2] == ("clean", "a\n")
    # Somebody else deleted it, too, or wrote there: that stands.
    assert plan("a\n", None, "b\n", None, revert={1}).kind == "nothing"
    assert plan(None, "a\n\n\nz\n", "a\n\n\nz\nb\n", revert={1}).content is not None


def test_entries_stand_for_themselves_however_near() -> None:
    versions = [
        PathVersion(1, "- one\n", is_entry=True),
        PathVersion(2, "- one\n- two\n", is_entry=True),
        PathVersion(3, "- one\n- two\n- three\n", is_entry=True),
    ]
    assert plan_path({1}, versions, PathVersion(0, ""))[:2] == ("clean", "- two\n- three\n")
    assert plan_path({2}, versions, PathVersion(0, ""))[:2] == ("clean", "- one\n- three\n")


def test_where_the_file_is_gone_the_text_that_is_wanted_replaces_nothing_of_anyone() -> None:
    planned = plan("a\nb\nc\n", "x\nb\nc\n", "x!\nb\nC\n", None, revert={1, 3})
    assert (planned.kind, planned.content) == ("clean", "a\nx!\nb\nC\n")


def image(number: int, sha256: str = "") -> PathVersion:
    """A version with bytes that are kept as a blob, or, without their checksum, are not known."""
    blob = Blob(sha256, 3) if sha256 else None
    return PathVersion(number, f"stands for {sha256}", is_text=False, blob=blob)


def test_bytes_are_those_of_the_last_version_that_stays() -> None:
    versions = [image(1, "a"), image(2, "b"), image(3, "c")]
    assert plan_path({3}, versions, None) == PathPlan(
        "clean", "stands for b", "stands for b", took=(3,), blob=Blob("b", 3)
    )
    assert plan_path({2, 3}, versions, None).blob == Blob("a", 3)
    assert plan_path({2}, versions, None).kind == "nothing", "somebody replaced them since"
    assert plan_path({1, 2, 3}, versions, None)[:2] == ("clean", None)
    assert plan_path({1, 2, 3}, versions, image(0, "z")).blob == Blob("z", 3)
    assert plan_path({4}, [*versions, PathVersion(4, None)], None).blob == Blob("c", 3)


def test_bytes_that_took_the_place_of_a_text_give_it_back_as_it_was_and_the_other_way() -> None:
    text = [PathVersion(1, "a\n"), PathVersion(2, "a\nb\n"), PathVersion(3, "a\n", took=frozenset({2}))]
    assert plan_path({4}, [*text, image(4, "x")], None)[:2] == ("clean", "a\n")
    assert plan_path({2, 4}, [*text, image(4, "x")], None).content == "a\n"
    assert plan_path({2}, [image(1, "x"), PathVersion(2, "a\n")], None).blob == Blob("x", 3)


def test_a_revert_of_bytes_is_reverted() -> None:
    versions = [image(1, "a"), image(2, "b")]
    back = image(3, "a")._replace(took=frozenset({2}))
    assert plan_path({3}, [*versions, back], None)[2:6] == ("stands for b", (3,), (2,), "")
    # Without the version that is there because of a revert: what was before both.
    assert plan_path({1}, [*versions, back], None)[:2] == ("clean", None)


def test_bytes_that_are_not_known_cannot_come_back() -> None:
    assert plan_path({2}, [image(1), image(2, "b")], None).kind == "cannot"
    assert plan_path({2}, [image(1, "a"), image(2)], None).blob == Blob("a", 3)


def test_whether_a_file_may_be_executed_is_as_the_last_one_says_who_stays() -> None:
    start, by_alice, by_bob = (
        PathVersion(1, "a\nb\nc\nd\n"),
        PathVersion(2, "A\nb\nc\nd\n", executable=True),
        PathVersion(3, "A\nb\nc\nD\n", executable=True),
    )
    planned = plan_path({2}, [by_alice, by_bob], start)
    assert (planned.kind, planned.content, planned.executable) == ("clean", "a\nb\nc\nD\n", False)
    kept = plan_path({3}, [by_alice, by_bob], start)
    assert (kept.content, kept.executable) == ("A\nb\nc\nd\n", True)
    only_rights = PathVersion(2, start.content, executable=True)
    assert plan_path({2}, [only_rights], start) == PathPlan(
        "clean", start.content, start.content, took=(2,), executable=False
    )


def test_a_last_line_without_a_line_feed_stays_a_line() -> None:
    planned = plan("a", "a\nb\n", "a\nb\nc", revert={1})
    assert planned.proposal == "a\nc"


class Step(NamedTuple):
    """An edit: who makes it, at which line, how many lines it removes, and how many it brings."""

    is_ours: bool
    at: int
    removed: int
    brought: int


steps = st.lists(
    st.builds(Step, st.booleans(), st.integers(0, 30), st.integers(0, 3), st.integers(0, 3)),
    min_size=1,
    max_size=12,
)


def play(steps: list[Step], *, apart: bool) -> tuple[list[str], list[PathVersion], set[int]]:
    """The start, the versions and which of them are ours. Lines that were brought are unique; where
    ``apart``, ours and others' are in different halves of the text."""
    start = [f"start {n}\n" for n in range(12)]
    lines, versions, ours = [*start], [], set()
    for number, step in enumerate(steps, 1):
        middle = lines.index("start 6\n") if apart else 0
        if not apart:
            low, high = 0, len(lines)
        elif step.is_ours:
            low, high = 0, middle
        else:
            low, high = middle + 1, len(lines)
        at = low + step.at % (high - low + 1)
        end = min(at + step.removed, high)
        lines[at:end] = [f"{number}.{n}\n" for n in range(step.brought)]
        versions.append(PathVersion(number, "".join(lines)))
        if step.is_ours:
            ours.add(number)
    return start, versions, ours


@settings(max_examples=EXAMPLES)
@given(steps)
def test_edits_apart_from_each_other_are_as_if_ours_had_never_been(steps: list[Step]) -> None:
    start, versions, ours = play(steps, apart=True)
    planned = plan_path(ours, versions, PathVersion(0, "".join(start)))
    newest = versions[-1].content or ""
    without = "".join(start[:7]) + newest.partition("start 6\n")[2]
    assert planned.kind in ("clean", "nothing")
    assert (newest if planned.kind == "nothing" else planned.content) == without


@settings(max_examples=EXAMPLES)
@given(steps)
def test_no_line_of_others_is_lost_and_no_deletion_of_theirs_undone(steps: list[Step]) -> None:
    start, versions, ours = play(steps, apart=False)
    planned = plan_path(ours, versions, PathVersion(0, "".join(start)))
    if planned.kind == "nothing":
        return
    removed_by_others, previous = set(), set(start)
    for each in versions:
        lines = set((each.content or "").splitlines(keepends=True))
        if each.number not in ours:
            removed_by_others |= previous - lines
        previous = lines
    for text in (planned.content, planned.proposal):
        told = set((text or "").splitlines(keepends=True))
        assert {line for line in previous if _is_of_others(line, ours)} <= told
        assert not told & removed_by_others
    proposed = set((planned.proposal or "").splitlines(keepends=True))
    assert not {line for line in proposed if not _is_of_others(line, ours)} - set(start)


def _is_of_others(line: str, ours: set[int]) -> bool:
    bringer = line.partition(".")[0]
    return bringer.isdigit() and int(bringer) not in ours


@settings(max_examples=EXAMPLES)
@given(steps, st.lists(st.booleans(), max_size=4))
def test_a_revert_can_be_reverted_and_so_can_that(steps: list[Step], more: list[bool]) -> None:
    start, versions, ours = play(steps, apart=False)
    texts = [versions[-1].content]
    selected = ours
    for _ in range(2 + len(more)):
        planned = plan_path(selected, versions, PathVersion(0, "".join(start)))
        if planned.kind == "nothing":
            break
        number = len(versions) + 1
        versions.append(
            PathVersion(number, planned.content, took=frozenset(planned.took), gave=frozenset(planned.gave))
        )
        assert first_needed({number}, versions) == min(ours)
        texts.append(planned.content)
        selected = {number}
    # Each second one is what it was before.
    assert texts[2:] == texts[:-2]
