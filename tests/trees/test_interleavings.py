"""Two agents and a person change the same files, with their own tools: nothing is lost unseen."""

from __future__ import annotations

import pytest
from trees.git_repository import Repository
from trees.tree_client import Refused, ScriptedClient
from watchroom import Row, Workspace
from watchroom.features.trees.rows import REPO, grade_of


def versions(workspace: Workspace, name: str) -> list[tuple[str, str | None]]:
    """The versions of a file after what git had: who made it, and its text."""
    workspace.trees.refresh_all()
    (tree,) = workspace.trees.all()
    found = workspace.journal.versions(REPO, tree.path(name))
    return [(row.actor, text) for row, text in found if row.actor != "system"]


def rows_of(workspace: Workspace, name: str) -> list[Row]:
    (tree,) = workspace.trees.all()
    return workspace.journal.history(REPO, tree.path(name))


def test_an_edit_is_a_version_of_its_agent(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.read("a.txt")
    alice.edit("a.txt", "two", "TWO")
    assert versions(kept, "a.txt") == [("alice", "one\nTWO\nthree\nfour\nfive\n")]
    assert [grade_of(row) for row in rows_of(kept, "a.txt")] == ["git", "tool"]


def test_edits_of_different_lines_both_stay(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.read("a.txt")
    bob.read("a.txt")
    alice.edit("a.txt", "one", "ONE")
    bob.edit("a.txt", "five", "FIVE")
    assert repository.read("a.txt") == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert [who for who, _ in versions(kept, "a.txt")] == ["alice", "bob"]
    assert any("alice" in each and "a.txt" in each for each in bob.told)


def test_a_whole_text_from_a_stale_reading_is_refused_by_a_client_that_compares_it_again(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    bob.read("a.txt")
    alice.read("a.txt")
    alice.edit("a.txt", "one", "ONE")
    with pytest.raises(Refused, match=r"\+ONE"):
        bob.write("a.txt", "one\ntwo\nthree\nfour\nFIVE\n")
    bob.read("a.txt")
    bob.write("a.txt", "ONE\ntwo\nthree\nfour\nFIVE\n")
    assert repository.read("a.txt") == "ONE\ntwo\nthree\nfour\nFIVE\n"


def test_a_whole_text_from_a_stale_reading_is_merged_by_a_client_that_takes_it(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder, client="opencode")
    carol.read("a.txt")
    alice.read("a.txt")
    alice.edit("a.txt", "one", "ONE")
    carol.write("a.txt", "one\ntwo\nthree\nfour\nFIVE\n")
    assert repository.read("a.txt") == "ONE\ntwo\nthree\nfour\nFIVE\n"


def test_a_whole_text_that_conflicts_is_refused_and_kept(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    bob.read("a.txt")
    alice.read("a.txt")
    alice.edit("a.txt", "one", "ONE")
    with pytest.raises(Refused, match="alice"):
        bob.write("a.txt", "uno\ntwo\nthree\nfour\nfive\n")
    assert repository.read("a.txt") == "ONE\ntwo\nthree\nfour\nfive\n"
    (tree,) = kept.trees.all()
    (refused,) = kept.journal.refused(REPO, tree.path("a.txt"))
    assert (refused.actor, kept.journal.content(refused.seq)) == ("bob", "uno\ntwo\nthree\nfour\nfive\n")


def test_a_file_of_another_agent_that_was_never_read_is_not_overwritten(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.write("new.txt", "by alice\n")
    with pytest.raises(Refused):
        bob.write("new.txt", "by bob\n")
    bob.read("new.txt")
    bob.write("new.txt", "by bob\n")
    assert [who for who, _ in versions(kept, "new.txt")] == ["alice", "bob"]


def test_a_write_waits_for_the_lease_of_another(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.read("a.txt")
    bob.read("a.txt")
    begun = alice.begin_edit("a.txt", "one", "ONE")
    with pytest.raises(Refused, match="alice"):
        bob.edit("a.txt", "five", "FIVE")
    alice.end_edit(*begun)
    bob.edit("a.txt", "five", "FIVE")
    assert repository.read("a.txt") == "ONE\ntwo\nthree\nfour\nFIVE\n"


def test_what_a_command_changes_is_its_agents(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.bash("sed -i s/one/ONE/ a.txt; mkdir -p deep/er; echo new > deep/er/c.txt; rm b.txt")
    assert versions(kept, "a.txt") == [("alice", "ONE\ntwo\nthree\nfour\nfive\n")]
    assert versions(kept, "deep/er/c.txt") == [("alice", "new\n")]
    assert versions(kept, "b.txt") == [("alice", None)]
    assert grade_of(rows_of(kept, "a.txt")[-1]) == "window"


def test_a_command_that_removes_unseen_lines_is_a_conflict(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    bob.read("a.txt")
    alice.read("a.txt")
    alice.edit("a.txt", "three", "three\nby alice")
    bob.bash("printf 'one\\ntwo\\nthree\\nfour\\nfive\\nsix\\n' > a.txt")
    assert any("alice" in each and "a.txt" in each for each in bob.told)
    (tree,) = kept.trees.all()
    (lost,) = kept.journal.refused(REPO, tree.path("a.txt"))
    assert "by alice" in (kept.journal.content(lost.seq) or "")


def test_an_edit_by_hand_is_external(kept: Workspace, repository: Repository, alice: ScriptedClient) -> None:
    alice.read("a.txt")
    repository.write("a.txt", "by hand\n")
    assert versions(kept, "a.txt") == [("outside", "by hand\n")]
    with pytest.raises(Refused):
        alice.write("a.txt", "mine\n")
    assert repository.read("a.txt") == "by hand\n"


def test_overlapping_commands_are_shared(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    first, second = alice.begin_bash("make"), bob.begin_bash("make")
    repository.write("a.txt", "by one of them\n")
    alice.end_bash(*first)
    bob.end_bash(*second)
    row = rows_of(kept, "a.txt")[-1]
    assert (row.actor, grade_of(row), row.detail["candidates"]) == ("outside", "shared", ["alice", "bob"])


def test_line_ends_and_a_missing_last_line_feed_stay(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    repository.commit(crlf__txt="one\r\ntwo")
    alice.read("crlf.txt")
    alice.edit("crlf.txt", "one", "ONE")
    assert versions(kept, "crlf.txt")[-1] == ("alice", "ONE\r\ntwo")


def test_somebody_who_writes_between_the_check_and_the_write_is_found(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.read("a.txt")
    begun = alice.begin_write("a.txt", "all new\n")
    repository.write("a.txt", "by hand, meanwhile\n")
    alice.end_write(*begun)
    assert [who for who, _ in versions(kept, "a.txt")] == ["outside", "alice"]
    (tree,) = kept.trees.all()
    (lost,) = kept.journal.refused(REPO, tree.path("a.txt"))
    assert kept.journal.content(lost.seq) == "by hand, meanwhile\n"


def test_git_takes_no_work_of_others_away(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.read("a.txt")
    alice.edit("a.txt", "one", "ONE")
    bob.bash("ls")
    for command in ("git checkout -- .", "git stash", "git reset --hard", "git add -A", "git commit -am x"):
        with pytest.raises(Refused, match="alice"):
            bob.bash(command)
    bob.bash("git status && git add b.txt && git commit -m mine")
    assert repository.read("a.txt").startswith("ONE")


def test_git_may_do_all_where_nobody_else_works(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.read("a.txt")
    alice.edit("a.txt", "one", "ONE")
    alice.bash("git checkout -- .")
    assert repository.read("a.txt").startswith("one")
    assert grade_of(rows_of(kept, "a.txt")[-1]) == "window"


def test_an_index_with_work_of_others_is_not_committed(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.read("a.txt")
    alice.edit("a.txt", "one", "ONE")
    alice.bash("git add a.txt")
    bob.bash("echo more >> b.txt; git add b.txt")
    with pytest.raises(Refused, match=r"a\.txt"):
        bob.bash("git commit -m mine")
    alice.bash("git commit -m mine -- a.txt")
    bob.bash("git commit -m mine")
    assert repository.git("status", "--porcelain") == ""


def test_an_ignored_file_is_compared_by_its_checksum_and_never_recorded(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    repository.commit(__gitignore=".env\n")
    alice.write(".env", "SECRET=alice\n")
    with pytest.raises(Refused, match="ignores"):
        bob.write(".env", "SECRET=bob\n")
    bob.read(".env")
    bob.write(".env", "SECRET=bob\n")
    assert repository.read(".env") == "SECRET=bob\n"
    kept.flush()
    texts = [kept.journal.content(row.seq) or "" for row in kept.journal.rows(0, limit=1000)]
    assert not any("SECRET" in text for text in texts)


def test_a_call_that_is_never_made_holds_nobody_up(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.read("a.txt")
    bob.read("a.txt")
    alice.begin_edit("a.txt", "one", "ONE")
    alice.hook("PostToolBatch")
    bob.edit("a.txt", "five", "FIVE")
    begun = alice.begin_bash("sleep 100")
    alice.stop()
    repository.write("b.txt", "by hand\n")
    assert versions(kept, "b.txt") == [("outside", "by hand\n")]
    assert begun


def test_a_command_in_the_background_goes_on_after_the_turn(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    call, given = alice.begin_bash("make &")
    alice.report("Bash", call, given, {"stdout": "", "backgroundTaskId": "b1"})
    alice.stop()
    repository.write("b.txt", "by the command\n")
    alice.hook("UserPromptSubmit", prompt=f"<task-notification>{call} has ended</task-notification>")
    assert versions(kept, "b.txt") == [("alice", "by the command\n")]
    repository.write("b.txt", "by hand\n")
    assert versions(kept, "b.txt")[-1] == ("outside", "by hand\n")


def test_a_write_that_the_client_refuses_itself_is_kept_until_the_next_one(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.read("a.txt")
    bob.read("a.txt")
    bob.edit("a.txt", "five", "FIVE")
    call, given = alice.begin_edit("a.txt", "one", "ONE")
    failed = {"tool_name": "Edit", "tool_use_id": call, "tool_input": given}
    alice.hook("PostToolUseFailure", **failed, error="File has been modified since read")
    (tree,) = kept.trees.all()
    (refused,) = kept.journal.refused(REPO, tree.path("a.txt"))
    assert kept.journal.content(refused.seq) == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert any("bob" in each for each in alice.told)


def test_what_a_client_refuses_itself_is_kept_and_its_agent_reads_who_changed_the_file(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.read("a.txt")
    bob.read("a.txt")
    bob.edit("a.txt", "five", "FIVE")
    given = {"file_path": str(repository.folder / "a.txt"), "content": "all new\n"}
    error = "<tool_use_error>File has been modified since read</tool_use_error>"
    call = {"tool_name": "Write", "tool_use_id": "w1", "tool_input": given, "tool_response": error}
    alice.hook("PostToolBatch", tool_calls=[call])
    (tree,) = kept.trees.all()
    (refused,) = kept.journal.refused(REPO, tree.path("a.txt"))
    assert (refused.actor, kept.journal.content(refused.seq)) == ("alice", "all new\n")
    assert any("bob" in each for each in alice.told)


def test_a_person_who_saves_before_a_write_that_fails_is_recorded(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.read("a.txt")
    call, given = alice.begin_write("a.txt", "all new\n")
    repository.write("a.txt", "by hand\n")
    alice.hook("PostToolUseFailure", tool_name="Write", tool_use_id=call, tool_input=given, error="changed")
    assert versions(kept, "a.txt") == [("outside", "by hand\n")]
    (tree,) = kept.trees.all()
    (refused,) = kept.journal.refused(REPO, tree.path("a.txt"))
    assert kept.journal.content(refused.seq) == "all new\n"


def test_an_edit_of_a_stale_file_does_not_count_as_a_reading_of_the_rest(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.read("a.txt")
    repository.write("a.txt", "one\ntwo\nthree\nfour\nby hand\n")
    alice.edit("a.txt", "one", "ONE")
    with pytest.raises(Refused):
        alice.write("a.txt", "ONE\ntwo\nthree\nfour\nfive\n")
    assert "by hand" in repository.read("a.txt")


def test_edits_of_a_part_do_not_count_as_a_reading_of_the_rest(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.read("a.txt")
    repository.write("a.txt", "one\ntwo\nthree\nfour\nby hand\n")
    alice.edit("a.txt", "one", "ONE")
    alice.edit("a.txt", "two", "TWO")
    with pytest.raises(Refused):
        alice.write("a.txt", "ONE\nTWO\nthree\nfour\nfive\n")
    assert "by hand" in repository.read("a.txt")


def test_a_patch_of_a_file_that_was_never_read_does_not_count_as_a_reading(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    codex = ScriptedClient(kept, "bob", repository.folder, client="codex")
    alice.write("new.txt", "one\ntwo\n")
    codex.patch("*** Begin Patch\n*** Update File: new.txt\n@@\n-one\n+ONE\n*** End Patch\n")
    with pytest.raises(Refused):
        codex.patch("*** Begin Patch\n*** Add File: new.txt\n+ONE\n*** End Patch\n")
    assert repository.read("new.txt") == "ONE\ntwo\n"


def test_codex_has_seen_what_a_command_names(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    codex = ScriptedClient(kept, "bob", repository.folder, client="codex")
    alice.write("new.txt", "by alice\n")
    add = "*** Begin Patch\n*** Add File: new.txt\n+by bob\n*** End Patch\n"
    with pytest.raises(Refused):
        codex.patch(add)
    codex.bash("cat new.txt")
    codex.patch(add)
    assert repository.read("new.txt") == "by bob\n"


def test_codex_has_not_seen_what_was_written_while_its_command_ran(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    codex = ScriptedClient(kept, "bob", repository.folder, client="codex")
    alice.write("new.txt", "by alice\n")
    reading = codex.begin_bash("cat new.txt")
    alice.write("new.txt", "by alice again\n")
    codex.end_bash(*reading)
    with pytest.raises(Refused):
        codex.patch("*** Begin Patch\n*** Add File: new.txt\n+by bob\n*** End Patch\n")
    assert repository.read("new.txt") == "by alice again\n"


def test_a_command_that_ends_late_takes_nothing_from_what_was_read_meanwhile(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    codex = ScriptedClient(kept, "bob", repository.folder, client="codex")
    alice.write("new.txt", "by alice\n")
    reading = codex.begin_bash("cat new.txt")
    alice.write("new.txt", "by alice again\n")
    codex.bash("cat new.txt")
    codex.end_bash(*reading)
    codex.patch("*** Begin Patch\n*** Add File: new.txt\n+by bob\n*** End Patch\n")
    assert repository.read("new.txt") == "by bob\n"


def test_a_patch_that_fails_holds_nobody_up(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    codex = ScriptedClient(kept, "bob", repository.folder, client="codex")
    codex.patch("*** Begin Patch\n*** Update File: a.txt\n@@\n-nowhere\n+new\n*** End Patch\n")
    alice.read("a.txt")
    alice.edit("a.txt", "one", "ONE")
    codex.patch("*** Begin Patch\n*** Update File: a.txt\n@@\n-five\n+FIVE\n*** End Patch\n")
    assert repository.read("a.txt") == "ONE\ntwo\nthree\nfour\nFIVE\n"
