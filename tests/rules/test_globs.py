"""Patterns: each place where a star may end, and names that begin at a root."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchroom.algorithms.globs import ANY, ONE, WORDS, could_match_text, matches_path, matches_text


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("", "", True),
        ("", "a", False),
        ("a", "a", True),
        ("a", "ab", False),
        ("a", "ba", False),
        ("?", "a", True),
        ("?", "", False),
        ("?", "ab", False),
        ("?", "\n", True),
        ("*", "", True),
        ("*", "a\nb", True),
        ("a*", "a", True),
        ("a*", "ba", False),
        ("*a", "a", True),
        ("*a", "ab", False),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("ab*bc", "abc", False),
        ("ab*bc", "abbc", True),
        ("a*b*c", "abc", True),
        ("a*b*c", "ac", False),
        ("a*b*c", "axbxc", True),
        ("a*bc*c", "abc", False),
        ("*a*b*", "xaxbx", True),
        ("*a*b*", "xbxax", False),
        ("*b*b*", "b", False),
        ("*ab*ab*", "aab", False),
        ("?*?", "a", False),
        ("?*?", "ab", True),
        ("*?b*", "b", False),
        ("*?b*", "ab", True),
        ("a?c*", "abc", True),
        ("*a?", "xxab", True),
        ("[a]", "a", False),
        ("a.c", "abc", False),
        ("a.?", "a.c", True),
        ("A", "a", False),
    ],
)
def test_a_star_stands_for_any_characters_and_a_question_mark_for_one(
    pattern: str, text: str, matches: bool
) -> None:
    assert matches_text(pattern, text) is matches


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a", False),
        ("a", "a/b", False),
        ("*", "a", True),
        ("*", "a/b", False),
        ("a/*", "a", False),
        ("a/?", "a/b", True),
        ("**", "a/b/c", True),
        ("a/**", "a", True),
        ("a/**", "a/b/c", True),
        ("a/**", "b/a", False),
        ("**/c", "c", True),
        ("**/c", "a/b/c", True),
        ("**/c", "a/b/cd", False),
        ("a/**/c", "a/c", True),
        ("a/**/c", "a/b/b/c", True),
        ("a/**/c", "a/b/c/d", False),
        ("a/**/b/**/c", "a/b/x/b/c", True),
        ("a/**/b/**/c", "a/c", False),
        ("**/a/b", "a/a/b", True),
        ("**/a/*/b", "a/a/x/b", True),
        ("a/**/**", "a", True),
        ("/etc/*", "/etc/passwd", True),
        ("*/etc", "/etc", False),
        ("**/etc", "/etc", True),
        ("/*", "/", False),
        ("/", "/", True),
        ("?/etc", "/etc", False),
        ("a**b", "axxb", True),
    ],
)
def test_two_stars_stand_for_any_names_and_one_for_a_part_of_a_name(
    pattern: str, path: str, matches: bool
) -> None:
    assert matches_path(pattern, path) is matches


@pytest.mark.parametrize(
    ("pattern", "text", "could_match"),
    [
        ("rm -rf *", "rm -rf x", True),
        ("rm -rf *", "rm -r x", False),
        ("rm -rf *", ANY, True),
        ("rm -rf *", f"{ANY} -rf x", True),
        ("rm -rf *", f"r{ANY}", True),
        ("rm -rf *", f"l{ANY}", False),
        ("rm -rf *", f"rm {ONE}", False),
        ("rm -rf *", f"rm {ONE} x", True),
        ("rm -rf *", f"rm{WORDS}", True),
        ("rm -rf *", f"rmx{WORDS}", False),
        ("rm", f"rm{WORDS}", True),
        ("rm x", f"rm{WORDS} x", True),
        ("a*b c", f"a{ONE}", True),
        ("a b*c", f"a{ONE}c", False),
        ("a?c", f"{ONE}c", True),
        ("a?c", f"a{ONE}d", False),
        ("a**c", f"a{ONE}c", True),
        ("*a*", f"b {ONE}", False),
        ("*a*", f"{ONE} b", True),
        ("?a", f"b{WORDS}", False),
    ],
)
def test_a_mark_stands_for_what_is_not_known(pattern: str, text: str, could_match: bool) -> None:
    assert could_match_text(pattern, text) is could_match


@given(
    st.text("ab *?", max_size=8), st.lists(st.sampled_from(["a", "b", " ", "ab", ANY]), max_size=6), st.data()
)
def test_text_that_matches_could_match_before_it_was_known(
    pattern: str, pieces: list[str], data: st.DataObject
) -> None:
    known = "".join(data.draw(st.text("ab ", max_size=3)) if each == ANY else each for each in pieces)
    if matches_text(pattern, known) and pattern[:1] not in ("*", "?"):
        assert could_match_text(pattern, "".join(pieces))
