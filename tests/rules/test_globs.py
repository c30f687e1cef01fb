"""Patterns: each place where a star may end, and names that begin at a root."""

from __future__ import annotations

import pytest
from watchroom.rules.globs import matches_path, matches_text


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
