"""Git is asked which files it ignores by a process that stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import psutil
import pytest
from child_processes import children
from effort import seeds
from trees.git_repository import Repository
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.ignore_checker import IgnoreChecker

PATTERNS = {
    ".gitignore": "*.log\n!kept.log\nbuild/\n/top\n\\#odd\n",
    "deep/.gitignore": "!x.log\n*.tmp\n",
    "umlaut/.gitignore": "ä*\n",
}
NAMES = [
    *("a.log", "kept.log", "deep/x.log", "deep/y.log", "deep/z.tmp", "z.tmp", "build/any", "top", "deep/top"),
    *(
        "umlaut/äb",
        "umlaut/b",
        "#odd",
        "-v.log",
        ":(glob)*.log",
        "!a.log",
        "a\nb.log",
        " a.log ",
        "nowhere/x",
    ),
    *("own.txt", "link/a.log", "inner/a.log"),
]


@pytest.fixture
def tree(repository: Repository) -> GitTree:
    for name, text in PATTERNS.items():
        repository.write(name, text)
    (repository.folder / ".git/info/exclude").write_text("own.txt\n")
    repository.commit()
    (repository.folder / "link").symlink_to("deep")
    inner = repository.folder / "inner"
    inner.mkdir()
    repository.git("init", "--quiet", str(inner))
    found = GitTree.find(str(repository.folder))
    assert found is not None
    return found


@pytest.fixture
def checker(tree: GitTree) -> Iterator[IgnoreChecker]:
    made = IgnoreChecker(tree)
    yield made
    made.close()


def checkers() -> set[psutil.Process]:
    return children("check-ignore")


def test_the_answers_are_those_of_git(tree: GitTree, checker: IgnoreChecker) -> None:
    expected = tree.ignored_among(NAMES)
    assert {"a.log", "deep/z.tmp", "umlaut/äb", "own.txt", "a\nb.log"} <= expected
    for _ in range(2):
        assert checker.ignored_among(NAMES) == expected
    for name in NAMES:
        assert checker.ignored_among([name]) == expected & {name}, name


def test_one_process_answers_until_it_is_closed(checker: IgnoreChecker) -> None:
    assert checkers() == set()
    assert checker.ignored_among(["a.log"]) == {"a.log"}
    first = checkers()
    assert checker.ignored_among(["a.txt", "b.log"]) == {"b.log"}
    assert checkers() == first
    assert len(first) == 1
    next(iter(first)).kill()
    assert checker.ignored_among(["c.log"]) == {"c.log"}
    checker.close()
    assert checkers() == set()
    assert checker.ignored_among(["d.log"]) == {"d.log"}
    assert checkers() == set()


@pytest.mark.parametrize("seed", seeds(3, 200))
def test_random_patterns_give_the_answers_of_git(
    repository: Repository, tree: GitTree, checker: IgnoreChecker, seed: int
) -> None:
    chance = Random(seed)
    words, names = (
        ("a", "b", "a b", "ü", "*", "?", "**", "[ab]", "!", "#"),
        ("a", "b", "a b", "ü", "deep", "!", "#"),
    )
    for _ in range(10):
        lines = [
            chance.choice(("", "!", "/")) + "/".join(chance.choices(words, k=chance.randint(1, 3)))
            for _ in range(chance.randint(0, 4))
        ]
        place = chance.choice(("", "deep/", "deep/a/", "b/")) + ".gitignore"
        repository.write(place, "\n".join([*lines, ""]))
        checker.restart()
        drawn = {"/".join(chance.choices(names, k=chance.randint(1, 4))) for _ in range(30)}
        files = sorted(each for each in drawn if not (repository.folder / each).is_dir())
        assert checker.ignored_among(files) == tree.ignored_among(files), (place, lines)


@pytest.mark.parametrize("file", [".gitignore", ".git/info/exclude", "deep/.gitignore"])
def test_new_patterns_apply(repository: Repository, checker: IgnoreChecker, file: str) -> None:
    assert checker.ignored_among(["deep/new"]) == frozenset()
    path = repository.folder / file
    path.write_text(path.read_text() + "new\n")
    if file == "deep/.gitignore":
        checker.restart()
    assert checker.ignored_among(["deep/new"]) == {"deep/new"}


def test_new_personal_patterns_apply(
    checker: IgnoreChecker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", os.fspath(tmp_path))
    assert checker.ignored_among(["new"]) == frozenset()
    (tmp_path / "git").mkdir()
    (tmp_path / "git/ignore").write_text("new\n")
    assert checker.ignored_among(["new"]) == {"new"}
