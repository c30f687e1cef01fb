"""``watchroom tree``, and clients that are started in a tree."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli.running import Captured, as_typed, misuse, printed, printed_json, refusal, run
from service_process import PATIENCE
from trees.git_repository import Repository
from watchroom import Workspace
from watchroom.agents.clients.configuration import AGENT_VARIABLE
from watchroom.features.trees.rows import ADD_TREE, REMOVE_TREE

CLIENT = """#!{python}
import json, os, sys
names = ("WATCHROOM_TREE", "WATCHROOM_TREE_FOLDER", "WATCHROOM_PORT_FIRST", "WATCHROOM_PORT_COUNT", "PWD")
print(json.dumps({{"folder": os.getcwd(), "arguments": sys.argv[1:], **{{each: os.environ.get(each) for each in names}}}}), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def here(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """The repository, as the working directory. It has no workspace yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv(AGENT_VARIABLE, raising=False)
    monkeypatch.chdir(repository.folder)
    return repository


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with clients that print where they run, until their standard input ends."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("claude", "codex", "opencode"):
        (folder / name).write_text(CLIENT.format(python=sys.executable))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def configure(repository: Repository, settings: str) -> None:
    Workspace.open(repository.root).close()
    path = repository.root / ".watchroom" / "config.toml"
    path.write_text(f"{path.read_text()}\n[trees]\n{settings}\n")


def start(client: str, *arguments: str, cwd: Path) -> tuple[dict[str, Any], str]:
    """Start a client as it is typed. Return what it saw, and what was printed before."""
    done = subprocess.run(
        as_typed(client, *arguments),
        cwd=cwd,
        input="",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found, done.stderr


def test_a_tree_is_added_listed_and_removed(capsys: Captured, here: Repository) -> None:
    out = printed(capsys, "tree", "add", "login")
    folder = here.folder.with_name("project.trees") / "login"
    assert out.splitlines() == [
        f"Added working tree login on branch login: {folder}",
        "Its ports: 20000 to 20009.",
        "Start a client in it: watchroom claude --tree login",
    ]
    (folder / "new.txt").write_text("new\n")
    lines = printed(capsys, "tree", "list").splitlines()
    head = ["name", "branch", "agents", "ahead", "behind", "changed", "conflicts", "state", "folder"]
    assert lines[0].split() == head
    assert lines[2].split() == ["login", "login", "-", "0", "0", "1", "-", "ready", str(folder)]
    assert "main tree" in lines[1]
    found = printed_json(capsys, "tree", "list", "--json")
    assert found["shallow"] is False
    assert [(each["name"], each["main"], each["state"]) for each in found["trees"]] == [
        ("project", True, []),
        ("login", False, []),
    ]
    assert (found["trees"][1]["target"], found["trees"][1]["first_port"]) == ("main", 20000)
    out = printed(capsys, "tree", "remove", "login")
    assert "Its branch login stays." in out
    assert "new.txt. To get them back: watchroom tree add login --restore" in out
    assert not folder.exists()
    again = printed_json(capsys, "tree", "add", "login", "--restore", "--json")
    assert (again["restored"], again["setup"]) == (["new.txt"], None)
    assert (folder / "new.txt").read_text() == "new\n"
    with Workspace.open(here.root, create=False) as workspace:
        rows = [row for row in workspace.journal.rows(0) if row.tool in (ADD_TREE, REMOVE_TREE)]
    assert [row.tool for row in rows] == [ADD_TREE, REMOVE_TREE, ADD_TREE]
    assert all(row.actor.startswith("human:") for row in rows)


def test_conflicts_with_other_trees_are_listed(capsys: Captured, here: Repository) -> None:
    for name in ("x", "y"):
        printed(capsys, "tree", "add", name)
        (here.folder.with_name("project.trees") / name / "b.txt").write_text(f"by {name}\n")
    with Workspace.open(here.root, create=False) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        for _ in range(5):
            workspace.background.flush()
    found = printed_json(capsys, "tree", "list", "--json")["trees"]
    listed = {
        each["name"]: [(other["name"], other["paths"]) for other in each["conflicts"]] for each in found
    }
    assert listed == {"project": [], "x": [("y", ["b.txt"])], "y": [("x", ["b.txt"])]}
    lines = printed(capsys, "tree", "list").splitlines()
    column = lines[0].index("conflicts")
    assert [line[column:].split("  ")[0] for line in lines[1:]] == ["-", "1 y", "1 x"]


def test_what_is_in_the_way_is_said_with_what_to_do(capsys: Captured, here: Repository) -> None:
    here.commit(__gitignore=".env\n")
    printed(capsys, "tree", "add", "x")
    secret = here.folder.with_name("project.trees") / "x" / ".env"
    secret.write_text("KEY=1\n")
    said = refusal(capsys, "tree", "remove", "x")
    assert "Git ignores these files, and only this tree has them: .env." in said
    assert "watchroom tree remove x --force" in said
    status, out, _ = run(capsys, "tree", "remove", "x", "--json")
    assert (status, json.loads(out)["obstacles"]) == (1, [{"kind": "ignored", "names": [".env"]}])
    assert secret.exists()
    assert "Removed working tree x." in printed(capsys, "tree", "remove", "x", "--force")
    here.git("worktree", "add", "--quiet", "-b", "y", "../y")
    here.git("worktree", "lock", "../y")
    status, _, said = run(capsys, "tree", "remove", "y", "--force")
    assert (status, "git worktree unlock" in said, "--force" in said) == (1, True, False)


def test_commands_that_make_no_sense_are_refused(
    capsys: Captured, here: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "watchroom tree add NAME" in misuse(capsys, "tree", "add")
    assert "watchroom tree add NAME" in misuse(capsys, "tree", "list", "x")
    assert "--force to remove" in misuse(capsys, "tree", "add", "x", "--force")
    assert "--from" in misuse(capsys, "tree", "remove", "x", "--from", "main")
    assert "no working tree 'nowhere'" in refusal(capsys, "tree", "remove", "nowhere")
    assert "does not exist" in refusal(capsys, "tree", "add", "x", "--from", "nowhere")
    monkeypatch.chdir(tmp_path)
    assert "not in a git repository" in misuse(capsys, "tree", "list")
    assert "project" in printed(capsys, "tree", "list", "--dir", str(here.folder))


def test_an_agent_may_add_a_tree_and_not_remove_it(
    capsys: Captured, here: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(AGENT_VARIABLE, "claude*")
    printed(capsys, "tree", "add", "x")
    assert "only people" in refusal(capsys, "tree", "remove", "x")
    with Workspace.open(here.root, create=False) as workspace:
        (row,) = [row for row in workspace.journal.rows(0) if row.tool == ADD_TREE]
    assert row.actor == "claude*"


def test_a_failed_setup_is_said_with_its_last_lines(capsys: Captured, here: Repository) -> None:
    configure(here, "setup = 'seq 1 30; echo broken >&2; exit 4'")
    status, out, said = run(capsys, "tree", "add", "x")
    assert (status, "Added working tree x" in out) == (1, True)
    lines = said.splitlines()
    assert lines[0].startswith("The setup command ended with exit status 4: seq 1 30;")
    assert lines[1:] == [*(f"  {number}" for number in range(12, 31)), "  broken"]
    assert "setup failed" in printed(capsys, "tree", "list")
    assert here.folder.with_name("project.trees").joinpath("x").is_dir()


def test_a_terminal_shows_the_steps_and_the_output_of_the_setup(here: Repository) -> None:
    configure(here, "setup = 'echo installing; sleep 0.1; printf done'")
    master, terminal = pty.openpty()
    with subprocess.Popen(
        as_typed("tree", "add", "x"), stdin=terminal, stdout=terminal, stderr=terminal, cwd=here.folder
    ) as process:
        os.close(terminal)
        said = b"".join(iter(lambda: _read(master), b""))
        assert process.wait(PATIENCE) == 0
    os.close(master)
    order = [b"writing files", b"running the setup command", b"installing", b"Added working tree x"]
    places = [said.find(each) for each in order]
    assert places == sorted(places), said
    assert min(places) >= 0, said


def _read(master: int) -> bytes:
    try:
        return os.read(master, 4096)
    except OSError:
        # The last process has closed the terminal.
        return b""


def test_leaving_keeps_the_trees_and_frees_their_ports(
    capsys: Captured, here: Repository, tmp_path: Path
) -> None:
    printed(capsys, "tree", "add", "x")
    git = here.folder / ".git" / "worktrees" / "x"
    assert (git / "watchroom-added").exists()
    printed(capsys, "leave", "--yes")
    assert [each.name for each in git.iterdir() if "watchroom" in each.name] == []
    assert (here.folder.with_name("project.trees") / "x" / "a.txt").exists()
    assert json.loads((tmp_path / "state" / "watchroom" / "ports.json").read_text()) == []
    assert [each["first_port"] for each in printed_json(capsys, "tree", "list", "--json")["trees"]] == [
        None,
        None,
    ]


# Clients


@pytest.mark.slow(4)
@pytest.mark.parametrize("client", ["claude", "codex", "opencode"])
def test_a_client_is_started_in_a_tree_that_is_made_for_it(
    client: str, here: Repository, programs: Path, service: None
) -> None:
    here.write("deep/er/c.txt", "c\n")
    here.commit()
    tree = here.folder.with_name("project.trees") / "login"
    found, said = start(client, "--tree", "login", "last words", cwd=here.folder / "deep" / "er")
    assert f"Added working tree login on branch login: {tree}" in said
    assert found["folder"] == found["PWD"] == str(tree / "deep" / "er"), "the same folder of the tree"
    assert found["arguments"][-1] == "last words"
    assert "--tree" not in found["arguments"]
    assert [found[f"WATCHROOM_{each}"] for each in ("TREE", "TREE_FOLDER", "PORT_FIRST", "PORT_COUNT")] == [
        *("login", str(tree), "20000", "10")
    ]
    found, said = start(client, "--tree=login", cwd=tree)
    assert (found["folder"], found["WATCHROOM_PORT_FIRST"]) == (str(tree), "20000")
    assert "Added" not in said


@pytest.mark.slow(3)
def test_a_client_is_not_started_after_a_failed_setup(
    capsys: Captured, here: Repository, programs: Path, service: None
) -> None:
    configure(here, "setup = 'echo broken; exit 4'")
    status, out, said = run(capsys, "claude", "--tree", "x")
    assert (status, out) == (1, "")
    assert "exit status 4" in said
    assert "The client was not started." in said
    assert start("claude", "--tree", "x", cwd=here.folder)[0]["WATCHROOM_TREE"] == "x"


def test_a_tree_needs_a_name_and_a_repository(
    capsys: Captured, here: Repository, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--tree NAME" in misuse(capsys, "claude", "--tree")
    Workspace.open(tmp_path / "team").close()
    monkeypatch.chdir(tmp_path / "team")
    assert "not in a git repository" in misuse(capsys, "claude", "--tree", "x")


@pytest.mark.slow(4)
def test_a_tree_in_which_an_agent_works_is_not_removed(
    capsys: Captured, here: Repository, service: None
) -> None:
    printed(capsys, "tree", "add", "x")
    hook = as_typed("hook", str(here.root), "--client", "claude")
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "one", "cwd": "/", "prompt": "Go"}
    folder = here.folder.with_name("project.trees") / "x"
    # The hook's parent is the client: it works in the tree.
    client = [sys.executable, "-c", CLIENT_WITH_HOOK, json.dumps(event), *hook]
    with subprocess.Popen(
        client, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == "ready\n"
        (_, listed) = printed_json(capsys, "tree", "list", "--json")["trees"]
        assert listed["agents"] == ["claude1"]
        said = refusal(capsys, "tree", "remove", "x")
        assert "Agents work in it: claude1. End their clients." in said
        agent.communicate(timeout=PATIENCE)
    assert "Removed" in printed(capsys, "tree", "remove", "x")


CLIENT_WITH_HOOK = """
import subprocess, sys
subprocess.run(sys.argv[2:], input=sys.argv[1], text=True, check=True, stdout=subprocess.DEVNULL)
print("ready", flush=True)
sys.stdin.read()
"""
