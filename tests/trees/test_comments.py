"""Comments on lines that agents changed: rows, places, and the prompt that they become."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok
from trees.git_repo import ENVIRONMENT
from trees.git_repository import Repository
from watchroom import Workspace
from watchroom.features.overview.fold import Fold
from watchroom.features.trees.comments import (
    COMMENT,
    SENT,
    TreeComment,
    find_unsent,
    place_comments,
    write_prompt,
)
from watchroom.kernel.call_context import CallContext
from watchroom.model import Json
from watchroom.texts import catalogue


def comment(id: str, line: int, quote: str, text: str = "Why?", *, sent: int = 0) -> TreeComment:  # noqa: A002
    return TreeComment(id, "t-1", "a.txt", "alice", line, False, quote, text, 1, sent)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    made = Repository(tmp_path / "project")
    made.commit(a__txt="one\n")
    return made


def comments_of(workspace: Workspace) -> tuple[TreeComment, ...]:
    workspace.flush()
    fold = Fold(workspace.journal.content)
    fold.apply(workspace.journal.rows())
    return fold.model().comments


def test_a_comment_is_written_edited_sent_and_removed(repository: Repository) -> None:
    with Workspace.open(repository.root, agents=["alice"]) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        tree = workspace.trees.all()[0].id
        dana = workspace.tools_for_human("dana")
        about: dict[str, Json] = {"tree": tree, "path": "a.txt", "agent": "alice", "line": 1, "quote": "one"}
        ok(dana, COMMENT, comment="1", text="Why?", **about)
        ok(dana, COMMENT, comment="2", text="Two.", **about)
        ok(dana, COMMENT, comment="1", text="Why one?", **about)
        assert [each.text for each in find_unsent(comments_of(workspace), "alice")] == ["Two.", "Why one?"]
        assert find_unsent(comments_of(workspace), "bob") == []
        ok(dana, SENT, tree=tree, agent="alice", comments=["1"])
        assert [each.text for each in find_unsent(comments_of(workspace), "alice")] == ["Two."]
        ok(dana, COMMENT, comment="2", text="", **about)
        assert [(each.id, bool(each.sent)) for each in comments_of(workspace)] == [("1", True)]


def test_an_agent_cannot_comment(repository: Repository) -> None:
    with Workspace.open(repository.root, agents=["alice"]) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        tree = workspace.trees.all()[0].id
        about: dict[str, Json] = {"tree": tree, "path": "a.txt", "agent": "bob", "line": 1, "quote": "one"}
        answer = workspace.tools("alice").dispatch_tool_call(COMMENT, {"comment": "1", "text": "Hi", **about})
        assert not answer["success"]
        assert comments_of(workspace) == ()


def test_a_row_of_an_agent_is_no_comment(repository: Repository) -> None:
    with Workspace.open(repository.root, agents=["alice"]) as workspace:
        planted = CallContext("alice", COMMENT).note("tree", "t-1", detail=comment("1", 1, "one").detail)
        workspace.journal.append([planted])
        assert comments_of(workspace) == ()


def test_a_comment_follows_its_lines() -> None:
    lines = ["new", "one", "two", "one"]
    assert place_comments(lines, [comment("1", 1, "one")]) == {1: [comment("1", 1, "one")]}
    assert place_comments(lines, [comment("1", 4, "one")]) == {3: [comment("1", 4, "one")]}
    both = comment("1", 1, "one\ntwo")
    assert place_comments(lines, [both]) == {2: [both]}


def test_a_comment_whose_lines_are_gone_stays_until_it_is_sent() -> None:
    gone = comment("1", 9, "gone")
    assert place_comments(["one", "two"], [gone]) == {1: [gone]}
    assert place_comments(["one", "two"], [gone._replace(sent=5)]) == {}
    assert place_comments([], [gone]) == {}


def test_the_prompt_has_paths_lines_quotes_and_comments() -> None:
    removed = comment("2", 3, "old", "Keep it.")._replace(is_old=True)
    text = write_prompt([comment("1", 1, "one\ntwo"), removed], catalogue("en"), {"t-1": "/t"})
    assert text == (
        "A person has reviewed your changes and comments on these lines:\n\n"
        "a.txt, line 1:\n> one\n> two\nWhy?\n\n"
        "a.txt, line 3 of HEAD, which you removed:\n> old\nKeep it."
    )
    elsewhere = comment("3", 2, "x")._replace(tree="t-2")
    several = write_prompt([comment("1", 1, "one"), elsewhere], catalogue("en"), {"t-1": "/t", "t-2": "/u"})
    assert "/t/a.txt, line 1:" in several
    assert "/u/a.txt, line 2:" in several
