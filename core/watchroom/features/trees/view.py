"""The working trees of a repository and the authors of their files, as the dashboard shows them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, NamedTuple, cast

from watchroom.features.trees.rows import (
    BASELINE,
    PREDICT,
    TRY_AGENT,
    Grade,
    Prediction,
    Tree,
    candidates_of,
    grade_of,
    read_prediction,
    read_tree,
    repo_path,
)
from watchroom.model import OUTSIDE, SYSTEM, Row, actor_kind

NO_AGENTS: Final = ("", OUTSIDE, SYSTEM)
"""Actors of versions that are neither agents nor people."""
_GIT: Final = "git"
_EXTERNAL: Final = "external"


class Author(NamedTuple):
    """The author of a change, with its uncertainty.

    - ``actor``: as in rows; empty for git.
    - ``candidates``: the agents that may have made it, if ``grade`` is ``shared``.
    """

    actor: str
    grade: Grade
    candidates: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The author for display: ``alice``, ``~alice``, ``alice|bob?``, ``external`` or ``git``."""
        if self.grade == "shared":
            return "|".join(self.candidates) + "?"
        if self.grade in (_GIT, _EXTERNAL):
            return self.grade
        return f"~{self.actor}" if self.grade == "window" else self.actor


GIT_AUTHOR: Final = Author("", "git")


def is_by_agent(author: Author) -> bool:
    """Return whether ``author`` is a single agent, even if that is not certain."""
    return author.grade in ("tool", "window") and actor_kind(author.actor) == "agent"


def author_of(row: Row) -> Author:
    """Return the author of the version ``row``."""
    grade = grade_of(row)
    if row.tool == BASELINE or grade == _GIT:
        return GIT_AUTHOR
    if row.actor not in NO_AGENTS:
        return Author(row.actor, "window" if grade == "window" else "tool")
    candidates = candidates_of(row)
    return Author(row.actor, "shared", candidates) if candidates else Author(row.actor, _EXTERNAL)


def join_authors(authors: Iterable[Author]) -> Author:
    """Return the common author of changes by one actor with these ``authors``. The least certain grade
    counts."""
    given = [*authors]
    by_grade = {each.grade: each for each in given}
    if "shared" in by_grade:
        names = dict.fromkeys(name for each in given for name in each.candidates)
        more = (_EXTERNAL,) if _EXTERNAL in by_grade else ()
        return by_grade["shared"]._replace(candidates=(*names, *more))
    for grade in ("window", _EXTERNAL, "tool"):
        if grade in by_grade:
            return by_grade[cast("Grade", grade)]
    return GIT_AUTHOR


class TreeProjection:
    """The working trees. Takes their rows in order."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": (), "_predicted": None}
    """Attributes that a snapshot leaves out, each with its value after loading."""

    def __init__(self) -> None:
        self._trees: dict[str, Tree] = {}
        self._tries: Mapping[str, Row] = {}
        self._predictions: Mapping[tuple[str, str], Row] = {}
        self._predicted: Mapping[tuple[str, str], Prediction] | None = None
        self._changed = False
        self._current: tuple[Tree, ...] = ()

    def apply(self, row: Row, content: str | None) -> None:
        """Apply ``row`` with its ``content``. Only new versions, tries and predictions matter."""
        if row.tool == PREDICT and row.version is None:
            prediction = read_prediction(row)
            others = {key: each for key, each in self._predictions.items() if key != prediction.trees}
            self._predictions = {**others, prediction.trees: row} if prediction.paths else others
            self._predicted = None
        if row.tool == TRY_AGENT and row.version is None:
            self._tries = {**self._tries, row.path: row}
        if row.version is not None:
            self._trees[row.path] = read_tree(row.path, content or "")
            self._changed = True

    def current(self) -> tuple[Tree, ...]:
        """Return the trees whose folders exist, by id. Return the same object if none changed."""
        if self._changed:
            self._changed = False
            self._current = tuple(tree for _, tree in sorted(self._trees.items()) if tree.folder)
        return self._current

    def predictions(self) -> Mapping[tuple[str, str], Prediction]:
        """Return the pairs of trees that conflict. Return the same object if none changed."""
        if self._predicted is None:
            self._predicted = {key: read_prediction(row) for key, row in self._predictions.items()}
        return self._predicted

    def tries(self) -> Mapping[str, Row]:
        """Return the newest try of each tree, by the tree's id. Return the same object if there is no new
        try."""
        return self._tries


def find_home(trees: Iterable[Tree], folder: str) -> Tree | None:
    """Return the innermost tree that contains ``folder``, else the main tree. None if neither exists."""
    found = [*trees]
    inside = [each for each in found if f"{folder}/".startswith(f"{each.folder}/")]
    if inside:
        return max(inside, key=lambda each: len(each.folder))
    return next((each for each in found if not is_linked(each)), None)


def is_linked(tree: Tree) -> bool:
    """Return whether ``tree`` is a linked working tree, not the repository's main tree."""
    return os.path.basename(os.path.dirname(tree.git)) == "worktrees"


def find_row_path(trees: Iterable[Tree], path: str, folder: str = "") -> str | None:
    """Return the path of the rows of the file at ``path``, None if it is in none of ``trees``.

    ``folder``: the folder for a relative ``path``.
    """
    place = os.path.normpath(os.path.join(folder, path))
    for tree in sorted(trees, key=lambda each: len(each.folder), reverse=True):
        if place.startswith(f"{tree.folder}/"):
            return repo_path(tree.id, place[len(tree.folder) + 1 :])
    return None
