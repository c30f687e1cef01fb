"""What front ends show of working trees: changes since HEAD by file and author, and who wrote each line."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from trees.git_repository import Repository
from trees.tree_client import Refused, ScriptedClient
from watchroom import Workspace
from watchroom.features.overview.reads import Preview, UnreadableVersionError, read_preview
from watchroom.features.trees.reads import TreeReader
from watchroom.features.trees.rows import REPO
from watchroom.features.trees.view import Author, author_of, join_authors
from watchroom.history.comparison import read_changed_paths, read_differences, read_patch


def reader_of(workspace: Workspace) -> tuple[TreeReader, str]:
    """A reader over everything that has changed, and the id of the only tree."""
    workspace.trees.refresh_all()
    (tree,) = workspace.trees.all()
    return TreeReader(workspace.journal), tree.id


def changes(workspace: Workspace) -> dict[str, tuple[str, list[tuple[str, int, int]]]]:
    reader, tree = reader_of(workspace)
    return {
        each.name: (each.kind, [(one.author.name, one.added, one.removed) for one in each.authors])
        for each in reader.list_changes(tree)
    }


def lines(workspace: Workspace, name: str) -> list[tuple[str, str, bool]]:
    reader, tree = reader_of(workspace)
    return [(each.author.name, each.text, each.is_committed) for each in reader.read_file(tree, name).lines]


def test_changes_are_listed_by_file_with_how_much_each_author_did(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.read("a.txt")
    alice.edit("a.txt", "one\n", "ONE\nand more\n")
    bob.bash("echo six >> a.txt; rm b.txt")
    alice.write("new.txt", "1\n2\n")
    repository.write("by hand.txt", "x\n")
    assert changes(kept) == {
        "a.txt": ("modified", [("alice", 2, 1), ("~bob", 1, 0)]),
        "b.txt": ("deleted", [("~bob", 0, 1)]),
        "by hand.txt": ("added", [("external", 1, 0)]),
        "new.txt": ("added", [("alice", 2, 0)]),
    }


def test_files_that_appear_while_changes_are_listed_are_no_error(
    kept: Workspace, repository: Repository
) -> None:
    reader, tree = reader_of(kept)
    names = [f"new{number}.txt" for number in range(200)]

    def write_all() -> None:
        for name in names:
            repository.write(name, "x\n")
            kept.trees.refresh_all()

    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(write_all)
        while not written.done():
            assert {each.name for each in reader.list_changes(tree)} <= {*names}
        written.result()
    assert {each.name for each in reader.list_changes(tree)} == {*names}


def test_what_is_committed_or_undone_is_no_change(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.read("a.txt")
    alice.edit("a.txt", "one", "ONE")
    alice.edit("a.txt", "ONE", "one")
    alice.write("new.txt", "1\n")
    repository.git("add", "new.txt")
    repository.git("commit", "-qm", "new")
    assert changes(kept) == {}
    assert lines(kept, "new.txt") == [("alice", "1", True)]


def test_binary_files_are_listed_without_lines(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.bash("printf 'a\\0b' > data.bin")
    assert changes(kept) == {"data.bin": ("added", [("~alice", 0, 0)])}
    reader, tree = reader_of(kept)
    assert reader.read_file(tree, "data.bin").text is None


def test_the_note_for_the_bytes_of_a_binary_file_is_no_text(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.bash("printf 'a\\0b' > data.bin")
    alice.bash("printf text > data.bin")
    path = f"{kept.trees.all()[0].id}/data.bin"
    binary, text = (row for row, _ in kept.journal.versions(REPO, path))
    assert read_preview(kept.journal, binary) == Preview(None, size=3)
    assert read_preview(kept.journal, text) == Preview("text", "")
    (found,) = read_differences(kept.journal, read_changed_paths(kept.journal, 0, binary.seq, [path]))
    assert (found.kind, found.added, found.removed) == ("created", None, None)
    with pytest.raises(UnreadableVersionError):
        read_patch(kept.journal, found.pair)


def test_each_line_has_its_author(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.read("a.txt")
    alice.edit("a.txt", "two", "TWO")
    bob.bash("printf six >> a.txt")
    alice.bash("printf '\\nseven\\n' >> a.txt")
    assert lines(kept, "a.txt") == [
        ("git", "one", True),
        ("alice", "TWO", False),
        ("git", "three", True),
        ("git", "four", True),
        ("git", "five", True),
        ("~bob", "six", False),
        ("~alice", "seven", False),
    ]
    assert lines(kept, "b.txt") == [("git", "b", True)]


def test_agents_whose_commands_overlapped_are_all_named(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    first, second = alice.begin_bash("make"), bob.begin_bash("make")
    repository.write("b.txt", "B\n")
    alice.end_bash(*first)
    bob.end_bash(*second)
    assert changes(kept) == {"b.txt": ("modified", [("alice|bob?", 1, 1)])}


def test_files_with_open_conflicts_are_marked(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    bob.read("a.txt")
    alice.read("a.txt")
    alice.edit("a.txt", "one", "ONE")
    with pytest.raises(Refused):
        bob.write("a.txt", "uno\ntwo\nthree\nfour\nfive\n")
    reader, tree = reader_of(kept)
    (file,) = reader.list_changes(tree, {f"{tree}/a.txt"})
    assert file.has_conflict
    assert not reader.list_changes(tree)[0].has_conflict


def test_trees_are_described_with_branch_agents_and_changes(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    repository.git("worktree", "add", "-q", "-b", "side", str(repository.folder.parent / "side"))
    alice.write("new.txt", "1\n")
    reader = TreeReader(kept.journal)
    kept.trees.look_after()
    kept.trees.refresh_all()
    found = {each.tree.branch: (each.agents, each.changed) for each in reader.describe_trees()}
    assert found == {"main": (("alice",), 1), "side": ((), 0)}
    side = reader.find_tree("side")
    assert side is not None
    assert reader.find_file(f"{side.folder}/x/y") == (side, "x/y")
    assert reader.find_file("/nowhere") is None


def test_nobody_is_named_more_surely_than_the_least_sure_of_their_changes() -> None:
    sure, less = Author("alice", "tool"), Author("alice", "window")
    shared, external = Author("outside", "shared", ("a", "b")), Author("outside", "external")
    assert join_authors([sure]).name == "alice"
    assert join_authors([sure, less]).name == "~alice"
    assert join_authors([external, external]).name == "external"
    assert join_authors([shared, external]).name == "a|b|external?"
    assert join_authors([]).name == "git"


def test_a_person_who_resolves_is_an_author(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.write("new.txt", "1\n")
    (tree,) = kept.trees.all()
    (row,) = kept.journal.history("repo", tree.path("new.txt"))
    assert author_of(row._replace(actor="human:dana", detail_json="{}")).name == "human:dana"
