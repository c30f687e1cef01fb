"""Laws of every merge, for all texts and all choices."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from merge.triples import triple
from watchroom.algorithms.merge import (
    CHOICES,
    Choice,
    Regions,
    apply_edit,
    choose_all_conflicts,
    choose_region,
    diff_lines,
    diff_result,
    find_changed_words,
    find_marker_offsets,
    find_open_regions,
    join_regions,
    merge,
    merge_styles,
    rebase_regions,
    split_lines,
    text_with_markers,
)

seeds = st.integers(min_value=0, max_value=2**32)


def merged(seed: int) -> Regions:
    return merge(*triple(seed))


def merged_text(base: str, current: str, incoming: str) -> str:
    return merge_styles(base, current, incoming).apply(join_regions(merge(base, current, incoming)))


def decided(seed: int) -> Regions:
    """Return a merge with some choices."""
    chance, regions = random.Random(seed), merged(seed)
    for index, region in enumerate(regions):
        if region.kind != "unchanged" and chance.random() < 0.7:
            regions = choose_region(
                regions, index, chance.choice([each for each in CHOICES if each != "edited"])
            )
    return regions


def current_of(regions: Regions) -> str:
    return "".join(line for region in regions for line in region.current)


def lines_of(text: str) -> Counter[str]:
    """Return the lines without their ends, which a merge may add."""
    return Counter(line.rstrip("\r\n") for line in split_lines(text))


@given(st.text())
@example("a\u2028b\x0cc\x1cd\r")
def test_lines_joined_are_the_text(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line.index("\n") == len(line) - 1 for line in lines[:-1])


@given(seeds)
def test_changes_lead_from_one_text_to_the_other(seed: int) -> None:
    old, new, _ = triple(seed)
    result, before, after = [], split_lines(old), split_lines(new)
    at = 0
    for change in diff_lines(old, new):
        assert (
            before[at : change.old_start]
            == after[change.new_start - change.old_start + at : change.new_start]
        )
        result += before[at : change.old_start] + after[change.new_start : change.new_end]
        at = change.old_end
    assert "".join(result + before[at:]) == new


@given(seeds)
def test_each_text_is_the_join_of_its_lines(seed: int) -> None:
    texts = triple(seed)
    regions, (base, current, incoming) = merge(*texts), map(merge_styles(*texts).normalize, texts)
    assert "".join(line for each in regions for line in each.base) == base
    assert current_of(regions) == current
    assert "".join(line for each in regions for line in each.incoming) == incoming


@given(seeds)
def test_a_side_that_changed_nothing_yields(seed: int) -> None:
    base, current, incoming = triple(seed)
    assert merged_text(base, current, base) == current
    assert merged_text(base, base, incoming) == incoming
    assert merged_text(base, current, current) == current


@given(seeds)
def test_current_everywhere_is_current_where_they_conflict_and_both_elsewhere(seed: int) -> None:
    regions = choose_all_conflicts(merged(seed), "current")
    assert not find_open_regions(regions)
    expected = "".join(
        "".join(each.incoming if each.kind == "incoming" else each.current) for each in regions
    )
    assert lines_of(join_regions(regions)) == lines_of(expected)


@given(seeds)
def test_no_line_of_either_side_is_gone_when_both_are_taken(seed: int) -> None:
    regions = choose_all_conflicts(merged(seed), "both")
    result = lines_of(join_regions(regions))
    for region in regions:
        if region.kind in ("conflict", "agreed"):
            for side in (region.current, region.incoming):
                assert not lines_of("".join(side)) - result
        elif region.kind != "unchanged":
            assert not lines_of("".join(getattr(region, region.kind))) - result


@given(seeds)
def test_a_text_with_open_regions_is_not_joined(seed: int) -> None:
    regions = merged(seed)
    if find_open_regions(regions):
        with pytest.raises(ValueError, match="open"):
            join_regions(regions)


@given(seeds)
def test_a_choice_can_be_taken_back(seed: int) -> None:
    regions = merged(seed)
    for index in find_open_regions(regions):
        for choice in ("current", "incoming", "both", "both_incoming_first", "neither"):
            assert choose_region(choose_region(regions, index, choice), index, None) == regions


@given(seeds)
def test_each_open_region_has_three_markers_where_it_is_said(seed: int) -> None:
    regions = merged(seed)
    text = text_with_markers(regions)
    found = [text[at : at + 7] for at in find_marker_offsets(regions)]
    assert found == ["<<<<<<<", "=======", ">>>>>>>"] * len(find_open_regions(regions))


@given(seeds, seeds)
def test_what_is_written_by_hand_is_what_the_text_is_then(seed: int, other: int) -> None:
    regions = decided(seed)
    chance = random.Random(other)
    lines = split_lines(text_with_markers(regions))
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(lines) + 1)
        lines[at : at + chance.randrange(3)] = ["written\n"] * chance.randrange(3)
    if len(lines) > 1:
        lines[:-1] = [line if line.endswith("\n") else line + "\n" for line in lines[:-1]]
    text = "".join(lines)
    after = apply_edit(regions, text)
    assert text_with_markers(after) == text
    assert current_of(after) == current_of(regions)
    assert apply_edit(after, text) == after


@given(seeds)
def test_writing_elsewhere_leaves_open_regions_open(seed: int) -> None:
    regions = merged(seed)
    after = apply_edit(regions, "above\n" + text_with_markers(regions))
    if regions and regions[0].kind == "unchanged":
        assert len(find_open_regions(after)) == len(find_open_regions(regions))
        assert "".join(after[0].result) == "above\n"


def with_newer_lines(text: str, chance: random.Random) -> tuple[str, list[str]]:
    lines = [line if line.endswith("\n") else line + "\n" for line in split_lines(text)]
    added = [f"newer {n}\n" for n in range(chance.randrange(1, 4))]
    for line in added:
        lines.insert(chance.randrange(len(lines) + 1), line)
    return "".join(lines), added


@given(seeds, seeds)
def test_when_the_file_moves_on_its_newer_lines_are_in_the_result_or_to_be_decided(
    seed: int, other: int
) -> None:
    regions = decided(seed)
    newer, added = with_newer_lines(current_of(regions), random.Random(other))
    after = rebase_regions(regions, newer)
    assert current_of(after) == newer
    taken = Counter(
        line for region in after for line in (region.current if region.is_open else region.result)
    )
    assert not Counter(added) - taken


@given(seeds, seeds)
def test_when_the_file_moves_on_what_was_written_by_hand_is_not_lost(seed: int, other: int) -> None:
    chance = random.Random(other)
    regions = choose_all_conflicts(merged(seed), "current")
    lines = split_lines(join_regions(regions))
    lines = [line if line.endswith("\n") else line + "\n" for line in lines]
    lines.insert(chance.randrange(len(lines) + 1), "by hand\n")
    regions = apply_edit(regions, "".join(lines))
    newer, _ = with_newer_lines(current_of(regions), chance)
    after = rebase_regions(regions, newer)
    assert "by hand\n" in split_lines(text_with_markers(after))


@given(seeds, seeds, st.integers(1, 3))
def test_what_was_written_into_an_open_region_outlives_every_newer_version(
    seed: int, other: int, versions: int
) -> None:
    chance, regions = random.Random(other), merged(seed)
    lines = split_lines(text_with_markers(regions))
    lines = [line if line.endswith("\n") else line + "\n" for line in lines]
    lines.insert(chance.randrange(len(lines) + 1), "by hand\n")
    after = apply_edit(regions, "".join(lines))
    text = current_of(after)
    for _ in range(versions):
        text, added = with_newer_lines(text, chance)
        after = rebase_regions(after, text)
        assert current_of(after) == text
        assert not set(added) - set(split_lines(text_with_markers(after)))
    assert "by hand\n" in split_lines(text_with_markers(after))


def test_an_added_line_end_stays_when_other_lines_are_edited() -> None:
    """The end of the last line, which lacked one, is the same although the only other such line is gone."""
    regions = choose_all_conflicts(merge("a\r\nb\n", "a\r\nb\nc\n", "x\r\nb\nd"), "both_incoming_first")
    text = text_with_markers(regions)
    written = text.removeprefix("x\r\n")
    assert "d\r\n" in written
    assert text_with_markers(apply_edit(regions, written)) == written


HEADING = "New heading\n=======\n"


def test_a_heading_that_is_underlined_as_the_sides_are_divided_can_be_written_anywhere() -> None:
    """The heading may be in unchanged text, or in place of an open region."""
    regions = merge("a\nb\nc\n", "a\nB\nc\n", "a\nbb\nc\n")
    above = apply_edit(regions, HEADING + text_with_markers(regions))
    assert text_with_markers(above) == HEADING + text_with_markers(regions)
    assert len(find_open_regions(above)) == 1
    assert join_regions(apply_edit(above, f"{HEADING}a\n{HEADING}c\n")) == f"{HEADING}a\n{HEADING}c\n"


@given(seeds, st.data())
def test_what_a_person_writes_is_what_stands_there(seed: int, data: st.DataObject) -> None:
    regions = decided(seed)
    lines = split_lines(text_with_markers(regions))
    start = data.draw(st.integers(0, len(lines)))
    end = data.draw(st.integers(start, len(lines)))
    pieces = st.sampled_from(["mine\n", "=======\n", "<<<<<<< current\n", ">>>>>>> incoming\n"])
    written = "".join([*lines[:start], *data.draw(st.lists(pieces, max_size=4)), *lines[end:]])
    assert text_with_markers(apply_edit(regions, written)) == written


def test_what_was_written_between_the_marks_stands_beside_the_newer_text() -> None:
    regions = merge("a\nb\nc\n", "a\nB\nc\n", "a\nbb\nc\n")
    text = text_with_markers(regions).replace("bb\n", "bb\nmine\n")
    (_, region, _) = rebase_regions(apply_edit(regions, text), "a\nBBB\nc\n")
    assert region.is_open
    assert (region.current, region.incoming) == (("BBB\n",), ("bb\n",))
    assert text_with_markers((region,)) == ("<<<<<<< current\nBBB\n=======\nbb\nmine\n>>>>>>> incoming\n")


@given(seeds, st.booleans())
def test_what_changes_in_the_result_is_known_from_its_regions(seed: int, has_writing: bool) -> None:
    regions = decided(seed)
    if has_writing:
        regions = apply_edit(regions, "above\n" + text_with_markers(regions))
    old, new, found = diff_result(regions)
    assert "".join(old) == current_of(regions)
    assert "".join(new) == text_with_markers(regions)
    rebuilt: list[str] = []
    at = 0
    for change in found:
        assert old[change.old_start : change.old_end] != new[change.new_start : change.new_end]
        rebuilt += old[at : change.old_start]
        assert len(rebuilt) == change.new_start
        rebuilt += new[change.new_start : change.new_end]
        at = change.old_end
    assert [*rebuilt, *old[at:]] == new


@given(seeds)
def test_a_file_that_did_not_move_on_changes_nothing(seed: int) -> None:
    regions = decided(seed)
    assert rebase_regions(regions, current_of(regions)) == regions


def test_choices_are_kept_when_other_lines_move_on() -> None:
    base = "".join(f"line {n}\n" for n in range(20))
    regions = merge(
        base, base.replace("line 3\n", "THREE\n").replace("line 15\n", "FIFTEEN\n"),
        base.replace("line 3\n", "three\n").replace("line 15\n", "fifteen\n"),
    )  # fmt: skip
    first, second = find_open_regions(regions)
    regions = choose_region(choose_region(regions, first, "incoming"), second, "both")
    newer = "top\n" + current_of(regions).replace("line 9\n", "nine\n")
    after = rebase_regions(regions, newer)
    assert not find_open_regions(after)
    expected = base.replace("line 3\n", "three\n").replace("line 15\n", "FIFTEEN\nfifteen\n")
    assert join_regions(after) == "top\n" + expected.replace("line 9\n", "nine\n")


@pytest.mark.parametrize("choice", ["current", "incoming", "both", "both_incoming_first", "neither"])
def test_lines_that_come_right_before_or_after_a_decision_leave_it_as_it_is(choice: Choice) -> None:
    regions = choose_region(merge("a\nb\n", "a\ncurrent\n", "a\nincoming\n"), 1, choice)
    decided = join_regions(regions).removeprefix("a\n")
    for above, below in (("", "new\n"), ("new\n", ""), ("new\n", "newer\n")):
        after = rebase_regions(regions, f"a\n{above}current\n{below}")
        assert join_regions(after) == f"a\n{above}{decided}{below}"


def test_a_region_that_moved_on_unseen_is_open_again() -> None:
    regions = choose_region(merge("a\n", "b\n", "c\n"), 0, "incoming")
    (region,) = rebase_regions(regions, "unseen\n")
    assert region.is_open
    assert (region.current, region.incoming) == (("unseen\n",), ("c\n",))


@given(st.text(), st.text())
def test_the_words_that_did_not_change_are_in_both_lines(old: str, new: str) -> None:
    kept, at = "", 0
    for start, end in find_changed_words(old, new):
        assert at <= start < end <= len(new)
        kept += new[at:start]
        at = end
    rest = iter(old)
    assert all(any(each == character for each in rest) for character in kept + new[at:])


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("Sales rose.", "Sales rose sharply.", [" sharply"]),
        ("港口吞吐量增长", "港口吞吐量下降", ["下降"]),
        ("a b c", "a b c", []),
        ("", "new", ["new"]),
        ("old", "", []),
    ],
)
def test_words_are_compared_as_they_are_read(old: str, new: str, changed: list[str]) -> None:
    assert [new[start:end] for start, end in find_changed_words(old, new)] == changed


def test_in_very_long_lines_the_whole_line_counts_as_changed() -> None:
    assert find_changed_words("." * 2000, ".") == []
    assert find_changed_words("." * 2001, ".") == [(0, 1)]
    assert find_changed_words("", "." * 2000) == find_changed_words("x", "." * 2000) == [(0, 2000)]
    assert find_changed_words(".", "." + "x" * 1999) == [(1, 2000)]
    assert find_changed_words(".", "." + "x" * 2000) == [(0, 2001)]


@pytest.mark.parametrize("choice", ["both", "both_incoming_first"])
def test_both_of_what_one_side_changed_is_its_change(choice: Choice) -> None:
    regions = merge("a\nb\nc\nd\ne\n", "a\nB\nc\nd\nE\n", "a\nb\nc\nnew\nd\nE\n")
    chosen = tuple(region._replace(choice=choice) for region in regions)
    assert join_regions(chosen) == join_regions(regions) == "a\nB\nc\nnew\nd\nE\n"


@pytest.mark.parametrize("choice", ["both", "both_incoming_first"])
def test_a_choice_of_both_goes_on_as_that_choice_where_the_file_moved_on(choice: Choice) -> None:
    regions = choose_region(merge("a\nb\n", "a\ncurrent\n", "a\nincoming\n"), 1, choice)
    after = rebase_regions(regions, "a\nnewer\n")
    assert [region.choice for region in after if region.kind == "conflict"] == [choice]
    assert sorted(split_lines(join_regions(after))) == ["a\n", "incoming\n", "newer\n"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_that_had_no_end_gets_that_of_the_others(end: str) -> None:
    regions = merge(f"a{end}b", f"a{end}current", f"a{end}incoming")
    (index,) = find_open_regions(regions)
    assert join_regions(choose_region(regions, index, "both")) == f"a{end}current{end}incoming"
    marked = text_with_markers(regions)
    assert split_lines(marked)[1:] == [
        f"<<<<<<< current{end}",
        f"current{end}",
        f"======={end}",
        f"incoming{end}",
        split_lines(marked)[-1],
    ]
