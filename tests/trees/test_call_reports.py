"""What a call wanted to write is kept if it is refused, and what it wrote is recorded as its client reports it."""

from __future__ import annotations

from typing import Final

import pytest
from trees.git_repository import Repository
from trees.tree_client import Refused, ScriptedClient
from watchroom import Row, Workspace
from watchroom.features.trees.rows import REPO, grade_of
from watchroom.kernel.rules.conflicts import ConflictTracker

MOVE: Final = (
    "*** Begin Patch\n*** Update File: a.txt\n*** Move to: deep/moved.txt\n@@\n-five\n+FIVE\n*** End Patch"
)


def rows_of(workspace: Workspace, name: str) -> list[Row]:
    workspace.trees.refresh_all()
    (tree,) = workspace.trees.all()
    return workspace.journal.history(REPO, tree.path(name))


def refused_of(workspace: Workspace, name: str) -> list[Row]:
    (tree,) = workspace.trees.all()
    return workspace.journal.refused(REPO, tree.path(name))


def open_conflicts(workspace: Workspace) -> list[str]:
    """The agents whose refused writes are open conflicts."""
    tracker = ConflictTracker()
    for row in workspace.journal.rows(0, limit=1000):
        if row.zone == REPO:
            tracker.apply(row)
    return [each.actor for each in tracker.current()]


def described(workspace: Workspace, name: str) -> list[tuple[str, str, str, str | None]]:
    return [
        (row.actor, row.tool, grade_of(row), None if row.deleted else workspace.journal.content(row.seq))
        for row in rows_of(workspace, name)
        if row.actor != "system"
    ]


# Another program's hook changes the call after its check


def test_a_write_that_another_hook_changes_is_one_version(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    call, given = alice.begin_write("new.txt", "a  =  1\n")
    alice.end_write(call, {**given, "content": "a = 1\n"})
    assert described(kept, "new.txt") == [("alice", "write_file", "tool", "a = 1\n")]


def test_an_edit_that_another_hook_changes_is_one_version(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.read("b.txt")
    call, given = alice.begin_edit("b.txt", "b", "x")
    alice.end_edit(call, {**given, "new_string": "x!"})
    assert described(kept, "b.txt") == [("alice", "write_file", "tool", "x!\n")]


# Refusals


def test_what_waits_for_a_lease_in_vain_is_kept(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.read("a.txt")
    bob.read("a.txt")
    begun = alice.begin_edit("a.txt", "one", "ONE")
    with pytest.raises(Refused, match="alice is now writing"):
        bob.write("a.txt", "by bob\n")
    (refused,) = refused_of(kept, "a.txt")
    assert (refused.actor, refused.error, kept.journal.content(refused.seq)) == (
        "bob",
        "lease_taken",
        "by bob\n",
    )
    alice.end_edit(*begun)
    assert open_conflicts(kept) == ["bob"]
    bob.read("a.txt")
    bob.write("a.txt", "by bob\n")
    assert open_conflicts(kept) == []


def test_a_refused_deletion_says_so_and_has_no_text(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder, client="codex")
    carol.bash("cat a.txt")
    alice.read("a.txt")
    alice.edit("a.txt", "one", "ONE")
    with pytest.raises(Refused) as found:
        carol.patch("*** Begin Patch\n*** Delete File: a.txt\n*** End Patch")
    assert "is kept" not in found.value.reason
    (refused,) = refused_of(kept, "a.txt")
    assert kept.journal.content(refused.seq) is None
    assert refused.message == "tried to delete the file"
    assert repository.read("a.txt").startswith("ONE")


def test_an_edit_that_fits_no_version_is_no_conflict(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.read("a.txt")
    repository.write("a.txt", "by hand\n")
    call, given = alice.begin_edit("a.txt", "nowhere", "x")
    alice.end_edit(call, given)
    assert refused_of(kept, "a.txt") == []
    assert any("outside changed a.txt" in each for each in alice.told)


# Moves


@pytest.mark.parametrize("client", ["codex", "opencode"])
def test_a_move_is_its_agents_in_both_places(kept: Workspace, repository: Repository, client: str) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder, client=client)
    carol.patch(MOVE)
    assert described(kept, "a.txt") == [("carol", "write_file", "tool", None)]
    assert described(kept, "deep/moved.txt") == [
        ("carol", "write_file", "tool", "one\ntwo\nthree\nfour\nFIVE\n")
    ]


def test_a_move_takes_along_what_others_changed(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder, client="codex")
    carol.bash("cat a.txt")
    alice.read("a.txt")
    alice.edit("a.txt", "one", "ONE")
    carol.patch(MOVE)
    assert repository.read("deep/moved.txt") == "ONE\ntwo\nthree\nfour\nFIVE\n"
    with pytest.raises(Refused):
        carol.patch("*** Begin Patch\n*** Add File: deep/moved.txt\n+mine\n*** End Patch")


def test_a_move_over_a_file_of_another_is_refused(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.write("deep/moved.txt", "by alice\n")
    carol = ScriptedClient(kept, "carol", repository.folder, client="codex")
    with pytest.raises(Refused, match="alice"):
        carol.patch(MOVE)
    assert repository.read("deep/moved.txt") == "by alice\n"
    (refused,) = refused_of(kept, "deep/moved.txt")
    assert kept.journal.content(refused.seq) == "one\ntwo\nthree\nfour\nFIVE\n"


def test_a_move_by_a_shell_is_recorded_though_codex_reports_no_end(
    kept: Workspace, repository: Repository
) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder, client="codex")
    carol.ask("Bash", {"command": f"apply_patch <<'EOF'\n{MOVE}\nEOF"})
    (repository.folder / "a.txt").unlink()
    repository.write("deep/moved.txt", "one\ntwo\nthree\nfour\nFIVE\n")
    carol.stop()
    assert described(kept, "a.txt") == [("carol", "write_file", "tool", None)]
    assert [row[0] for row in described(kept, "deep/moved.txt")] == ["carol"]


# Readings of a part


def test_opencode_has_not_seen_what_was_written_between_its_reading_and_the_report(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder, client="opencode")
    alice.write("new.txt", "1\n2\n")
    call, given = carol.ask("Read", {"file_path": str(repository.folder / "new.txt")})
    alice.write("new.txt", "1\n2\n3\n")
    carol.report("Read", call, given, "<content>\n1: 1\n2: 2\n\n(End of file - total 2 lines)\n</content>")
    with pytest.raises(Refused, match="alice"):
        carol.write("new.txt", "1\nTWO\n")
    assert repository.read("new.txt") == "1\n2\n3\n"


def test_claude_has_not_seen_lines_that_were_written_after_it_read_them(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder)
    alice.write("new.txt", "1\n2\n3\n")
    path = str(repository.folder / "new.txt")
    call, given = carol.ask("Read", {"file_path": path, "limit": 2})
    alice.write("new.txt", "1\nTWO\n3\n")
    read = {"content": "1\n2\n", "startLine": 1, "numLines": 2, "totalLines": 3}
    carol.report("Read", call, given, {"file": read})
    call, given = carol.ask("Read", {"file_path": path, "offset": 3})
    read = {"content": "3\n", "startLine": 3, "numLines": 1, "totalLines": 3}
    carol.report("Read", call, given, {"file": read})
    with pytest.raises(Refused, match="alice"):
        carol.write("new.txt", "1\nsecond\n3\n")
    assert repository.read("new.txt") == "1\nTWO\n3\n"


def test_opencode_has_seen_only_the_lines_that_it_read(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder, client="opencode")
    alice.write("new.txt", "1\n2\n3\n4\n")
    path = str(repository.folder / "new.txt")
    call, given = carol.ask("Read", {"file_path": path, "offset": 2, "limit": 2})
    said = f"<path>{path}</path>\n<type>file</type>\n<content>\n2: 2\n3: 3\n\n"
    carol.report(
        "Read", call, given, f"{said}(Showing lines 2-3 of 4. Use offset=4 to continue.)\n</content>"
    )
    with pytest.raises(Refused, match="have not read"):
        carol.write("new.txt", "1\nTWO\n3\n")
    carol.report(
        "Read", call, given, "<content>\n1: 1\n2: 2\n3: 3\n4: 4\n\n(End of file - total 4 lines)\n</content>"
    )
    carol.write("new.txt", "1\nTWO\n3\n")
    assert repository.read("new.txt") == "1\nTWO\n3\n"
