"""``watchroom fork``: a new workspace from a past moment, complete or not at all, in which nothing runs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from calls import ok
from cli.running import Captured, misuse, printed, printed_json
from damage import lose_blobs
from evidence import all_rows
from memory_journal import MemoryJournal
from people.test_grants import ask, grant, is_approved
from routines.plans import make_plan
from watchroom import Workspace
from watchroom.errors import JournalError
from watchroom.features.overview.presence import with_presences
from watchroom.features.overview.snapshots import read_model
from watchroom.kernel.call_context import CallContext
from watchroom.model import Row, Write

BYTES = b"\x89PNG\r\n\x1a\n\0"


class Team(NamedTuple):
    """A workspace with content of every kind, the row of a moment, a task and its folder. Later rows changed
    all of it."""

    root: str
    at: int
    task: str
    folder: Path


@pytest.fixture
def team(root: Path, workspace: Workspace, tmp_path: Path) -> Team:
    alice, bob = workspace.tools("alice"), workspace.tools("bob")
    folder = tmp_path / "app"
    task = workspace.tasks.submit("human:dana", "Build it.", folder)
    first = workspace.members.start(task).id
    ok(alice, "collab_write", filepath="plan.md", content="one\n", message="m")
    ok(alice, "handoff_file", to_agent="bob", filename="raw.md", content="data", message="for you")
    ok(bob, "realtime_create_document", doc_id="notes", schema={"body": "rga"})
    ok(workspace.tools(first), "write_file", path="src/a.py", content="print(1)\n")
    (folder / "logo.png").write_bytes(BYTES)
    workspace.task_files.record_all()
    workspace.access.create("human:dana", "alice")
    workspace.boards.locks.acquire(CallContext("alice"), "top-layer", seconds=3000.0)
    runs = {"status": "running", "presence": workspace.journal.presence.hold()}
    workspace.journal.append(
        [
            Write("alice", "user", "session", "alice/1", "{}", detail=runs),
            Write("alice", "run_command", "command", f"{task.id}/1", "{}", detail=runs),
        ]
    )
    at = workspace.journal.last_seq()
    ok(bob, "collab_write", filepath="plan.md", content="two\n", message="m", expected_version=1)
    ok(bob, "collab_write", filepath="late.md", content="x\n", message="m")
    ok(workspace.tools(first), "write_file", path="src/a.py", content="print(2)\n")
    workspace.close()
    return Team(str(root), at, task.id, folder)


def rows_of(root: str | Path) -> list[Row]:
    with Workspace.open(root, create=False, scan=False) as workspace:
        return all_rows(workspace.journal)


def test_a_fork_has_the_rows_and_files_of_that_moment_and_is_clean(
    capsys: Captured, team: Team, tmp_path: Path
) -> None:
    before = rows_of(team.root)
    out = tmp_path / "again"
    assert f"row {team.at}" in printed(capsys, "fork", team.root, str(out), "--at", str(team.at))
    assert printed_json(capsys, "verify", str(out), "--json")["clean"]
    forked = rows_of(out)
    copied = [row for row in before if row.seq <= team.at and row.zone != "token"]
    same = [row for row in forked if row.seq <= team.at]
    assert [row for row in same if row.zone != "task"] == [row for row in copied if row.zone != "task"]
    assert [row.seq for row in same] == [row.seq for row in copied]
    assert (out / "collaborative/current/plan.md").read_text() == "one\n"
    assert not (out / "collaborative/current/late.md").exists()
    assert (out / "handoff/alice_to_bob/raw.md").exists()
    assert rows_of(team.root) == before, "the original is as it was"


def test_a_fork_is_independent_of_its_origin(team: Team, tmp_path: Path) -> None:
    out = tmp_path / "again"
    with Workspace.open(team.root, create=False, scan=False) as original:
        Workspace.fork(original.journal, team.at, out)
    with Workspace.open(out, create=False) as fork:
        changed = {"filepath": "plan.md", "content": "other\n", "message": "m", "expected_version": 1}
        assert ok(fork.tools("bob"), "collab_write", **changed)["version"] == 2
        ok(fork.tools("alice"), "check_my_handoffs")
        member = next(each.id for each in fork.members.of_task(team.task))
        ok(fork.tools(member), "write_file", path="src/a.py", content="print(3)\n")
        assert fork.verify() == []
    assert (out.parent / "again-tasks" / team.task / "src/a.py").read_text() == "print(3)\n"
    assert (team.folder / "src/a.py").read_text() == "print(2)\n", "tasks share no folder"
    assert (out.parent / "again-tasks" / team.task / "logo.png").read_bytes() == BYTES


def test_a_fork_has_no_running_work_and_no_logins(team: Team, tmp_path: Path) -> None:
    out = tmp_path / "again"
    lose_blobs(team.root)
    with Workspace.open(team.root, create=False, scan=False) as original:
        Workspace.fork(original.journal, team.at, out)
    with Workspace.open(out, create=False) as fork:
        journal = fork.journal
        model = with_presences(read_model(journal, journal.last_seq()), journal.presence.all)
        alice = model.agent("alice")
        assert alice is not None
        assert alice.is_stopped
        assert [command.exit_code for command in model.commands if command.ended is None] == []
        assert model.leases == {}
        assert list(journal.heads("token")) == []
        gone = journal.head("file", f"{team.task}/logo.png")
        assert gone is not None
        assert gone.deleted, "bytes that are not kept any more are told to be gone"


def test_a_fork_runs_no_routines_and_allows_no_granted_calls(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team", agents=["alice"]) as original:
        grant(original)
        ask(original, "1")
        grant(original, "2", uses=1)
        ask(original, "3")
        plan = make_plan(original, folder=str(tmp_path))
        original.routines.add(CallContext("human:dana"), "nightly", "Do it.", plan)
        Workspace.fork(original.journal, original.journal.last_seq(), tmp_path / "again")
        assert is_approved(original, ask(original, "4"))
    with Workspace.open(tmp_path / "again", create=False) as fork:
        assert fork.routines.list() == []
        assert fork.grants.list_active() == []
        assert not is_approved(fork, ask(fork, "4"))
        asked = fork.journal.version("request", "alice/s1/1", 1)
        assert asked is not None
        assert is_approved(fork, asked)
        needs = read_model(fork.journal, fork.journal.last_seq()).needs
        assert {need.kind for need in needs} == {"request"}
        assert fork.verify() == []


class _Failing(MemoryJournal):
    def content(self, seq: int) -> str | None:
        if seq > 2:
            raise JournalError(reason="the disk is gone")
        return super().content(seq)


def test_an_incomplete_fork_is_removed(tmp_path: Path) -> None:
    journal = _Failing()
    journal.append([Write("alice", "collab_write", "collab", f"{n}.md", "x") for n in range(5)])
    above = tmp_path / "above"
    with pytest.raises(JournalError):
        Workspace.fork(journal, 5, above / "out")
    assert list(above.iterdir()) == []


@pytest.mark.parametrize("taken", ["again", "again-tasks"])
def test_a_fork_never_replaces_an_existing_path(
    capsys: Captured, team: Team, tmp_path: Path, taken: str
) -> None:
    (tmp_path / taken).mkdir()
    assert "already exists" in misuse(capsys, "fork", team.root, str(tmp_path / "again"))
    assert list((tmp_path / taken).iterdir()) == []
    assert not (tmp_path / "again" / ".watchroom").exists()
