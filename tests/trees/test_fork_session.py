"""``watchroom fork-session``: a copy of a session in a new tree that has the uncommitted files too."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from cli.running import spawned
from trees.git_repository import Repository
from trees.tree_client import ScriptedClient
from watchroom import Workspace
from watchroom.agents.clients.configuration import AGENT_VARIABLE
from watchroom.agents.clients.registry import LAUNCHED_CLIENTS
from watchroom.errors import InvalidTree
from watchroom.features.sessions.rows import FORK_SESSION
from watchroom.features.trees import working_state
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.rows import ADD_TREE, read_addition
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import RowFilter
from watchroom.model import Row

DANA: Final = CallContext("human:dana")
ODD: Final = b"caf\xe9 \n.bin"
"""The name of a file that is no UTF-8 and has two lines."""


def read_files(folder: Path) -> dict[bytes, tuple[int, bytes]]:
    """Return the mode and the content of each file below ``folder``, without git's own."""
    found: dict[bytes, tuple[int, bytes]] = {}
    for above, folders, names in os.walk(os.fsencode(folder)):
        folders[:] = [each for each in folders if each != b".git"]
        links = [each for each in folders if os.path.islink(os.path.join(above, each))]
        for name in (*names, *links):
            path = os.path.join(above, name)
            if name == b".git":
                continue
            mode = os.lstat(path).st_mode
            data = os.readlink(path) if stat.S_ISLNK(mode) else Path(os.fsdecode(path)).read_bytes()
            found[os.path.relpath(path, os.fsencode(folder))] = (mode, data)
    return found


def read_index(folder: Path) -> tuple[str, str, bytes]:
    """Return what git knows of a tree: what differs, and where HEAD is; and its index."""
    run = ["git", "--no-optional-locks", "-C", str(folder)]
    status, head = (
        subprocess.run([*run, *words], capture_output=True, check=True, text=True).stdout
        for words in (["status", "--porcelain"], ["rev-parse", "HEAD"])
    )
    return status, head, (folder / ".git" / "index").read_bytes()


def make_a_mess(repository: Repository) -> None:
    """Change files in each way that git knows."""
    folder = repository.folder
    repository.commit(
        **{
            "src/gone__txt": "gone\n",
            "src/old__txt": "old\n" * 50,
            "run__sh": "#!/bin/sh\n",
            "was_file": "f\n",
        },
        **{"was_folder/x__txt": "x\n", "crlf__txt": "a\nb\n", "__gitignore": "*.log\nignored/\n"},
    )
    os.symlink("src", folder / "link")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "-m", "link")
    (folder / "src/gone.txt").unlink()
    repository.git("mv", "src/old.txt", "renamed.txt")
    (folder / "run.sh").chmod(0o755)
    (folder / "a.txt").write_bytes(b"uncommitted\r\n\x00\xff")
    repository.write("staged.txt", "staged\n")
    repository.git("add", "staged.txt")
    repository.write("staged.txt", "staged, then changed\n")
    Path(os.fsdecode(os.path.join(os.fsencode(folder), ODD))).write_bytes(bytes(range(256)))
    repository.write("new/deep/file.txt", "new\n")
    (folder / "was_file").unlink()
    repository.write("was_file/inside.txt", "in a folder\n")
    (folder / "was_folder/x.txt").unlink()
    (folder / "was_folder").rmdir()
    repository.write("was_folder", "a file now\n")
    (folder / "link").unlink()
    repository.write("link/inside.txt", "no link\n")
    os.symlink("nowhere", folder / "dangling")
    repository.write("noise.log", "ignored\n")
    repository.write("ignored/x", "ignored\n")


def rows_of(workspace: Workspace, **only: Any) -> list[Row]:
    return workspace.journal.rows_before(2**62, limit=1000, only=RowFilter(**only))


def test_the_new_tree_has_the_same_files_byte_for_byte(kept: Workspace, repository: Repository) -> None:
    make_a_mess(repository)
    before = read_files(repository.folder), read_index(repository.folder)
    added = kept.own_trees.add(DANA, "copy", str(repository.folder), fork=True)
    assert (read_files(repository.folder), read_index(repository.folder)) == before, "the source is as it was"
    ignored = (b"noise.log", b"ignored/x")
    wanted = {name: each for name, each in before[0].items() if name not in ignored}
    assert read_files(Path(added.tree.folder)) == wanted
    assert ODD in wanted
    assert added.forked is not None
    assert added.forked.left_out == ()
    (row,) = rows_of(kept, tool=ADD_TREE)
    assert read_addition(row).forked == kept.trees.all()[0].id
    again = kept.own_trees.add(DANA, "again", added.tree.folder, fork=True)
    assert read_files(Path(again.tree.folder)) == wanted, "a linked tree can be forked too"


def test_nothing_is_written_through_a_link(kept: Workspace, repository: Repository, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.txt").write_text("mine\n")
    os.symlink(outside, repository.folder / "link")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "-m", "link")
    (repository.folder / "link").unlink()
    repository.write("link/x.txt", "other\n")
    added = kept.own_trees.add(DANA, "copy", str(repository.folder), fork=True)
    assert (outside / "x.txt").read_text() == "mine\n"
    assert (Path(added.tree.folder) / "link/x.txt").read_text() == "other\n"


def test_a_repository_inside_is_left_out_and_named(kept: Workspace, repository: Repository) -> None:
    Repository(repository.folder / "vendor").commit(x__txt="x\n")
    added = kept.own_trees.add(DANA, "copy", str(repository.folder), fork=True)
    assert added.forked is not None
    assert added.forked.left_out == ("vendor",)
    assert not (Path(added.tree.folder) / "vendor").exists()


def test_a_source_that_does_not_hold_still_is_not_forked(
    kept: Workspace, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = working_state._copy

    def write_and_copy(here: bytes, there: bytes, name: bytes) -> None:
        copy(here, there, name)
        repository.write("b.txt", f"{os.urandom(4).hex()}\n")

    repository.write("b.txt", "changed\n")
    monkeypatch.setattr(working_state, "_copy", write_and_copy)
    with pytest.raises(InvalidTree, match="Pause it first"):
        kept.own_trees.add(DANA, "copy", str(repository.folder), fork=True)
    assert len(kept.trees.all()) == 1
    assert "copy" not in repository.git("branch", "--list")
    assert not repository.folder.with_name("project.trees").exists()


def test_a_fork_that_is_killed_leaves_no_tree_that_looks_ready(
    kept: Workspace, repository: Repository
) -> None:
    make_a_mess(repository)
    program = f"""
import os, signal
from watchroom import Workspace
from watchroom.features.trees import working_state
from watchroom.kernel.call_context import CallContext
copied, copy = [], working_state._copy
def copy_some(*given):
    copy(*given)
    copied.append(1)
    if len(copied) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
working_state._copy = copy_some
with Workspace.open({str(repository.root)!r}, create=False, scan=False) as workspace:
    workspace.own_trees.add(CallContext("human:dana"), "copy", {str(repository.folder)!r}, fork=True)
"""
    before = read_files(repository.folder)
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    assert read_files(repository.folder) == before
    assert rows_of(kept, tool=ADD_TREE) == []
    with pytest.raises(InvalidTree, match="was killed"):
        kept.own_trees.add(DANA, "copy", str(repository.folder), fork=True)


@pytest.fixture
def programs(tmp_path: Path, service: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Clients that write down how they were started."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for client in LAUNCHED_CLIENTS:
        (folder / client).write_text(
            f"#!{sys.executable}\nimport json, os, sys\n"
            f"open({str(tmp_path / 'seen')!r}, 'w').write(json.dumps([os.getcwd(), sys.argv[1:]]))\n"
        )
        (folder / client).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


FORKED: Final = {
    "claude": ["--resume", "session-of-alice", "--fork-session"],
    "codex": ["fork", "-C", ".", "session-of-alice"],
}


@pytest.mark.parametrize("client", FORKED)
def test_the_client_goes_on_with_a_copy_in_the_new_tree(
    kept: Workspace, repository: Repository, programs: Path, tmp_path: Path, client: str
) -> None:
    (repository.folder / "sub").mkdir()
    alice = ScriptedClient(kept, "alice", repository.folder / "sub", client=client)
    repository.write("sub/new.txt", "new\n")
    before = kept.journal.head("session", "alice/session-of-alice")
    done = spawned("fork-session", "alice", "eve", "--dir", str(repository.folder), "--as", "dana")
    assert done.returncode == 0, done.stderr
    folder, words = json.loads((tmp_path / "seen").read_text())
    assert words[-len(FORKED[client]) :] == FORKED[client]
    assert folder == str(repository.folder.with_name("project.trees") / "eve" / "sub")
    assert (Path(folder) / "new.txt").read_text() == "new\n"
    (note,) = rows_of(kept, tool=FORK_SESSION)
    assert before is not None
    assert (note.actor, note.path, note.base) == ("human:dana", before.path, before.version)
    assert (note.detail["agent"], note.detail["row"]) == ("eve", before.seq)
    assert kept.journal.head("session", before.path) == before, "the source goes on undisturbed"
    assert alice.hook("UserPromptSubmit", prompt="Go on") == {}
    again = spawned("fork-session", "alice", "eve", "--dir", str(repository.folder))
    assert (again.returncode, "already" in again.stderr) == (2, True)


def test_what_cannot_be_forked_is_refused_and_leaves_nothing(
    kept: Workspace, repository: Repository, programs: Path, tmp_path: Path
) -> None:
    place = ("--dir", str(repository.folder))

    def refused(agent: str, **environment: str) -> str:
        done = spawned("fork-session", agent, "eve", *place, **environment)
        assert done.returncode in (1, 2), done.stderr
        return done.stderr

    assert "Unknown agent" in refused("nobody")
    assert "has no session" in refused("bob")
    for client in ("gemini", "opencode"):
        detail = {"client": client, "cwd": str(repository.folder), "status": "idle"}
        kept.session_zone.begin("bob", client, "{}", "", detail)
        assert f"A session of {client} cannot be copied" in refused("bob")
        assert "watchroom hand-over bob TO" in refused("bob")
    ScriptedClient(kept, "carol", tmp_path)
    assert "in no working tree" in refused("carol")
    ScriptedClient(kept, "alice", repository.folder)
    assert "only people" in refused("alice", **{AGENT_VARIABLE: "alice"})
    (programs / "claude").unlink()
    assert "not installed" in refused("alice", PATH="/usr/bin:/bin")
    assert "eve" not in kept.registry.current().agents
    assert GitTree.find(str(repository.folder)) is not None
    assert not repository.folder.with_name("project.trees").exists()
