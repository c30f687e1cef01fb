"""Files that git ignores in a task's folder have no versions, and are in no branch."""

from __future__ import annotations

import os
import random
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from calls import ok, refused
from effort import rounds
from history.repositories import git, needs_git
from watchroom import Agent, Toolbox, Workspace
from watchroom.errors import IgnoredFilesUnknown
from watchroom.features.tasks import ignored_files
from watchroom.features.tasks.files import ChangeAuthor
from watchroom.history.git import write_branch
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import Journal

pytestmark = needs_git
ALICE = ChangeAuthor(CallContext("alice", "run_command"))
SEEDS = range(rounds(4, 200))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a person who ignores ``*.swp`` everywhere."""
    folder = tmp_path / "home"
    (folder / ".config/git").mkdir(parents=True)
    (folder / ".gitconfig").write_text("[core]\n\texcludesFile = ~/ignored\n")
    (folder / "ignored").write_text("*.swp\n")
    monkeypatch.setenv("HOME", str(folder))
    for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitignore").write_text(".env\nnode_modules/\n*.log\n!keep.log\n")
    (folder / "tracked.log").write_text("tracked\n")
    git(folder, "add", "-f", "-A")
    git(folder, "commit", "-qm", "Begin")
    return folder


def begin(workspace: Workspace, folder: Path) -> str:
    task = workspace.tasks.submit("human:dana", "Build.", folder).id
    workspace.register([Agent("alice", task=task), Agent("bob", task=task)])
    return task


def put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def record(workspace: Workspace) -> list[str]:
    return workspace.task_files.record_changes(CallContext("alice"), ALICE).changed


def recorded(journal: Journal, task: str) -> set[str]:
    """Return the files that this recording gave a version."""
    heads = journal.heads("file", f"{task}/")
    return {head.path.partition("/")[2] for head in heads if not head.deleted}


def everything_in(journal: Journal) -> str:
    rows = journal.rows(0, limit=100_000)
    return "\n".join(f"{row.message} {row.detail_json} {journal.content(row.seq) or ''}" for row in rows)


def listed_by_git(folder: Path) -> set[str]:
    """Return what git would commit: everything that is tracked or not ignored."""
    done = subprocess.run(
        ["git", "-C", str(folder), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
    )
    names = {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}
    return {name for name in names if (folder / name).is_file()}


def test_what_git_ignores_is_not_recorded_or_committed(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    task = begin(workspace, project)
    (project / ".git/info/exclude").write_text("local.txt\n")
    put(project / "src", **{".gitignore": "made.py\n", "made.py": "secret\n", "kept.py": "kept\n"})
    put(project / "node_modules", left__index="secret\n")
    for name in (".env", "a.log", "local.txt", "note.swp", "src/.env"):
        (project / name).write_text("secret\n")
    for name in ("keep.log", "tracked.log"):
        (project / name).write_text("kept\n")
    assert sorted(record(workspace)) == [
        ".gitignore", "keep.log", "src/.gitignore", "src/kept.py", "tracked.log",
    ]  # fmt: skip
    assert recorded(workspace.journal, task) == listed_by_git(project)
    assert "secret" not in everything_in(workspace.journal)
    assert workspace.verify() == []
    done = write_branch(workspace.journal, task, "work")
    assert done.skipped == 0
    assert ".env" not in git(project, "ls-tree", "-r", "--name-only", "work")
    assert git(project, "show", "work:src/kept.py") == "kept\n"


def test_a_change_of_gitignore_counts_from_then_on(workspace: Workspace, project: Path) -> None:
    task = begin(workspace, project)
    put(project, **{"data.csv": "1\n", "other.csv": "1\n", ".env": "secret\n"})
    record(workspace)
    assert {"data.csv", "other.csv"} <= recorded(workspace.journal, task)
    (project / ".gitignore").write_text("*.csv\n!other.csv\n")
    assert sorted(record(workspace)) == [".env", ".gitignore"]
    assert recorded(workspace.journal, task) == {".env", ".gitignore", "other.csv", "tracked.log"}
    head = workspace.journal.head("file", f"{task}/data.csv")
    assert head is not None
    assert (head.actor, head.detail["ignored"]) == ("alice", True)
    assert "no longer recorded" in head.message
    assert (project / "data.csv").read_text() == "1\n"
    (project / "data.csv").write_text("2\n")
    assert record(workspace) == []
    assert workspace.verify() == []
    (project / ".gitignore").write_text("")
    assert sorted(record(workspace)) == [".gitignore", "data.csv"]


def test_an_agent_writes_and_reads_an_ignored_file_and_its_text_is_not_kept(
    workspace: Workspace, project: Path
) -> None:
    task = begin(workspace, project)
    alice, bob = workspace.tools("alice"), workspace.tools("bob")
    done = ok(alice, "write_file", path=".env", content="KEY=secret\n")
    assert (done["recorded"], done["size"], done.get("version")) == (False, 11, None)
    assert "git ignores" in done["notice"].lower()
    assert (project / ".env").read_text() == "KEY=secret\n"
    (project / ".env").chmod(0o755)
    ok(alice, "write_file", path=".env", content="KEY=secret2\n")
    assert (project / ".env").stat().st_mode & stat.S_IXUSR
    # Its present text has no version, so an agent that has not seen it cannot replace it.
    assert refused(bob, "write_file", path=".env", content="x\n")["error"] == "ignored_file_changed"
    found = ok(bob, "read_file", path=".env")
    assert (found["content"], found.get("version")) == ("KEY=secret2\n", None)
    ok(bob, "write_file", path=".env", content="KEY=secret3\n")
    (project / ".env").write_text("KEY=secret of a person\n")
    late = refused(bob, "write_file", path=".env", content="KEY=x\n")
    assert late["error"] == "ignored_file_changed"
    assert (project / ".env").read_text() == "KEY=secret of a person\n"
    assert ".env" not in recorded(workspace.journal, task)
    assert "KEY" not in everything_in(workspace.journal)
    assert refused(alice, "open_buffer", source="file", path=".env", name="e")["error"] == "file_ignored"
    assert refused(alice, "read_file", path="node_modules/none.js")["error"] == "file_not_found"
    assert workspace.verify() == []


def test_the_settings_of_a_repository_start_no_program(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    task = begin(workspace, project)
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    nested = project / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    for folder in (project, nested):
        for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "filter.x.clean", "core.editor"):
            git(folder, "config", name, str(program))
        git(folder, "config", "core.hooksPath", str(tmp_path))
        git(folder, "config", "core.worktree", str(tmp_path))
        (folder / ".gitattributes").write_text("* filter=x\n")
    put(nested, **{".gitignore": "*.o\n", "a.o": "secret\n", "a.c": "kept\n"})
    ok(workspace.tools("alice"), "write_file", path="nested/b.o", content="secret\n")
    ok(workspace.tools("alice"), "write_file", path="nested/b.c", content="kept\n")
    record(workspace)
    assert {each for each in recorded(workspace.journal, task) if each.startswith("nested")} == {
        "nested/.gitattributes", "nested/.gitignore", "nested/a.c", "nested/b.c",
    }  # fmt: skip
    assert not ran.exists()


def test_where_git_does_not_answer_nothing_is_recorded_and_that_is_said(
    workspace: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = begin(workspace, project)
    alice = workspace.tools("alice")
    ok(alice, "write_file", path="kept.md", content="kept\n")
    os.mkfifo(project / ".git/waiting")
    git(project, "config", "include.path", str(project / ".git/waiting"))
    monkeypatch.setattr(ignored_files, "_SECONDS", 0.3)
    late = refused(alice, "write_file", path="a.md", content="a\n")
    assert late["error"] == "ignored_files_unknown"
    assert not (project / "a.md").exists()
    monkeypatch.undo()
    (project / ".git/config").write_text("[core\n")
    assert refused(alice, "read_file", path="tracked.log")["error"] == "ignored_files_unknown"
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "not installed" in refused(alice, "read_file", path="tracked.log")["message"]
    with pytest.raises(IgnoredFilesUnknown):
        record(workspace)
    assert recorded(workspace.journal, task) == {"kept.md"}
    assert [(each.zone, each.path) for each in workspace.verify()] == [("file", task)]
    workspace.repair()


def test_a_repository_that_ignores_the_tasks_folder_itself_has_no_say(
    workspace: Workspace, project: Path
) -> None:
    (project / "node_modules/made").mkdir(parents=True)
    task = begin(workspace, project / "node_modules/made")
    put(project / "node_modules/made", **{"a.py": "a\n"})
    assert record(workspace) == ["a.py"]
    ok(workspace.tools("alice"), "write_file", path="b.py", content="b\n")
    assert recorded(workspace.journal, task) == {"a.py", "b.py"}


def test_a_folder_within_a_repository_keeps_its_rules(workspace: Workspace, project: Path) -> None:
    task = begin(workspace, project / "app")
    put(project / "app", **{"a.py": "a\n", ".env": "secret\n", "an empty .git": ""})
    (project / "app/.git").mkdir()
    assert sorted(record(workspace)) == ["a.py", "an empty .git"]
    assert ok(workspace.tools("alice"), "write_file", path="x/.env", content="s\n")["recorded"] is False
    assert ".env" not in recorded(workspace.journal, task)


def test_what_was_recorded_before_is_not_committed(workspace: Workspace, project: Path) -> None:
    """A journal of an earlier version can have ignored files."""
    (project / ".gitignore").write_text("")
    task = begin(workspace, project)
    put(project, **{".env": "secret\n", "a.py": "a\n"})
    record(workspace)
    (project / ".gitignore").write_text(".env\n")
    done = write_branch(workspace.journal, task, "work")
    assert [(each.row.path, each.reason) for each in done.left_out] == [(f"{task}/.env", "ignored")]
    assert git(project, "ls-tree", "-r", "--name-only", "work").split() == [
        ".gitignore", "a.py", "tracked.log",
    ]  # fmt: skip


def test_a_repeated_write_of_an_ignored_file_has_the_same_result(workspace: Workspace, project: Path) -> None:
    begin(workspace, project)
    alice = workspace.tools("alice")
    given = {"path": ".env", "content": "secret\n"}
    done = alice.dispatch_tool_call("write_file", given, call="call-1")
    (project / ".env").unlink()
    assert alice.dispatch_tool_call("write_file", given, call="call-1", again=True) == done
    assert not (project / ".env").exists()


def test_a_scan_starts_one_process_for_each_repository(
    workspace: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(workspace, project)
    started: list[object] = []

    class Counted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **more: Any) -> None:
            started.append(args)
            super().__init__(*args, **more)

    monkeypatch.setattr(subprocess, "Popen", Counted)
    put(project, **{f"{number}.py": "x\n" for number in range(300)})
    assert len(record(workspace)) == 302
    assert len(started) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_recorded_is_what_git_would_commit(workspace: Workspace, project: Path, seed: int) -> None:
    """Law: after each recording, the files with a version are those that git tracks or does not ignore."""
    chance = random.Random(seed)
    task = begin(workspace, project)
    alice: Toolbox = workspace.tools("alice")
    names = [
        "a.py",
        "a.o",
        "b.log",
        ".env",
        "src/a.o",
        "src/b.py",
        "src/deep/c.o",
        "out/x",
        "out/y.py",
        "ü.o",
    ]
    rules = ["*.o", "out/", "!a.o", "/src/*", "!src/b.py", "**/deep", "*.log", "src/deep/c.?", "ü*", "!ü.o"]
    for _ in range(12):
        match chance.randrange(5):
            case 0:
                where = chance.choice(("", "src/", "out/"))
                put(project / where, **{".gitignore": "\n".join(chance.sample(rules, 3)) + "\n"})
            case 1:
                name = chance.choice(names)
                if (project / name).is_file():
                    git(
                        project,
                        *chance.choice((("add", "-f"), ("rm", "--cached", "-qf", "--ignore-unmatch"))),
                        name,
                    )
            case 2:
                (project / chance.choice(names)).unlink(missing_ok=True)
            case 3:
                name = chance.choice(names)
                text = f"{chance.random()}\n"
                (project / name).parent.mkdir(parents=True, exist_ok=True)
                (project / name).write_text(text)
            case _:
                name = chance.choice(names)
                found = alice.dispatch_tool_call("read_file", {"path": name})
                assert found["success"] or found["error"] == "file_not_found"
                done = ok(alice, "write_file", path=name, content=f"{chance.random()}\n")
                is_kept = name in listed_by_git(project)
                assert (done.get("recorded") is None) == is_kept
        record(workspace)
        assert recorded(workspace.journal, task) == listed_by_git(project)
    assert workspace.verify() == []
