"""Paths of files in working trees, as people read them: without ids of trees."""

from __future__ import annotations

import pytest
from watchroom_tui.formatters.labels import file_name, has_several_trees, place_text


@pytest.mark.parametrize(
    ("zone", "path", "has_trees", "shown"),
    [
        ("repo", "project-6150fc00/src/x.py", False, "repo/src/x.py"),
        ("repo", "my-project-6150fc00/src/x.py", True, "repo/my-project/src/x.py"),
        ("tree", "project-6150fc00", False, "tree/project"),
        ("shared", "docs/a.md", True, "shared/docs/a.md"),
    ],
)
def test_a_place_has_no_id_of_a_tree(zone: str, path: str, has_trees: bool, shown: str) -> None:
    assert place_text(zone, path, has_trees=has_trees) == shown


def test_a_file_has_the_name_of_its_tree_only_if_there_are_several() -> None:
    one, other = ("repo", "a-1/x"), ("repo", "b-2/x")
    assert not has_several_trees([one, one, ("shared", "c-3/x")])
    assert has_several_trees([one, other])
    assert file_name(*one) == "x"
    assert file_name(*one, has_trees=True) == "a/x"
