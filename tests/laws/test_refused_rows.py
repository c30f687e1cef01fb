"""When the journal refuses a row, nothing goes on as if it were there, and nothing that has a row is reported as
refused."""

from __future__ import annotations

import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from calls import ok, refused
from damage import break_content
from journal.disk import failing_disk
from refusing import refusing, refusing_for_good
from tasking import on_disk, without_privileges
from trees.git_repo import git, make_repository
from watchroom import Agent, Toolbox, Workspace
from watchroom.errors import FileUnrecorded, JournalError, PausedOnly
from watchroom.features.handoffs.rows import HAND_OVER
from watchroom.features.tasks.files import OUTSIDERS
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.file_content import restored_if_refused
from watchroom.kernel.commit import GroupCommit
from watchroom.model import ASK, BUDGET_REACHED, MAX_TEXT_BYTES, PAUSE, STOP_AGENTS, WITHDRAW, Write
from watchroom.platform.disk import Folder

pytestmark = pytest.mark.sqlite
PATIENCE = 20.0


def test_an_entry_is_not_reported_as_refused_because_the_lock_stays(root: Path, alice: Toolbox) -> None:
    board = "bottom-layer-alice"
    ok(alice, "whiteboard_read", board=board, hold=True)
    with refusing(root, "NEW.tool = 'release_board'"):
        ok(alice, "whiteboard_append", board=board, content="Once.")
    assert ok(alice, "whiteboard_append", board=board, content="Later.")["version"] == 2
    assert ok(alice, "whiteboard_read", board=board)["content"].count("Once.") == 1


def write_twice(alice: Toolbox, bob: Toolbox) -> None:
    """Write two versions. Only the first one is read by ``bob``."""
    given = {"filepath": "a.md", "message": "m"}
    ok(alice, "collab_write", content="one", expected_version=0, **given)
    ok(bob, "collab_read", filepath="a.md")
    ok(alice, "collab_write", content="two", **given)


def test_a_read_that_could_not_be_recorded_is_recorded_later(
    workspace: Workspace, root: Path, alice: Toolbox, bob: Toolbox
) -> None:
    write_twice(alice, bob)
    with refusing(root, "NEW.tool = 'collab_read'"):
        assert ok(bob, "collab_read", filepath="a.md")["version"] == 2
        with pytest.raises(JournalError):
            workspace.flush()
        # Commits of others go on, and the read is tried again with each.
        ok(alice, "collab_write", filepath="b.md", content="x", message="m")
    assert ok(bob, "collab_write", filepath="a.md", content="three", message="m")["version"] == 3


def test_reads_on_a_full_disk_are_recorded_once_there_is_space(
    workspace: Workspace, root: Path, alice: Toolbox, bob: Toolbox
) -> None:
    write_twice(alice, bob)
    full = max(each.stat().st_size for each in (root / ".watchroom").iterdir() if each.is_file())
    with failing_disk(full // 2):
        for _ in range(20):
            assert ok(bob, "collab_read", filepath="a.md")["version"] == 2
        failed = refused(bob, "collab_write", filepath="a.md", content="three", message="m")
        assert failed["error"] == "journal_failed"
    assert ok(bob, "collab_write", filepath="a.md", content="three", message="m")["version"] == 3
    assert len([row for row in workspace.journal.rows(limit=1000) if row.tool == "collab_read"]) == 21


def test_the_oldest_reads_are_dropped_if_too_many_wait(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("watchroom.kernel.commit._MAX_NOTES", 3)
    commits = GroupCommit(workspace.journal, workspace.background)
    with refusing(root, "NEW.tool = 'collab_read'"):
        for number in range(5):
            commits.note(CallContext("alice", "collab_read").note("collab", "a.md", message=str(number)))
        with pytest.raises(JournalError):
            commits.flush()
    commits.flush()
    kept = [row.message for row in workspace.journal.rows(limit=1000) if row.tool == "collab_read"]
    assert kept == ["2", "3", "4"]
    assert "2 notes are lost" in caplog.text


def test_a_read_that_breaks_a_rule_of_the_journal_is_not_tried_for_ever(
    workspace: Workspace, root: Path, alice: Toolbox, bob: Toolbox, caplog: pytest.LogCaptureFixture
) -> None:
    ok(alice, "collab_write", filepath="a.md", content="one", message="m")
    with refusing_for_good(root, "NEW.tool = 'collab_read' AND NEW.actor = 'alice'"):
        for reader in (alice, bob):
            ok(reader, "collab_read", filepath="a.md")
        workspace.flush()
    workspace.flush()
    readers = [row.actor for row in workspace.journal.rows(limit=1000) if row.tool == "collab_read"]
    assert readers == ["bob"]
    assert "1 notes are lost" in caplog.text


def test_a_looping_agent_is_paused_once_the_journal_accepts_the_pause(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    workspace.background.start()
    with refusing(root, f"NEW.tool = '{PAUSE}'"):
        for _ in range(8):
            refused(alice, "collab_read", filepath="missing.md")
        time.sleep(0.3)
    deadline = time.monotonic() + PATIENCE
    while not workspace.journal.notes("agent", "alice", "system", PAUSE):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_plan_and_the_notices_about_it_are_one_commit(
    workspace: Workspace, root: Path, alice: Toolbox, bob: Toolbox
) -> None:
    ok(alice, "declare_plan", paths=["src/a.py"], intent="fix a")
    with refusing(root, "NEW.tool = 'send_message' AND NEW.path = 'alice'"):
        assert refused(bob, "declare_plan", paths=["src/*"], intent="all")["error"] == "journal_failed"
    assert [each["agent"] for each in ok(alice, "list_plans")["plans"]] == ["alice"]
    ok(bob, "declare_plan", paths=["src/*"], intent="all")
    assert len(workspace.messages.find_waiting("alice")) == 1


@pytest.fixture
def folder(workspace: Workspace, tmp_path: Path) -> Path:
    """The folder of the task of alice."""
    task = workspace.tasks.submit("human:dana", "Build something.", tmp_path / "task")
    workspace.register([Agent("alice", task=task.id)])
    return tmp_path / "task"


def test_a_task_file_is_as_before_after_a_refused_write(
    workspace: Workspace, root: Path, alice: Toolbox, folder: Path
) -> None:
    ok(alice, "write_file", path="a.txt", content="kept")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    with refusing(root, "NEW.tool = 'write_file' AND NEW.outcome = 'ok'"):
        for path in ("a.txt", "new/b.txt", "run.sh"):
            assert refused(alice, "write_file", path=path, content="lost")["error"] == "journal_failed"
    assert on_disk(folder) == {"a.txt": b"kept", "run.sh": b"#!/bin/sh\n"}
    assert (folder / "run.sh").stat().st_mode & 0o111
    workspace.scan()
    assert [row.path for row in workspace.journal.rows(limit=1000) if row.version and row.zone == "file"] == [
        f"{workspace.config.agents['alice'].task}/a.txt",
        f"{workspace.config.agents['alice'].task}/run.sh",
    ]


def test_a_large_task_file_is_as_before_after_a_refused_write(
    root: Path, alice: Toolbox, folder: Path
) -> None:
    large = b"x" * (MAX_TEXT_BYTES + 1)
    (folder / "large").write_bytes(large)
    with refusing(root, "NEW.tool = 'write_file' AND NEW.outcome = 'ok'"):
        assert refused(alice, "write_file", path="large", content="lost")["error"] == "journal_failed"
    assert (folder / "large").read_bytes() == large


def test_a_task_file_is_as_before_although_there_is_no_space_for_its_old_text(
    root: Path, alice: Toolbox, folder: Path
) -> None:
    kept = "x" * 100_000
    ok(alice, "write_file", path="a.txt", content=kept)
    with failing_disk(20_000):
        assert refused(alice, "write_file", path="a.txt", content="lost")["error"] == "journal_failed"
    assert (folder / "a.txt").read_text() == kept


def test_a_file_that_cannot_be_restored_is_reported_as_written(
    workspace: Workspace, alice: Toolbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Then the old file itself cannot be kept.
    monkeypatch.setattr("watchroom.platform.linux.LinuxPlatform.exchange", lambda *_: False)
    ok(alice, "write_file", path="a.txt", content="x" * 100_000)
    with failing_disk(20_000):
        result = refused(alice, "write_file", path="a.txt", content="new")
    assert result["error"] == "file_unrecorded"
    assert (folder / "a.txt").read_text() == "new"
    (edit,) = workspace.task_files.record_all()
    assert (edit.actor, workspace.journal.content(edit.seq)) == ("outside", "new")


def test_files_whose_import_was_refused_can_be_imported_again(
    workspace: Workspace, root: Path, folder: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    make_repository(source)
    for name in ("a.txt", "sub/b.txt"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(name)
    git(source, "add", "--all")
    git(source, "commit", "--quiet", "-m", "m")
    task = workspace.config.agents["alice"].task
    with refusing(root, "NEW.tool = 'import_git'"), pytest.raises(JournalError):
        workspace.import_git(str(source), "human:dana", task=task)
    assert on_disk(folder) == {}
    assert workspace.import_git(str(source), "human:dana", task=task).versions == 2
    assert on_disk(folder) == {"a.txt": b"a.txt", "sub/b.txt": b"sub/b.txt"}


def test_an_ignored_task_file_is_as_before_after_a_refused_write(
    root: Path, alice: Toolbox, folder: Path
) -> None:
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "a.log").write_text("kept")
    ok(alice, "read_file", path="a.log")
    with refusing(root, "NEW.tool = 'write_file' AND NEW.outcome = 'ok'"):
        for path in ("a.log", "b.log"):
            assert refused(alice, "write_file", path=path, content="lost")["error"] == "journal_failed"
    assert (folder / "a.log").read_text() == "kept"
    assert not (folder / "b.log").exists()


def test_a_revert_that_has_begun_is_not_reported_as_refused(
    workspace: Workspace, root: Path, alice: Toolbox, folder: Path
) -> None:
    ok(alice, "write_file", path="a.txt", content="one")
    dana = workspace.tools_for_human("dana")
    for refusal in ("NEW.zone = 'revert'", "NEW.zone = 'file'"):
        with refusing(root, refusal):
            assert refused(dana, "revert_work", agents=["alice"])["error"] == "journal_failed"
        assert on_disk(folder) == {"a.txt": b"one"}
    with refusing(root, "NEW.zone = 'revert' AND NEW.version = 2"):
        result = refused(dana, "revert_work", agents=["alice"], revert_id="r1")
        assert result["error"] == "revert_unfinished"
        assert "r1" in result["message"]
        assert "disk is full" in result["message"]
        workspace.flush()
    workspace.flush()
    assert workspace.journal.version("revert", "r1", 2) is not None
    assert on_disk(folder) == {}


def test_a_refused_revert_is_reported_with_the_agents_that_it_paused(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    workspace.session_zone.begin("alice", "s1", "{}", "", {"status": "idle"})
    ok(alice, "collab_write", filepath="a.md", content="one", message="m")
    dana = workspace.tools_for_human("dana")
    with refusing(root, "NEW.zone = 'revert'"):
        result = refused(dana, "revert_work", agents=["alice"])
    assert result["error"] == "paused_only"
    assert "paused: alice." in result["message"]
    assert workspace.stops.is_paused("alice")
    assert ok(alice, "collab_read", filepath="a.md")["content"] == "one"


def test_a_revert_whose_files_cannot_be_written_is_finished_later(
    workspace: Workspace, alice: Toolbox, folder: Path
) -> None:
    ok(alice, "write_file", path="sub/a.txt", content="one")
    dana = workspace.tools_for_human("dana")
    (folder / "sub").chmod(0o500)
    with without_privileges():
        result = refused(dana, "revert_work", agents=["alice"], revert_id="r1")
    assert result["error"] == "revert_unfinished"
    # A scan does not mistake the file for an edit that was made since.
    workspace.scan()
    (folder / "sub").chmod(0o700)
    workspace.flush()
    assert workspace.journal.version("revert", "r1", 2) is not None
    assert on_disk(folder) == {}


@pytest.fixture
def sandboxed(workspace: Workspace) -> None:
    if workspace.commands.sandbox.best is None:
        pytest.skip("no sandbox works here, so no command runs: bubblewrap is to be installed")


def open_commands(workspace: Workspace) -> list[str]:
    return [head.path for head in workspace.journal.heads("command") if head.version == 1]


def test_the_result_of_a_command_is_reported_although_its_last_row_comes_later(
    workspace: Workspace, root: Path, alice: Toolbox, folder: Path, sandboxed: None
) -> None:
    with refusing(root, "NEW.tool = 'end_command'"):
        assert ok(alice, "run_command", command="echo done; touch made")["stdout"] == "done\n"
        assert len(open_commands(workspace)) == 1
        workspace.flush()
        assert len(open_commands(workspace)) == 1
    workspace.flush()
    assert open_commands(workspace) == []
    assert (folder / "made").exists()


def test_a_last_row_that_breaks_a_rule_is_written_without_the_output(
    workspace: Workspace, root: Path, alice: Toolbox, folder: Path, sandboxed: None
) -> None:
    with refusing_for_good(root, "NEW.tool = 'end_command' AND NEW.content LIKE '%loud%'"):
        assert ok(alice, "run_command", command="echo loud; touch made")["stdout"] == "loud\n"
        assert open_commands(workspace) == []
    (head,) = workspace.journal.heads("command")
    outcome = workspace.commands.outcome(workspace.journal.rows_before(head.seq + 1)[0])
    assert (outcome.result.exit_code, outcome.result.stdout, outcome.result.truncated) == (0, "", True)
    assert (head.detail["exit_code"], head.detail["unrecorded"]) == (0, "draft_refused")


def test_a_last_row_that_is_refused_for_good_does_not_hold_up_the_others(
    workspace: Workspace,
    root: Path,
    alice: Toolbox,
    folder: Path,
    sandboxed: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with refusing(root, "NEW.tool = 'end_command'"):
        for number in (1, 2, 3):
            ok(alice, "run_command", command=f"echo {number}")
    first, second, _ = (
        head.path for head in sorted(workspace.journal.heads("command"), key=lambda row: row.seq)
    )
    with (
        refusing(root, f"NEW.tool = 'end_command' AND NEW.path = '{first}'"),
        refusing_for_good(root, f"NEW.tool = 'end_command' AND NEW.path = '{second}'"),
    ):
        workspace.flush()
        assert open_commands(workspace) == sorted([first, second])
        assert f"{second} is dropped" in caplog.text
    workspace.flush()
    assert open_commands(workspace) == [second]


def test_the_repositories_that_were_moved_away_are_reported_without_their_row(
    root: Path, alice: Toolbox, folder: Path, sandboxed: None
) -> None:
    command = "mkdir -p sub/.git/objects sub/.git/refs; echo 'ref: refs/heads/main' > sub/.git/HEAD"
    with refusing(root, "NEW.error = 'repository_refused' AND NEW.zone = 'file'"):
        result = refused(alice, "run_command", command=command)
    assert (result["error"], result["quarantined"]) == ("repository_refused", ["sub/.git"])


def test_a_command_that_ran_is_reported_without_the_row_of_its_error(
    workspace: Workspace, root: Path, alice: Toolbox, folder: Path, sandboxed: None
) -> None:
    config = root / ".watchroom/config.toml"
    config.write_text(f"max_task_files = 2\n{config.read_text()}")
    workspace.scan()
    with refusing(root, "NEW.error = 'task_quota_exceeded'"):
        result = refused(alice, "run_command", command="echo done; touch a b c d")
    assert (result["error"], result["stdout"]) == ("task_quota_exceeded", "done\n")


def test_an_interrupted_command_is_ended_once_the_journal_accepts_its_end(
    workspace: Workspace, root: Path, alice: Toolbox, folder: Path, sandboxed: None
) -> None:
    task = workspace.config.agents["alice"].task
    path = f"{task}/0123456789ab"
    workspace.journal.append(
        [Write("alice", "run_command", "command", path, "x", detail={"presence": "gone"})]
    )
    with refusing(root, "NEW.tool = 'end_command'"):
        assert refused(alice, "run_command", command="true")["error"] == "journal_failed"
    ok(alice, "run_command", command="true")
    assert open_commands(workspace) == []


def test_an_unreadable_folder_is_recorded_once_the_journal_accepts_that(
    workspace: Workspace, root: Path, folder: Path
) -> None:
    task = workspace.config.agents["alice"].task
    (folder / "closed").mkdir(mode=0o000)
    with without_privileges():
        with refusing(root, "NEW.error = 'permission_denied'"), pytest.raises(JournalError):
            workspace.task_files.record_task_changes(task, OUTSIDERS)
        (row,) = workspace.task_files.record_task_changes(task, OUTSIDERS).rows
        assert (row.path, row.error) == (f"{task}/closed", "permission_denied")
        assert workspace.task_files.record_task_changes(task, OUTSIDERS).rows == []


def test_a_refused_warning_of_a_budget_leaves_no_request_that_nobody_waits_for(
    workspace: Workspace, root: Path
) -> None:
    workspace.budgets.set_budget(CallContext("human:dana"), "agent", "alice", "steps", 1)
    step = Write("alice", "step", "session", "alice/s1", "{}", detail={"status": "idle", "step": 1})
    workspace.journal.append([step])
    with refusing(root, f"NEW.tool = '{BUDGET_REACHED}'"), pytest.raises(JournalError):
        workspace.budgets.hold_call("alice")
    workspace.budgets.hold_call("alice")
    asked = [row for row in workspace.journal.rows(limit=1000) if row.tool == ASK]
    assert len([row for row in asked if workspace.requests.find_end(row.path) is None]) == 1


def test_a_changed_budget_lets_the_held_calls_go_on_although_the_first_try_was_refused(
    workspace: Workspace, root: Path
) -> None:
    dana = CallContext("human:dana")
    workspace.budgets.set_budget(dana, "agent", "alice", "steps", 1)
    step = Write("alice", "step", "session", "alice/s1", "{}", detail={"status": "idle", "step": 1})
    workspace.journal.append([step])
    workspace.budgets.hold_call("alice")
    key = "agent alice steps"
    assert workspace.budgets.find_open_request(key) is not None
    with refusing(root, f"NEW.tool = '{WITHDRAW}'"), pytest.raises(JournalError):
        workspace.budgets.set_budget(dana, "agent", "alice", "steps", 9)
    workspace.budgets.set_budget(dana, "agent", "alice", "steps", 9)
    assert workspace.budgets.find_open_request(key) is None


def test_agents_of_a_refused_stop_are_released_with_the_others(workspace: Workspace, root: Path) -> None:
    dana = CallContext("human:dana")
    for agent in ("alice", "bob", "charlie"):
        workspace.session_zone.begin(agent, "s1", "{}", "", {"status": "idle"})
    workspace.session_zone.control(CallContext("human:dana", PAUSE), "charlie", None, "")
    for refusal, paused in (
        (f"NEW.tool = '{STOP_AGENTS}'", "alice, bob, charlie"),
        (f"NEW.tool = '{PAUSE}' AND NEW.path = 'bob'", "alice"),
    ):
        with refusing(root, refusal), pytest.raises(PausedOnly) as error:
            workspace.stops.stop(dana, ["alice", "bob", "charlie"])
        assert f"paused: {paused}." in error.value.message()
    with refusing(root, f"NEW.tool = '{PAUSE}'"), pytest.raises(JournalError) as refused_all:
        workspace.stops.stop(dana, ["alice", "bob", "charlie"])
    assert refused_all.value.code == "journal_failed"
    workspace.stops.stop(dana, ["alice", "bob", "charlie"])
    assert [*workspace.stops.stopped()] == ["alice", "bob"]


def test_a_briefing_is_not_delivered_if_the_hand_over_is_refused(
    workspace: Workspace, root: Path, bob: Toolbox
) -> None:
    dana = workspace.tools_for_human("dana")
    given = {"agent_id": "alice", "to_agent": "bob", "briefing": "Go on."}
    with refusing(root, f"NEW.tool = '{HAND_OVER}' AND NEW.outcome = 'ok' AND NEW.zone = 'agent'"):
        assert refused(dana, HAND_OVER, **given)["error"] == "journal_failed"
    assert ok(bob, "check_my_handoffs")["count"] == 0
    ok(dana, HAND_OVER, **given)
    assert ok(bob, "check_my_handoffs")["count"] == 1


def test_a_handoff_whose_text_is_damaged_was_not_read(root: Path, alice: Toolbox, bob: Toolbox) -> None:
    ok(alice, "handoff_file", to_agent="bob", filename="a.md", content="text", message="m")
    break_content(root, "alice_to_bob/a.md", 1, b"\xff", zone="handoff")
    assert refused(bob, "read_handoff", from_agent="alice", filename="a.md")["error"] == "journal_damaged"
    assert [each["read"] for each in ok(bob, "check_my_handoffs")["handoffs"]] == [False]


def test_changes_of_a_command_that_could_not_be_recorded_are_still_its_agents(
    workspace: Workspace, root: Path, alice: Toolbox, folder: Path, sandboxed: None
) -> None:
    ok(alice, "write_file", path="a.txt", content="first")
    with refusing(root, "NEW.zone = 'file' AND NEW.version IS NOT NULL"):
        assert "changed" not in ok(alice, "run_command", command="touch made")
    (folder / "theirs").touch()
    assert sorted((row.actor, row.path.partition("/")[2]) for row in workspace.task_files.record_all()) == [
        ("alice", "made"),
        ("outside", "theirs"),
    ]


def test_an_agent_without_a_folder_was_spawned_all_the_same(
    workspace: Workspace, root: Path, alice: Toolbox, folder: Path
) -> None:
    (root / "agents/helper").write_text("in the way")
    given = {"role": "helper", "instructions": "Help."}
    assert ok(alice, "spawn_agent", **given)["agent_id"] == "helper"


def test_a_read_that_was_refused_shows_nothing(alice: Toolbox, bob: Toolbox) -> None:
    ok(alice, "realtime_create_document", doc_id="d", schema={"tags": "or_set"})
    ok(bob, "realtime_edit_set", doc_id="d", field_name="tags", operation="list")
    ok(alice, "realtime_edit_set", doc_id="d", field_name="tags", operation="add", element="x")
    wrong = {"doc_id": "d", "field_name": "tags", "operation": "value"}
    assert refused(bob, "realtime_edit_counter", **wrong)["error"] == "wrong_field_type"
    ok(bob, "realtime_edit_set", doc_id="d", field_name="tags", operation="remove", element="x")
    assert ok(alice, "realtime_edit_set", doc_id="d", field_name="tags", operation="list")["elements"] == [
        "x"
    ]


def test_a_flush_is_reported_although_the_row_of_its_buffer_is_refused(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="one\n", message="m")
    ok(alice, "open_buffer", source="collab", path="plan.md")
    ok(alice, "plan_append", text="two\n")
    with refusing(root, "NEW.zone = 'buffer'"):
        assert refused(alice, "plan_append", text="lost\n")["error"] == "journal_failed"
        ok(alice, "plan_flush")
    assert ok(alice, "collab_read", filepath="plan.md")["content"] == "one\ntwo\n"
    ok(alice, "plan_append", text="three\n")
    ok(alice, "plan_flush")
    assert ok(alice, "collab_read", filepath="plan.md")["content"] == "one\ntwo\nthree\n"


def test_an_answer_that_raises_a_budget_counts_although_the_settings_are_refused(
    workspace: Workspace, root: Path
) -> None:
    workspace.budgets.set_budget(CallContext("human:dana"), "agent", "alice", "steps", 1)
    step = Write("alice", "step", "session", "alice/s1", "{}", detail={"status": "idle", "step": 1})
    workspace.journal.append([step])
    workspace.budgets.hold_call("alice")
    (asked,) = [row.seq for row in workspace.journal.rows(limit=1000) if row.tool == ASK]
    dana = workspace.tools_for_human("dana")
    with refusing(root, "NEW.zone = 'config'"):
        answered = ok(dana, "answer_request", request=asked, values=["raise"])
    assert answered["outcome"] == "chosen"
    assert workspace.budgets.hold_call("alice") is None
    # A budget that is raised once more is written.
    workspace.budgets.set_budget(CallContext("human:dana"), "agent", "alice", "steps", 9)
    assert workspace.budgets.hold_call("alice") is None


def test_an_external_edit_stays_if_the_decision_to_revert_it_is_refused(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="one\n", message="m")
    place = root / "collaborative/current/plan.md"
    place.write_text("edited\n")
    (edit,) = workspace.scan()
    dana = workspace.tools_for_human("dana")
    given = {"filepath": "plan.md", "conflict": edit.seq, "message": "no"}
    with refusing(root, "NEW.tool = 'revert_outside_edit'"):
        assert refused(dana, "revert_outside_edit", **given)["error"] == "journal_failed"
    assert place.read_text() == "edited\n"
    assert workspace.scan() == []
    ok(dana, "revert_outside_edit", **given)
    assert place.read_text() == "one\n"


def test_an_external_edit_that_a_killed_revert_left_is_a_conflict_again(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="one\n", message="m")
    (root / "collaborative/current/plan.md").write_text("edited\n")
    (edit,) = workspace.scan()
    note = CallContext("human:dana", "revert_outside_edit").note(
        "collab", "plan.md", base=1, detail={"conflict": edit.seq}
    )
    workspace.journal.append([note])
    (again,) = workspace.scan()
    assert (again.outcome, again.error) == ("conflict", "outside_edit")


def test_a_decision_whose_file_cannot_be_written_is_reported_as_recorded(
    workspace: Workspace, root: Path, alice: Toolbox
) -> None:
    ok(alice, "collab_write", filepath="sub/plan.md", content="one\n", message="m")
    place = root / "collaborative/current/sub/plan.md"
    place.write_text("edited\n")
    (edit,) = workspace.scan()
    place.parent.chmod(0o500)
    dana = workspace.tools_for_human("dana")
    given = {"filepath": "sub/plan.md", "conflict": edit.seq, "message": "no"}
    with without_privileges():
        assert refused(dana, "revert_outside_edit", **given)["error"] == "file_not_replaced"
    place.parent.chmod(0o700)
    assert place.read_text() == "edited\n"
    (again,) = workspace.scan()
    ok(dana, "revert_outside_edit", **{**given, "conflict": again.seq})
    assert place.read_text() == "one\n"


def test_a_file_is_not_restored_over_a_newer_edit(tmp_path: Path) -> None:
    with closing(Folder(str(tmp_path / "work"), str(tmp_path / "scratch"))) as folder:
        folder.write(("a.txt",), b"before")
        before = folder.inspect(("a.txt",), MAX_TEXT_BYTES)
        folder.write(("a.txt",), b"refused")

        def edit_and_refuse() -> None:
            with restored_if_refused(folder, ("a.txt",), before):
                (tmp_path / "work/a.txt").write_text("by hand, and longer")
                raise JournalError(reason="the disk is full")

        with pytest.raises(FileUnrecorded):
            edit_and_refuse()
        assert (tmp_path / "work/a.txt").read_text() == "by hand, and longer"
