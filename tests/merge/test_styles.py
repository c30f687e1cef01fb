"""Line ends, final newline and byte order mark are merged separately from the lines."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from merge.triples import Triple, triple
from watchroom.algorithms.merge import (
    choose_all_conflicts,
    detect_style,
    find_open_regions,
    join_regions,
    merge,
    merge_styles,
)
from watchroom.algorithms.merge.styles import LineEnd, TextStyle

ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
line_ends: st.SearchStrategy[LineEnd] = st.sampled_from(["lf", "crlf", "cr"])
styles = st.builds(TextStyle, line_ends, st.booleans(), st.booleans())


def styled(text: str, style: TextStyle) -> str:
    """Return ``text``, whose lines all end with a line feed, in ``style``."""
    text = text if style.has_final_newline else text.removesuffix("\n")
    return ("\ufeff" if style.has_bom else "") + text.replace("\n", ENDS[style.line_end or "lf"])


def merged_style(base: TextStyle, current: TextStyle, incoming: TextStyle) -> TextStyle:
    values = [c if c != b else i for b, c, i in zip(base, current, incoming, strict=True)]
    return TextStyle._make(values)


def plain_triple(seed: int) -> Triple:
    """Texts of at least two lines that all end with a line feed."""
    sides = ("first\nsecond\n" + text.replace("\r", "") for text in triple(seed))
    return Triple(*(text if text.endswith("\n") else text + "\n" for text in sides))


@given(st.integers(0, 2**32), styles, styles, styles)
def test_texts_that_differ_in_style_merge_as_their_normal_forms(
    seed: int, base: TextStyle, current: TextStyle, incoming: TextStyle
) -> None:
    texts = plain_triple(seed)
    assume(not any(text.endswith("\n\n") for text in texts))
    assume(len({base, current, incoming}) > 1)
    given_texts = [styled(text, style) for text, style in zip(texts, (base, current, incoming), strict=True)]
    assert [detect_style(text) for text in given_texts] == [base, current, incoming]
    regions = merge(*given_texts)
    assert regions == merge(*texts)
    for choice in ("current", "incoming", "both"):
        decided = join_regions(choose_all_conflicts(regions, choice))
        expected = styled(decided, merged_style(base, current, incoming))
        assert merge_styles(*given_texts).apply(decided) == expected


@given(st.integers(0, 2**32), styles)
def test_texts_of_one_style_are_merged_as_they_are(seed: int, style: TextStyle) -> None:
    texts = [styled(text, style) for text in plain_triple(seed)]
    found = merge_styles(*texts)
    assume(not found.differ)
    assert [found.normalize(text) for text in texts] == texts
    assert found.apply(texts[0]) == texts[0]


@given(st.text(st.sampled_from("ab\r\n\ufeff"), max_size=12), styles)
@example("a\r\r\nb\r\n", TextStyle("lf", True, False))
def test_the_normal_form_of_a_text_leads_back_to_it(text: str, other: TextStyle) -> None:
    found = merge_styles(text, text, styled("x\ny\n", other))
    back = found._replace(base=found.incoming, is_normal=True)
    assume(found.current.line_end != "mixed" and None not in found.current)
    assert back.apply(back.normalize(text)) == text


def test_a_side_that_changed_every_line_end_conflicts_with_no_edit() -> None:
    base = "".join(f"line {number}\r\n" for number in range(1, 201))
    current = base.replace("\r\n", "\n").replace("line 2\n", "line TWO\n")
    incoming = base.replace("line 10\r", "line TEN\r")
    regions = merge(base, current, incoming)
    assert find_open_regions(regions) == []
    text = merge_styles(base, current, incoming).apply(join_regions(regions))
    assert text == current.replace("line 10\n", "line TEN\n")


@pytest.mark.parametrize(
    ("base", "current", "incoming", "merged"),
    [
        ("a\nb\n", "a\r\nb\n", "A\nb\n", "mixed"),
        ("a\r\nb\n", "a\nb\n", "a\r\nB\n", "lf"),
        ("a\nb\n", "a\r\nb\n", "a\r\nB\r\n", "crlf"),
        ("a\rb\r", "a\nb\n", "a\rB\r", "lf"),
        ("", "a\n", "a\r\n", "lf"),
        ("a\n", "", "a\r\nb\r\n", "crlf"),
    ],
)
def test_mixed_line_ends_give_way(base: str, current: str, incoming: str, merged: str) -> None:
    assert merge_styles(base, current, incoming).merged.line_end == merged


@given(st.integers(0, 2**32), styles, styles)
def test_where_a_character_is_in_the_merged_style(seed: int, base: TextStyle, current: TextStyle) -> None:
    text = plain_triple(seed).base
    found = merge_styles(styled(text, base), styled(text, current), styled(text, base))
    for at, character in enumerate(found.normalize(styled(text, base))):
        if character not in "\r\n\ufeff":
            shown = found.apply(found.normalize(styled(text, base)))
            assert shown[found.apply_offset(text, at)] == character
