"""Calls that stay open for long, because the client asks its person within them, as opencode does: the versions
of the file have their authors, and no text is lost silently."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from refusing import refusing
from trees.git_repository import Repository
from trees.tree_client import Refused, ScriptedClient
from watchroom import Row, Workspace
from watchroom.errors import JournalError
from watchroom.features.trees.rows import REPO, candidates_of, grade_of
from watchroom.model import WRITE_FILE

TEXT: Final = "one\ntwo\nthree\nfour\nfive\n"
CAROLS: Final = TEXT.replace("one", "zero\none")
OTHERS: Final = TEXT.replace("five", "five\nsix")
BOTH: Final = CAROLS.replace("five", "five\nsix")
Wait: TypeAlias = Callable[[float], None]


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Wait:
    """Return a function that lets seconds pass."""
    true_time = time.monotonic
    waited: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: true_time() + sum(waited))
    return waited.append


@pytest.fixture
def carol(kept: Workspace, repository: Repository) -> ScriptedClient:
    return ScriptedClient(kept, "carol", repository.folder, client="opencode")


def rows_of(workspace: Workspace, name: str) -> list[Row]:
    workspace.trees.refresh_all()
    (tree,) = workspace.trees.all()
    return [row for row in workspace.journal.history(REPO, tree.path(name)) if row.actor != "system"]


def versions(workspace: Workspace, name: str) -> list[tuple[str, str, str | None]]:
    return [
        (row.actor, grade_of(row), workspace.journal.content(row.seq)) for row in rows_of(workspace, name)
    ]


def conflicts(workspace: Workspace, name: str) -> list[tuple[str | None, str | None]]:
    """The conflicts about a file: the code and the text of each."""
    (tree,) = workspace.trees.all()
    found = workspace.journal.refused(REPO, tree.path(name))
    return [(row.error, workspace.journal.content(row.seq)) for row in found]


def report(client: ScriptedClient, call: str, given: Mapping[str, Any]) -> None:
    client.report("Edit", call, given, "Edit applied successfully.")


def fail(client: ScriptedClient, call: str, given: Mapping[str, Any]) -> None:
    client.hook("PostToolUseFailure", tool_name="Edit", tool_use_id=call, tool_input=given, error="rejected")


def test_an_edit_that_waits_for_a_person_during_other_calls_is_its_agents(
    kept: Workspace, repository: Repository, carol: ScriptedClient, wait: Wait
) -> None:
    carol.read("a.txt")
    call, given = carol.begin_edit("a.txt", "one", "zero\none")
    wait(4)
    carol.read("b.txt")
    repository.write("a.txt", CAROLS)
    kept.trees.refresh_all()
    report(carol, call, given)
    assert versions(kept, "a.txt") == [("carol", "tool", CAROLS)]
    carol.write("a.txt", "all new\n")
    assert repository.read("a.txt") == "all new\n"


def test_calls_that_run_while_a_prompt_arrives_go_on(
    kept: Workspace, repository: Repository, carol: ScriptedClient, alice: ScriptedClient
) -> None:
    carol.read("a.txt")
    edit, text = carol.begin_edit("a.txt", "one", "zero\none")
    command, line = carol.begin_bash("make b.txt")
    carol.hook("UserPromptSubmit", prompt="And then?", open_calls=[edit, command])
    alice.read("a.txt")
    with pytest.raises(Refused):
        alice.begin_write("a.txt", "by alice\n")
    repository.write("a.txt", CAROLS)
    repository.write("b.txt", "made\n")
    kept.trees.refresh_all()
    report(carol, edit, text)
    carol.end_bash(command, line)
    assert versions(kept, "a.txt") == [("carol", "tool", CAROLS)]
    assert versions(kept, "b.txt") == [("carol", "window", "made\n")]


def test_calls_that_a_prompt_has_interrupted_end(
    kept: Workspace, repository: Repository, carol: ScriptedClient
) -> None:
    carol.begin_bash("make b.txt")
    carol.hook("UserPromptSubmit", prompt="Stop that.", open_calls=[])
    repository.write("b.txt", "by hand\n")
    assert versions(kept, "b.txt") == [("outside", "external", "by hand\n")]


def test_an_edit_stays_its_agents_after_another_call_for_the_same_file_has_ended(
    kept: Workspace, repository: Repository, carol: ScriptedClient
) -> None:
    carol.read("a.txt")
    call, given = carol.begin_edit("a.txt", "one", "zero\none")
    fail(carol, *carol.begin_edit("a.txt", "five", "five\nsix"))
    repository.write("a.txt", CAROLS)
    kept.trees.refresh_all()
    report(carol, call, given)
    assert versions(kept, "a.txt") == [("carol", "tool", CAROLS)]


def test_a_patch_that_codex_never_reports_holds_nobody_up(
    kept: Workspace, repository: Repository, alice: ScriptedClient, wait: Wait
) -> None:
    codex = ScriptedClient(kept, "bob", repository.folder, client="codex")
    codex.ask("apply_patch", {"command": "*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch\n"})
    wait(4)
    codex.bash("true")
    alice.write("new.txt", "by alice\n")
    assert versions(kept, "new.txt") == [("alice", "tool", "by alice\n")]


def test_a_text_that_was_made_before_another_agents_edit_overwrites_nothing_silently(
    kept: Workspace, repository: Repository, alice: ScriptedClient, carol: ScriptedClient, wait: Wait
) -> None:
    carol.read("a.txt")
    alice.read("a.txt")
    call, given = carol.begin_edit("a.txt", "one", "zero\none")
    wait(61)
    alice.edit("a.txt", "five", "five\nsix")
    repository.write("a.txt", CAROLS)
    kept.trees.refresh_all()
    report(carol, call, given)
    assert versions(kept, "a.txt") == [("alice", "tool", OTHERS), ("carol", "tool", CAROLS)]
    assert conflicts(kept, "a.txt") == [("lines_lost", OTHERS)]
    assert any(each.startswith("You removed 1 line of alice in 'a.txt'") for each in carol.told)


def test_an_edit_that_the_client_applies_to_another_agents_edit_is_no_conflict(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient, wait: Wait
) -> None:
    alice.read("a.txt")
    bob.read("a.txt")
    begun = bob.begin_edit("a.txt", "one", "zero\none")
    wait(61)
    alice.edit("a.txt", "five", "five\nsix")
    bob.end_edit(*begun)
    assert versions(kept, "a.txt") == [("alice", "tool", OTHERS), ("bob", "tool", BOTH)]
    assert conflicts(kept, "a.txt") == []
    with pytest.raises(Refused, match="have not read"):
        bob.write("a.txt", CAROLS)


@pytest.mark.parametrize("is_carols_written_last", [False, True])
@pytest.mark.parametrize("is_carols_reported_last", [False, True])
def test_two_texts_that_are_written_at_once_are_both_kept(
    kept: Workspace,
    repository: Repository,
    carol: ScriptedClient,
    wait: Wait,
    is_carols_written_last: bool,
    is_carols_reported_last: bool,
) -> None:
    bob = ScriptedClient(kept, "bob", repository.folder, client="opencode")
    carol.read("a.txt")
    bob.read("a.txt")
    carols = carol.begin_edit("a.txt", "one", "zero\none")
    wait(61)
    bobs = bob.begin_edit("a.txt", "five", "five\nsix")
    for text in (OTHERS, CAROLS) if is_carols_written_last else (CAROLS, OTHERS):
        repository.write("a.txt", text)
        kept.trees.refresh_all()
    calls = [(carol, carols), (bob, bobs)]
    for client, call in reversed(calls) if is_carols_reported_last else calls:
        report(client, *call)
    lost = OTHERS if is_carols_written_last else CAROLS
    assert conflicts(kept, "a.txt") == [("lines_lost", lost)]
    for row in rows_of(kept, "a.txt"):
        author = "carol" if kept.journal.content(row.seq) == CAROLS else "bob"
        assert author in (row.actor, *candidates_of(row))


def test_an_edit_that_was_made_but_not_reported_is_its_agents_when_the_next_one_begins(
    kept: Workspace, repository: Repository, carol: ScriptedClient
) -> None:
    carol.read("a.txt")
    first = carol.begin_edit("a.txt", "one", "zero\none")
    repository.write("a.txt", CAROLS)
    second = carol.begin_edit("a.txt", "five", "five\nsix")
    report(carol, *first)
    repository.write("a.txt", BOTH)
    report(carol, *second)
    assert versions(kept, "a.txt") == [("carol", "tool", CAROLS), ("carol", "tool", BOTH)]


@pytest.mark.parametrize(
    "steps",
    [
        "begin 1, begin 2, write 1, write 2, report 1, report 2",
        "begin 1, begin 2, write 1, write 2, report 2, report 1",
        "begin 1, begin 2, write 2, write 1, report 1, report 2",
        "begin 1, begin 2, write 1, report 1, write 2, report 2",
        "begin 1, write 1, begin 2, write 2, report 1, report 2",
        "begin 1, write 1, begin 2, write 2, report 2, report 1",
    ],
)
def test_each_edit_of_an_agent_that_makes_several_at_once_is_a_version(
    kept: Workspace, repository: Repository, carol: ScriptedClient, steps: str
) -> None:
    edits = {"1": ("one", "zero\none"), "2": ("five", "five\nsix")}
    begun: dict[str, tuple[str, Mapping[str, Any]]] = {}
    carol.read("a.txt")
    for kind, number in (step.split() for step in steps.split(", ")):
        if kind == "begin":
            begun[number] = carol.begin_edit("a.txt", *edits[number])
        elif kind == "write":
            repository.write("a.txt", repository.read("a.txt").replace(*edits[number]))
        else:
            report(carol, *begun[number])
    rows = rows_of(kept, "a.txt")
    assert [(row.actor, row.tool, grade_of(row)) for row in rows] == [("carol", WRITE_FILE, "tool")] * 2
    assert kept.journal.content(rows[-1].seq) == BOTH
    assert conflicts(kept, "a.txt") == []
    carol.write("a.txt", "all new\n")
    assert repository.read("a.txt") == "all new\n"


def test_an_edit_that_was_made_but_not_reported_is_its_agents_when_another_agent_writes(
    kept: Workspace, repository: Repository, bob: ScriptedClient, carol: ScriptedClient, wait: Wait
) -> None:
    carol.read("a.txt")
    bob.read("a.txt")
    carols = carol.begin_edit("a.txt", "one", "zero\none")
    wait(61)
    repository.write("a.txt", CAROLS)
    bobs = bob.begin_edit("a.txt", "five", "five\nsix")
    report(carol, *carols)
    bob.end_edit(*bobs)
    assert versions(kept, "a.txt") == [("carol", "tool", CAROLS), ("bob", "tool", BOTH)]
    assert conflicts(kept, "a.txt") == []


def test_a_change_between_check_and_write_may_be_by_the_agents_own_command(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.read("a.txt")
    alice.begin_bash("./serve")
    begun = alice.begin_edit("a.txt", "one", "zero\none")
    repository.write("a.txt", OTHERS)
    alice.end_edit(*begun)
    assert versions(kept, "a.txt") == [("alice", "window", OTHERS), ("alice", "tool", BOTH)]


def test_lines_that_an_interrupted_command_removed_are_a_conflict(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.read("b.txt")
    alice.begin_bash("./generate b.txt")
    bob.read("b.txt")
    bob.edit("b.txt", "b", "b\nby bob")
    repository.write("b.txt", "b\nby the command\n")
    alice.stop()
    assert conflicts(kept, "b.txt") == [("lines_lost", "b\nby bob\n")]
    alice.end_bash(*alice.begin_bash("./other"))
    assert any(each.startswith("You removed 1 line of bob in 'b.txt'") for each in alice.told)


def test_interrupted_commands_end_although_git_fails(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.begin_bash("./one")
    alice.begin_bash("./two")
    index = repository.folder / ".git" / "index"
    content = index.read_bytes()
    index.write_bytes(b"no index")
    alice.stop()
    index.write_bytes(content)
    kept.trees.refresh_all()
    repository.write("a.txt", "by hand\n")
    assert versions(kept, "a.txt") == [("outside", "external", "by hand\n")]


@pytest.mark.parametrize("event", ["Stop", "SessionEnd"])
def test_interrupted_commands_end_although_the_row_of_a_write_is_refused(
    kept: Workspace, repository: Repository, alice: ScriptedClient, event: str
) -> None:
    alice.read("a.txt")
    alice.begin_edit("a.txt", "one", "zero\none")
    repository.write("a.txt", CAROLS)
    alice.begin_bash("./other")
    with refusing(repository.root, f"NEW.zone = '{REPO}'"), pytest.raises(JournalError):
        alice.hook(event)
    kept.trees.refresh_all()
    repository.write("b.txt", "by hand\n")
    assert versions(kept, "b.txt") == [("outside", "external", "by hand\n")]
    if event == "Stop":
        alice.stop()
        assert versions(kept, "a.txt") == [("alice", "tool", CAROLS)]
    repository.write("a.txt", "by hand\n")
    assert versions(kept, "a.txt")[-1] == ("outside", "external", "by hand\n")


def test_interrupted_commands_end_although_the_tree_of_a_write_was_removed(
    kept: Workspace, repository: Repository, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    repository.git("worktree", "add", "-q", str(linked))
    alice = ScriptedClient(kept, "alice", linked)
    alice.begin_edit("a.txt", "one", "zero\none")
    alice.begin_bash("./other")
    repository.git("worktree", "remove", str(linked))
    kept.trees.look_after()
    alice.stop()
    repository.write("a.txt", "by hand\n")
    assert versions(kept, "a.txt") == [("outside", "external", "by hand\n")]


def test_an_edit_whose_row_was_refused_is_recorded_by_the_next_call(
    kept: Workspace, repository: Repository, alice: ScriptedClient, wait: Wait
) -> None:
    alice.read("a.txt")
    begun = alice.begin_edit("a.txt", "one", "zero\none")
    with refusing(repository.root, f"NEW.zone = '{REPO}'"), pytest.raises(JournalError):
        alice.end_edit(*begun)
    wait(4)
    alice.read("b.txt")
    assert versions(kept, "a.txt") == [("alice", "tool", CAROLS)]


def test_an_edit_that_was_not_checked_does_not_count_as_a_reading_of_the_rest(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.read("a.txt")
    bob.edit("a.txt", "five", "five\nsix")
    path = str(repository.folder / "a.txt")
    alice.end_edit("unchecked", {"file_path": path, "old_string": "one", "new_string": "zero\none"})
    with pytest.raises(Refused, match="have not read"):
        alice.write("a.txt", CAROLS)
    alice.edit("a.txt", "zero", "0")
    alice.read("a.txt")
    alice.write("a.txt", "all new\n")
    assert repository.read("a.txt") == "all new\n"


def test_an_unchecked_edit_of_a_file_that_only_git_has_keeps_it_free(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    path = str(repository.folder / "a.txt")
    alice.end_edit("unchecked", {"file_path": path, "old_string": "one", "new_string": "zero\none"})
    alice.write("a.txt", "all new\n")
    assert versions(kept, "a.txt") == [("alice", "tool", CAROLS), ("alice", "tool", "all new\n")]


def test_what_a_command_removed_during_the_edit_of_another_agent_is_kept(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    codex = ScriptedClient(kept, "bob", repository.folder, client="codex")
    alice.read("a.txt")
    repository.write("a.txt", OTHERS)
    codex.bash("cat a.txt")
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+TWO\n*** End Patch\n"
    call, given = codex.ask("apply_patch", {"command": patch})
    command = alice.begin_bash("printf 'one\ntwo\nthree\nfour\nFIVE\n' > a.txt")
    repository.write("a.txt", "one\nTWO\nthree\nfour\nFIVE\n")
    codex.report("apply_patch", call, given, "Success.")
    alice.end_bash(*command)
    assert conflicts(kept, "a.txt") == [("lines_lost", "one\nTWO\nthree\nfour\nfive\nsix\n")]
    assert any(each.startswith("You removed") for each in alice.told)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_change_right_after_the_client_read_a_file_is_unread(
    kept: Workspace, repository: Repository, carol: ScriptedClient, ends: str
) -> None:
    repository.write("new.txt", "one\ntwo\n".replace("\n", ends))
    kept.trees.refresh_all()
    path = str(repository.folder / "new.txt")
    call, given = carol.ask("Read", {"file_path": path})
    # Between the versions, the file had another text, which the client has read.
    repository.write("new.txt", "ONE\ntwo\nthree\n".replace("\n", ends))
    file = {"content": "ONE\ntwo\n", "startLine": 1, "numLines": 2, "totalLines": 2}
    carol.report("Read", call, given, {"file": file})
    with pytest.raises(Refused, match="read"):
        carol.write("new.txt", "one\nTWO\n")
    carol.read("new.txt")
    carol.write("new.txt", "one\nTWO\n")


def test_a_file_that_the_client_shows_differently_counts_as_read(
    kept: Workspace, repository: Repository, carol: ScriptedClient
) -> None:
    repository.write("new.txt", f"{'x' * 3000}\ntwo\n")
    call, given = carol.ask("Read", {"file_path": str(repository.folder / "new.txt")})
    kept.trees.refresh_all()
    carol.report("Read", call, given, {"file": {"content": f"{'x' * 2000}…\ntwo\n"}})
    call, given = carol.ask("Read", {"file_path": str(repository.folder / "new.txt")})
    carol.report("Read", call, given, {"file": {"content": f"{'x' * 2000}…\ntwo\n"}})
    carol.write("new.txt", "one\nTWO\n")
    assert repository.read("new.txt") == "one\nTWO\n"


def test_a_formatter_takes_nothing_from_anybody_while_a_command_of_another_agent_runs(
    kept: Workspace, repository: Repository, carol: ScriptedClient, bob: ScriptedClient
) -> None:
    running = bob.begin_bash("npm run dev")
    carol.read("a.txt")
    call, given = carol.begin_edit("a.txt", "one", "x = 'one'")
    repository.write("a.txt", TEXT.replace("one", 'x = "one"'))
    report(carol, call, given)
    bob.end_bash(*running)
    assert conflicts(kept, "a.txt") == []
    assert not any("removed" in each for each in bob.told)


def test_a_line_that_came_between_two_edits_at_once_is_unread(
    kept: Workspace, repository: Repository, carol: ScriptedClient
) -> None:
    carol.read("a.txt")
    first = carol.begin_edit("a.txt", "one", "zero\none")
    second = carol.begin_edit("a.txt", "five", "five\nsix")
    by_hand = TEXT.replace("three", "three\nby hand")
    repository.write("a.txt", by_hand.replace("one", "zero\none"))
    report(carol, *first)
    repository.write("a.txt", by_hand.replace("one", "zero\none").replace("five", "five\nsix"))
    report(carol, *second)
    with pytest.raises(Refused, match="read"):
        carol.write("a.txt", BOTH)
