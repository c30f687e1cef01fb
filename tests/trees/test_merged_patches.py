"""A patch from a stale reading is merged with what others changed, if both fit."""

from __future__ import annotations

import pytest
from trees.git_repository import Repository
from trees.tree_client import Refused, ScriptedClient
from watchroom import Workspace
from watchroom.features.trees.reads import TreeReader
from watchroom.features.trees.rows import REPO, grade_of

PATCH = "*** Begin Patch\n{}\n*** End Patch\n"
FAR_CONTEXT = "*** Update File: a.txt\n@@\n one\n-two\n+TWO\n three\n four"
"""Changes line two, with line four as context."""


@pytest.fixture
def carol(kept: Workspace, repository: Repository) -> ScriptedClient:
    codex = ScriptedClient(kept, "carol", repository.folder, client="codex")
    codex.bash("cat a.txt b.txt")
    return codex


def line_authors(workspace: Workspace, name: str) -> list[tuple[str, str]]:
    workspace.trees.refresh_all()
    (tree,) = workspace.trees.all()
    lines = TreeReader(workspace.journal).read_file(tree.id, name).lines
    return [(line.text, line.author.actor) for line in lines if not line.is_committed]


def test_both_authors_keep_their_lines(
    kept: Workspace, repository: Repository, alice: ScriptedClient, carol: ScriptedClient
) -> None:
    alice.read("a.txt")
    alice.edit("a.txt", "four", "FOUR")
    carol.patch(PATCH.format(FAR_CONTEXT))
    assert repository.read("a.txt") == "one\nTWO\nthree\nFOUR\nfive\n"
    assert line_authors(kept, "a.txt") == [("TWO", "carol"), ("FOUR", "alice")]
    (tree,) = kept.trees.all()
    assert grade_of(kept.journal.history(REPO, tree.path("a.txt"))[-1]) == "tool"
    assert kept.journal.refused(REPO, tree.path("a.txt")) == []
    assert any("alice" in each and "merged" in each for each in carol.told)


def test_codex_takes_a_merged_patch_only_with_a_call_that_is_allowed(
    kept: Workspace, repository: Repository, alice: ScriptedClient, carol: ScriptedClient
) -> None:
    alice.read("a.txt")
    alice.edit("a.txt", "four", "FOUR")
    asked = {
        "tool_name": "apply_patch",
        "tool_use_id": "p1",
        "tool_input": {"command": PATCH.format(FAR_CONTEXT)},
    }
    said = carol.hook("PreToolUse", **asked)
    assert said["permissionDecision"] == "allow"
    assert "FOUR" in said["updatedInput"]["command"]
    plain = {
        "tool_name": "apply_patch",
        "tool_use_id": "p2",
        "tool_input": {"command": PATCH.format("*** Add File: n\n+n")},
    }
    assert carol.hook("PreToolUse", **plain) == {}, "the client decides itself about every other call"


def test_the_other_files_of_the_patch_stay_as_they_are(
    repository: Repository, alice: ScriptedClient, carol: ScriptedClient
) -> None:
    alice.read("a.txt")
    alice.edit("a.txt", "four", "FOUR")
    more = "*** Update File: b.txt\n@@\n-b\n+B\n*** Add File: new.txt\n+new\n*** Add File: old.txt\n+old"
    carol.patch(PATCH.format(f"{FAR_CONTEXT}\n{more}"))
    assert repository.read("a.txt") == "one\nTWO\nthree\nFOUR\nfive\n"
    assert [repository.read(name) for name in ("b.txt", "new.txt", "old.txt")] == ["B\n", "new\n", "old\n"]


def test_a_whole_file_that_a_patch_adds_again_is_merged(
    repository: Repository, alice: ScriptedClient, carol: ScriptedClient
) -> None:
    alice.read("a.txt")
    alice.edit("a.txt", "five", "FIVE")
    carol.patch(PATCH.format("*** Add File: a.txt\n+ONE\n+two\n+three\n+four\n+five"))
    assert repository.read("a.txt") == "ONE\ntwo\nthree\nfour\nFIVE\n"


@pytest.mark.parametrize("client", ["codex", "opencode"])
def test_a_patch_of_the_same_line_is_refused_and_kept(
    kept: Workspace, repository: Repository, alice: ScriptedClient, client: str
) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder, client=client)
    carol.bash("cat a.txt")
    carol.read("a.txt")
    alice.read("a.txt")
    alice.edit("a.txt", "two", "by alice")
    with pytest.raises(Refused, match="alice"):
        carol.patch(PATCH.format(FAR_CONTEXT))
    (tree,) = kept.trees.all()
    (refused,) = kept.journal.refused(REPO, tree.path("a.txt"))
    assert kept.journal.content(refused.seq) == "one\nTWO\nthree\nfour\nfive\n"


def test_opencode_patches_files_as_codex_does(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder, client="opencode")
    carol.read("a.txt")
    alice.read("a.txt")
    alice.edit("a.txt", "four", "FOUR")
    carol.patch(PATCH.format(FAR_CONTEXT))
    assert line_authors(kept, "a.txt") == [("TWO", "carol"), ("FOUR", "alice")]
    (tree,) = kept.trees.all()
    assert grade_of(kept.journal.history(REPO, tree.path("a.txt"))[-1]) == "tool"


def test_a_merged_text_does_not_count_as_read(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder, client="opencode")
    carol.read("a.txt")
    alice.read("a.txt")
    alice.edit("a.txt", "five", "FIVE")
    carol.write("a.txt", "one\nTWO\nthree\nfour\nfive\n")
    with pytest.raises(Refused):
        carol.write("a.txt", "one\nTWO\nTHREE\nfour\nfive\n")
    assert "FIVE" in repository.read("a.txt")
