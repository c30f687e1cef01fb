"""The journal's files are removed or replaced beside a running process, as git does: no acknowledged row is lost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest
from calls import ok
from watchroom import Json, Toolbox, Workspace
from watchroom.errors import JournalReplaced
from watchroom.kernel.journal import SqliteJournal
from watchroom.model import Note

AGENTS = ["alice", "bob"]
OTHER = """
import sys
from watchroom import Workspace
with Workspace.open(sys.argv[1], create=False, scan=False) as workspace:
    for path in sys.argv[2:]:
        written = {"filepath": path, "content": path, "message": "m", "expected_version": 0}
        assert workspace.tools("bob").dispatch_tool_call("collab_write", written)["success"]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "project/team"


@pytest.fixture
def control(root: Path) -> Path:
    return root / ".watchroom"


@pytest.fixture
def alice(root: Path) -> Iterator[Toolbox]:
    with Workspace.open(root, AGENTS) as workspace:
        yield workspace.tools("alice")


def write(toolbox: Toolbox, *paths: str) -> None:
    for path in paths:
        ok(toolbox, "collab_write", filepath=path, content=path, message="m", expected_version=0)


def write_elsewhere(root: Path, *paths: str) -> None:
    """Write as bob, in a process that ends afterwards."""
    subprocess.run([sys.executable, "-c", OTHER, str(root), *paths], check=True, timeout=60)


FILES = """
import json, sys
from contextlib import closing
from watchroom.kernel.journal import SqliteJournal
with closing(SqliteJournal(sys.argv[1])) as journal:
    assert journal.problems() == []
    print(json.dumps([head.path for head in journal.heads("collab")]))
"""


def files(root: Path, name: str = "journal.db") -> set[str]:
    """The shared files as another process finds them in the journal."""
    command = [sys.executable, "-c", FILES, str(root / ".watchroom" / name)]
    return set(json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout))


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=n@example.org", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def remove_log(control: Path) -> None:
    (control / "journal.db-wal").unlink()
    (control / "journal.db-shm").unlink()


def remove_journal(control: Path) -> None:
    for each in control.glob("journal.*"):
        each.unlink()


def remove_contents(control: Path) -> None:
    """As ``git clean -x`` does where something keeps the folder itself."""
    shutil.rmtree(control)
    control.mkdir()


def remove_lock(control: Path) -> None:
    (control / "journal.lock").unlink()
    (control / "lock").unlink()


Removal = Callable[[Path], None]
REMOVALS = [remove_log, remove_journal, remove_contents, remove_lock]


@pytest.mark.parametrize("remove", REMOVALS)
def test_removed_files_are_put_back_with_all_rows(
    root: Path, control: Path, alice: Toolbox, remove: Removal
) -> None:
    write(alice, "1", "2")
    remove(control)
    write(alice, "3")
    write_elsewhere(root, "b1", "b2")
    write(alice, "4")
    assert files(root) == {"1", "2", "3", "4", "b1", "b2"}
    assert alice.dispatch_tool_call("collab_read", {"filepath": "b1"})["content"] == "b1"
    assert (root / "collaborative/current/4").read_text() == "4"


@pytest.mark.parametrize("remove", [remove_log, remove_journal])
def test_a_process_that_only_reads_puts_them_back_before_anybody_else_writes(
    root: Path, control: Path, alice: Toolbox, remove: Removal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchroom.kernel.journal.sqlite.writer._CHECK_SECONDS", 0)
    write(alice, "1", "2")
    remove(control)
    ok(alice, "collab_list")
    write_elsewhere(root, "b1")
    assert files(root) == {"1", "2", "b1"}
    assert {each["filepath"] for each in ok(alice, "collab_list")["files"]} == {"1", "2", "b1"}


def test_several_processes_that_have_them_open_go_on_together(root: Path, control: Path) -> None:
    with Workspace.open(root, AGENTS) as one, Workspace.open(root) as other:
        write(one.tools("alice"), "1")
        write(other.tools("bob"), "2")
        remove_journal(control)
        for number in range(3, 9, 2):
            write(one.tools("alice"), str(number))
            write(other.tools("bob"), str(number + 1))
        assert one.journal.last_seq() == other.journal.last_seq()
    assert files(root) == {str(number) for number in range(1, 9)}


def test_rows_of_another_process_stay_that_wrote_after_the_log_was_removed(
    root: Path, control: Path, alice: Toolbox
) -> None:
    write(alice, "1")
    # All rows so far are in the database itself.
    with closing(SqliteJournal(control / "journal.db")) as journal:
        journal._writer._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    remove_log(control)
    write_elsewhere(root, "b1")
    write(alice, "2")
    assert files(root) == {"1", "2", "b1"}


def test_a_process_whose_folder_was_emptied_is_still_seen_alive_and_hears_of_rows(
    root: Path, control: Path
) -> None:
    with Workspace.open(root, AGENTS) as workspace:
        lease = workspace.journal.presence.hold("watchroom resume team")
        changes = workspace.journal.changes()
        remove_contents(control)
        write(workspace.tools("alice"), "1")
        began = monotonic()
        changes.wait(20)
        write(workspace.tools("alice"), "2")
        changes.wait(20)
        assert monotonic() - began < 20
        changes.close()
        with closing(SqliteJournal(control / "journal.db")) as other:
            (found,) = other.presence.all()
        assert (found.id, found.is_alive, found.resume) == (lease, True, "watchroom resume team")
    assert not [*(control / "presence").iterdir()]


def test_two_journals_with_rows_of_their_own_are_both_kept(root: Path, control: Path) -> None:
    with Workspace.open(root, AGENTS) as workspace:
        alice = workspace.tools("alice")
        write(alice, "1", "2")
        # Background work that reads would put the journal back before bob writes.
        workspace.flush()
        remove_log(control)
        write_elsewhere(root, "b1")
        written: dict[str, Json] = {"filepath": "3", "content": "3", "message": "m", "expected_version": 0}
        refused = alice.dispatch_tool_call("collab_write", written)
        if refused["success"]:
            # On a slow machine the index of searches has read meanwhile: there is one journal with all rows.
            assert files(root) == {"1", "2", "3", "b1"}
            return
        assert refused["error"] == "journal_replaced"
        assert "journal.db-wal" in str(refused["message"])
        (kept,) = control.glob("journal.db.kept-*")
        assert str(kept) in str(refused["suggestion"])
        # It is refused again, and makes no other copy.
        assert alice.dispatch_tool_call("collab_write", written)["error"] == "journal_replaced"
        with pytest.raises(JournalReplaced):
            workspace.journal.append([Note("alice", "look", "collab", "1")])
        assert [*control.glob("journal.db.kept-*")] == [kept]
    assert files(root) == {"b1"}
    assert files(root, kept.name) == {"1", "2"}


@pytest.mark.parametrize("writes_after", [False, True])
def test_what_git_replaces_by_an_earlier_journal_is_put_back(
    root: Path, control: Path, writes_after: bool
) -> None:
    project = root.parent
    with Workspace.open(root, AGENTS) as workspace:
        write(workspace.tools("alice"), "1")
    # As workspaces of earlier versions were committed.
    (control / ".gitignore").unlink()
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "all")
    with Workspace.open(root) as workspace:
        write(workspace.tools("alice"), "2", "3")
        git(project, "stash", "-u")
        if writes_after:
            write(workspace.tools("alice"), "4")
    assert files(root) >= {"1", "2", "3", *(("4",) if writes_after else ())}


def test_a_workspace_that_is_gone_refuses_and_keeps_the_rows_elsewhere(root: Path) -> None:
    with Workspace.open(root, AGENTS) as workspace:
        write(workspace.tools("alice"), "1")
        shutil.rmtree(root)
        with pytest.raises(JournalReplaced) as caught:
            workspace.journal.append([Note("alice", "look", "collab", "1")])
        kept = Path(str(caught.value.values["kept"]))
    assert not root.exists()
    with closing(SqliteJournal(kept)) as journal:
        assert {head.path for head in journal.heads("collab")} == {"1"}


def test_git_neither_commits_nor_cleans_the_control_folder(root: Path, control: Path) -> None:
    project = root.parent
    project.mkdir()
    git(project, "init", "-q")
    with Workspace.open(root, AGENTS) as workspace:
        write(workspace.tools("alice"), "1")
        before = {each.name for each in control.iterdir()}
        git(project, "add", "-A")
        assert git(project, "ls-files", "team/.watchroom") == ""
        git(project, "commit", "-qm", "all")
        git(project, "clean", "-fdq")
        git(project, "stash", "-u")
        assert {each.name for each in control.iterdir()} == before


def test_a_workspace_of_an_earlier_version_is_hidden_from_git_once_it_is_opened(
    root: Path, control: Path
) -> None:
    with Workspace.open(root, AGENTS):
        pass
    (control / ".gitignore").unlink()
    with Workspace.open(root, scan=False):
        pass
    assert (control / ".gitignore").read_text() == "*\n"


def test_removed_folders_are_made_again(root: Path, control: Path, alice: Toolbox) -> None:
    write(alice, "1")
    for name in ("tmp", "claims", "exclusive", "presence"):
        shutil.rmtree(control / name, ignore_errors=True)
    shutil.rmtree(root / "collaborative")
    write(alice, "2")
    assert (root / "collaborative/current/2").read_text() == "2"
    shutil.rmtree(control / "tmp")
    ok(alice, "save_to_my_workspace", filename="x", content="x")
    ok(alice, "delete_from_my_workspace", filename="x")
    assert not (root / "agents/alice/x").exists()
