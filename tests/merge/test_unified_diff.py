"""Unified diffs equal those of git."""

from __future__ import annotations

import pytest
from watchroom.algorithms.merge import unified_diff

NO_NEWLINE = "\\ No newline at end of file\n"


@pytest.mark.parametrize(
    ("old", "new", "body"),
    [
        ("a\n", "b\n", "-a\n+b\n"),
        ("a\n", "b", f"-a\n+b\n{NO_NEWLINE}"),
        ("a", "b\n", f"-a\n{NO_NEWLINE}+b\n"),
        ("a\nz", "b\nz", f"-a\n+b\n z\n{NO_NEWLINE}"),
        ("", "a", f"+a\n{NO_NEWLINE}"),
    ],
)
def test_a_last_line_without_an_end_is_shown_as_it_is(old: str, new: str, body: str) -> None:
    head, hunk = unified_diff(old, new, "v1", "v2").split(" @@\n")
    assert head.startswith("--- v1\n+++ v2\n@@ -")
    assert hunk == body
