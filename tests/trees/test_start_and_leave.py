"""A repository is supervised without a file in its working tree, and everything can be removed again."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any, Final
from uuid import uuid4

import pytest
from cli.running import Captured, as_typed, misuse, printed, run, spawned
from pty_driver import Terminal
from service_process import PATIENCE, end_service
from trees import launched_client
from watchroom import Workspace
from watchroom.agents.clients import client_program
from watchroom.errors import WorkspaceNotFound
from watchroom.features.people.service import find_id
from watchroom.features.trees.place import TREE_FILE, display_name, find_repository, repository_of
from watchroom.history.seal.anchors import SEAL_FOLDER, state_folder
from watchroom.kernel.checkout.location import is_workspace
from watchroom.texts import LANGUAGES, Language
from watchroom_cli.arguments.workspace_argument import find_workspace
from watchroom_cli.main import LANGUAGE_VARIABLE, USAGE
from watchroom_cli.start import repository as repository_command
from watchroom_tui.presentation.localization import load_texts

WHO: Final = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "protocol.file.allow=always")
CALL: Final[dict[str, Any]] = {
    "tool_name": "Bash",
    "tool_input": {"command": "make"},
    "tool_use_id": "toolu_1",
}


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *WHO, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def make_repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    return folder


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository that is the working directory, and a home folder without clients."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CODEX_HOME", str(home / "codex"))
    monkeypatch.delenv("WATCHROOM_AGENT", raising=False)
    folder = make_repository(tmp_path / "my project")
    monkeypatch.chdir(folder)
    return folder


def root_of(repository: Path) -> Path:
    return repository / ".git" / "watchroom"


def state_of(repository: Path) -> dict[str, object]:
    """Return what `watchroom leave` has to restore: the status, and all files in the git folder, except
    objects and the index, which git itself refreshes."""
    above = repository / ".git"
    files = {
        str(path.relative_to(above)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in above.rglob("*")
        if path.relative_to(above).parts[0] not in ("objects", "index")
    }
    return {"files": files, "status": git(repository, "status", "--short", "--ignored")}


# Places


def test_a_repository_is_found_from_every_working_tree(repository: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(repository, "worktree", "add", "--quiet", str(linked))
    (repository / "deep" / "er").mkdir(parents=True)
    (linked / "deep").mkdir()
    for folder, tree in (
        (repository, repository),
        (repository / "deep" / "er", repository),
        (repository / ".git", repository),
        (linked / "deep", linked),
        (repository / ".git" / "worktrees" / "linked", linked),
    ):
        place = find_repository(folder)
        assert place is not None
        assert (place.folder, place.common) == (str(tree), str(repository / ".git"))
        assert (place.main, place.name) == (str(repository), "my project")
    assert find_repository(tmp_path) is None


def test_a_bare_repository_and_a_submodule_are_found(repository: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), str(bare))
    git(bare, "worktree", "add", "--quiet", str(tmp_path / "tree"), "main")
    place = find_repository(tmp_path / "tree")
    assert place is not None
    assert (place.common, place.name) == (str(bare), "bare")
    assert find_repository(bare) == ("", str(bare), str(bare))
    outer = make_repository(tmp_path / "outer")
    git(outer, "submodule", "--quiet", "add", str(repository), "inner")
    inner = find_repository(outer / "inner")
    assert inner is not None
    assert inner.folder == str(outer / "inner")
    assert inner.common == str(outer / ".git" / "modules" / "inner")


@pytest.mark.parametrize("text", ["", "gitdir:", "gitdir: nowhere\n", "nothing", "gitdir: a\0b"])
def test_a_damaged_link_names_no_repository(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_text(text)
    assert find_repository(tmp_path) is None


def test_the_workspace_outlives_clean_and_gc(repository: Path) -> None:
    Workspace.open(root_of(repository), agents=["alice"]).close()
    assert git(repository, "status", "--short", "--ignored") == ""
    git(repository, "clean", "-ffdx")
    git(repository, "gc", "--quiet", "--prune=now")
    with Workspace.open(root_of(repository), create=False) as workspace:
        assert [*workspace.config.agents] == ["alice"]
        assert workspace.verify() == []


def test_a_workspace_is_called_like_its_repository(repository: Path, tmp_path: Path) -> None:
    assert display_name(root_of(repository)) == "my project"
    assert display_name(tmp_path / "watchroom") == "watchroom"
    assert repository_of(tmp_path / "watchroom") is None


# The nearest workspace


def test_commands_find_the_workspace_of_the_repository(
    capsys: Captured, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Workspace.open(root_of(repository), agents=["alice"]).close()
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    expected = printed(capsys, "show", "agents")
    assert "alice" in expected
    monkeypatch.chdir(tmp_path / "linked")
    assert printed(capsys, "show", "agents") == expected
    monkeypatch.chdir(tmp_path)
    for place in ("my project", "linked", "my project/.git", "my project/.git/watchroom"):
        assert printed(capsys, "show", place, "agents") == expected
    assert "no workspace" in misuse(capsys, "show", "agents")


def test_the_nearest_workspace_counts(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Workspace.open(tmp_path).close()
    Workspace.open(other := make_repository(tmp_path / "other")).close()
    Workspace.open(root_of(other)).close()
    assert find_workspace() == str(tmp_path), "the repository has none"
    Workspace.open(root_of(repository)).close()
    assert find_workspace() == str(root_of(repository))
    inner = repository / "team"
    Workspace.open(inner).close()
    monkeypatch.chdir(inner)
    assert find_workspace() == str(inner)
    monkeypatch.chdir(other)
    assert find_workspace() == str(other), "a folder's own workspace comes first"
    with Workspace.open(other) as workspace:
        assert workspace.root == str(other)


def test_a_working_tree_opens_the_workspace_of_its_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Workspace.open(root_of(repository), agents=["alice"]).close()
    linked = tmp_path / "linked"
    git(repository, "worktree", "add", "--quiet", str(linked))
    monkeypatch.chdir(tmp_path)
    for place in ("my project", repository / ".git", linked):
        with Workspace.open(place, create=False) as workspace:
            assert workspace.root == str(root_of(repository))
            assert [*workspace.config.agents] == ["alice"]
    with Workspace.open(repository, agents=["bob"]) as workspace:
        assert [*workspace.config.agents] == ["alice", "bob"]
    assert git(repository, "status", "--porcelain", "--ignored") == ""
    assert git(linked, "status", "--porcelain", "--ignored") == ""


def test_a_repository_without_a_workspace_is_an_ordinary_folder(repository: Path) -> None:
    with pytest.raises(WorkspaceNotFound):
        Workspace.open(repository, create=False)
    with Workspace.open(repository) as workspace:
        assert workspace.root == str(repository)


def test_without_a_terminal_it_is_said_what_to_type(capsys: Captured, repository: Path) -> None:
    status, out, err = run(capsys)
    assert (status, out) == (USAGE, "")
    assert "watchroom claude" in err
    assert str(repository) in err
    assert not root_of(repository).exists()


@pytest.mark.parametrize("command", ["changes", "leave", "verify"])
def test_commands_in_a_repository_say_how_to_begin(capsys: Captured, repository: Path, command: str) -> None:
    said = misuse(capsys, command)
    assert f"the repository {repository} is not supervised. Start with: watchroom claude" in said
    assert not root_of(repository).exists()


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_question_breaks_between_words(
    capsys: Captured, repository: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    texts = load_texts("en")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(repository_command, "has_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", lambda question: "n")
    repository_command.offer_workspace(texts, "en")
    about = texts("cli.repository.about", folder=str(repository), root=str(root_of(repository)))
    lines = capsys.readouterr().out.splitlines()
    # Paths can be longer than a line.
    sentences = [line for line in lines if str(repository.parent) not in line and "/" not in line]
    assert sentences
    assert all(len(line) < columns and {*line.split()} <= {*about.split()} for line in sentences)


@pytest.mark.parametrize(("answer", "is_made"), [("y", True), ("n", False), ("", False)])
def test_a_person_is_asked_once(
    capsys: Captured, repository: Path, monkeypatch: pytest.MonkeyPatch, answer: str, is_made: bool
) -> None:
    before = state_of(repository)
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return answer

    monkeypatch.setattr(repository_command, "has_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", ask)
    root = repository_command.offer_workspace(load_texts("en"), "en")
    assert len(asked) == 1
    assert "Nothing is written into the working tree" in capsys.readouterr().out
    assert root == (str(root_of(repository)) if is_made else None)
    assert is_workspace(root_of(repository)) == is_made
    if not is_made:
        assert state_of(repository) == before


ELSEWHERE: Final = {"en": "This repository is supervised by now", "zh": "这个仓库现在已受监督"}


@pytest.mark.slow(5)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_question_ends_when_another_command_supervises_the_repository(
    repository: Path, language: Language
) -> None:
    question = load_texts(language)("cli.repository.question")
    environment = {LANGUAGE_VARIABLE: language}
    with Terminal(as_typed(), 120, 40, cwd=str(repository), env=environment) as terminal:
        terminal.wait_for_text(question[-5:], timeout=PATIENCE)
        # An answer without its end. The dashboard must not take it for its key, which closes it.
        terminal.send("q")
        Workspace.open(root_of(repository), agents=["alice"]).close()
        terminal.wait_for_bytes(ELSEWHERE[language].encode(), timeout=PATIENCE)
        terminal.wait_for_text("alice", timeout=PATIENCE)
        terminal.settle()
        assert any("alice" in line for line in terminal.screen())
    assert git(repository, "status", "--porcelain", "--ignored") == ""


@pytest.mark.parametrize("answer", ["y", "n", ""])
def test_every_answer_opens_a_workspace_that_exists_by_then(
    capsys: Captured, repository: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    rows: list[int] = []

    def ask(question: str) -> str:
        with Workspace.open(root_of(repository)) as workspace:
            rows.append(workspace.journal.last_seq())
        return answer

    monkeypatch.setattr(repository_command, "has_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", ask)
    assert repository_command.offer_workspace(load_texts("en"), "zh") == str(root_of(repository))
    assert ELSEWHERE["en"] in capsys.readouterr().out
    with Workspace.open(root_of(repository)) as workspace:
        assert rows == [workspace.journal.last_seq()]
        assert workspace.config.language == "en"


# Clients


class LaunchedClient:
    """A client that `watchroom claude` has started in ``folder``."""

    def __init__(self, folder: Path, arguments: tuple[str, ...], stack: ExitStack) -> None:
        pipe = subprocess.PIPE
        self.process = stack.enter_context(
            subprocess.Popen(as_typed("claude", *arguments), stdin=pipe, stdout=pipe, text=True, cwd=folder)
        )
        stack.callback(self.end)
        self.started = self._read()
        self.session = str(uuid4())

    def hook(self, name: str, session: str = "", **more: object) -> Any:
        """Return the answers of the hooks of an event."""
        event = {"hook_event_name": name, "session_id": session or self.session, "cwd": "/", **more}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(event) + "\n")
        self.process.stdin.flush()
        return self._read()

    def end(self) -> int:
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()
        return self.process.wait(PATIENCE)

    def _read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


Start = Callable[..., LaunchedClient]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program ``claude``, the first on the PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    program = folder / "claude"
    words = shlex.join([sys.executable, launched_client.__file__])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.fixture
def start(programs: Path, repository: Path, service: None) -> Iterator[Start]:
    """Start clients in the repository, or in another folder."""
    with ExitStack() as stack:

        def launch(*arguments: str, folder: Path = repository) -> LaunchedClient:
            return LaunchedClient(folder, arguments, stack)

        yield launch


def agents_of(repository: Path) -> dict[str, str]:
    """Return the agents by their sessions."""
    with Workspace.open(root_of(repository), create=False, scan=False) as workspace:
        paths = [
            step.path for agent in workspace.config.agents for step in workspace.session_zone.heads(agent)
        ]
    return {session: agent for agent, _, session in (path.partition("/") for path in paths)}


@pytest.mark.slow(3)
def test_a_client_is_started_with_hooks_and_nothing_is_written(start: Start, repository: Path) -> None:
    # The command starts the service.
    end_service(Path(client_program.runtime_folder()))
    before = git(repository, "status", "--short", "--ignored")
    client = start("-p", "two words", "--", "--settings")
    given = client.started["arguments"]
    assert given[4:] == ["-p", "two words", "--", "--settings"]
    assert given[0:4:2] == ["--mcp-config", "--settings"]
    assert client.started["pid"] == client.process.pid, "the client takes the place of the command"
    for name in given[1:4:2]:
        assert stat.S_IMODE(os.stat(name).st_mode) == 0o600
        assert name.startswith(client_program.runtime_folder())
    server = json.loads(Path(given[1]).read_text())["mcpServers"]["watchroom"]
    assert server["args"][-4:] == ["mcp", str(root_of(repository)), "--client", "claude"]
    assert "--agent" not in Path(given[3]).read_text()
    assert client.hook("SessionStart") == [[0, "", ""]]
    assert agents_of(repository) == {client.session: "claude1"}
    assert client.end() == 7
    assert git(repository, "status", "--short", "--ignored") == before
    assert start().started["arguments"] == given[:4], "equal starts share their files"


@pytest.mark.slow(3)
def test_signals_reach_the_client(start: Start) -> None:
    client = start()
    client.process.terminate()
    assert client.process.wait(PATIENCE) == -signal.SIGTERM


@pytest.mark.slow(3)
def test_each_client_is_an_agent_and_a_resumed_session_keeps_it(
    start: Start, repository: Path, tmp_path: Path
) -> None:
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    first, second = start(), start(folder=tmp_path / "linked")
    first.hook("SessionStart")
    second.hook("SessionStart")
    first.hook("PreToolUse", **CALL)
    expected = {first.session: "claude1", second.session: "claude2"}
    assert agents_of(repository) == expected
    first.end()
    third = start()
    third.hook("SessionStart", session=first.session)
    third.hook("UserPromptSubmit", session=first.session, prompt="Go on")
    assert agents_of(repository) == expected, "a resumed session keeps its agent"
    another = str(uuid4())
    third.hook("SessionStart", session=another)
    assert agents_of(repository) == {**expected, another: "claude1"}, "one agent for each process"
    copied = start()
    copied.hook("SessionStart", session=second.session)
    with Workspace.open(root_of(repository), create=False, scan=False) as workspace:
        assert [*workspace.config.agents] == ["claude1", "claude2", "claude3"], "no two clients share one"


@pytest.mark.slow(5)
def test_clients_that_start_together_get_different_agents(start: Start, repository: Path) -> None:
    clients = [start() for _ in range(6)]
    with ThreadPoolExecutor(len(clients)) as pool:
        assert {*map(str, pool.map(lambda each: each.hook("SessionStart"), clients))} == {"[[0, '', '']]"}
    found = agents_of(repository)
    assert found.keys() == {each.session for each in clients}
    assert {*found.values()} == {f"claude{number}" for number in range(1, 7)}
    end_service(Path(client_program.runtime_folder()))
    for each in clients:
        each.hook("UserPromptSubmit", prompt="Go")
        each.hook("SessionStart", session=f"later-{each.session}")
    later = agents_of(repository)
    assert all(later[f"later-{session}"] == agent for session, agent in found.items()), (
        "also by a new service"
    )


def test_without_a_service_hooks_name_the_agent(repository: Path) -> None:
    Workspace.open(root_of(repository)).close()
    hook = as_typed("hook", str(root_of(repository)), "--client", "claude")
    client = [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:], check=True)", *hook]
    for session in ("one", "two", "one"):
        event = {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": "/", "prompt": "Go"}
        subprocess.run(client, input=json.dumps(event), text=True, check=True)
    assert agents_of(repository) == {"one": "claude1", "two": "claude2"}


@pytest.mark.slow(3)
def test_a_session_that_only_ends_has_no_agent(start: Start, repository: Path) -> None:
    assert start().hook("SessionEnd", reason="other") == [[0, "", ""]]
    with Workspace.open(root_of(repository), create=False, scan=False) as workspace:
        assert not workspace.config.agents


@pytest.mark.slow(3)
def test_own_settings_are_merged_with_the_hooks(start: Start, tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    own.write_text('{"model": "mine", "env": {"A": "1"}, "hooks": {"Stop": [{"hooks": []}]}}')
    for given in (("--settings", str(own)), (f"--settings={own.read_text()}",)):
        arguments = start(*given, "-c").started["arguments"]
        assert arguments[4:] == ["-c"]
        settings = json.loads(Path(arguments[3]).read_text())
        assert settings["model"] == "mine"
        assert settings["env"] == {"A": "1", "WATCHROOM_AGENT": "claude*"}
        assert len(settings["hooks"]["Stop"]) == 2


def test_settings_that_cannot_be_read_start_nothing(
    capsys: Captured, programs: Path, repository: Path, service_allowed: None
) -> None:
    assert "--settings" in misuse(capsys, "claude", "--settings", "nowhere.json")
    assert not root_of(repository).exists()


@pytest.mark.parametrize("arguments", [("--version",), ("mcp", "list"), ("-v",)])
def test_a_command_without_a_session_is_passed_on(
    programs: Path, repository: Path, arguments: tuple[str, ...]
) -> None:
    before = state_of(repository)
    with ExitStack() as stack:
        assert LaunchedClient(repository, arguments, stack).started["arguments"] == [*arguments]
    assert state_of(repository) == before


def test_a_missing_client_is_said_with_how_to_install_it(
    capsys: Captured, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for name, package in (("claude", "@anthropic-ai/claude-code"), ("codex", "@openai/codex")):
        assert f"npm install -g {package}" in misuse(capsys, name)
    assert not root_of(repository).exists()


def test_outside_of_a_repository_nothing_is_started(
    capsys: Captured, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "git repository" in misuse(capsys, "claude")


# Attaching, and leaving


def test_attach_in_a_repository_writes_personal_files_only(
    capsys: Captured, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    monkeypatch.chdir(tmp_path / "linked")
    before = state_of(repository)
    printed(capsys, "attach", "claude")
    written = repository / ".claude" / "settings.local.json"
    assert "--agent" not in written.read_text()
    assert [each.name for each in (repository / ".claude").iterdir()] == [written.name]
    text = written.read_text()
    printed(capsys, "attach", "claude")
    assert written.read_text() == text, "a second time changes nothing"
    printed(capsys, "detach", "claude")
    assert not (repository / ".claude").exists()
    printed(capsys, "leave")
    assert state_of(repository) == before


def test_codex_hooks_of_several_repositories_are_side_by_side(
    capsys: Captured, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repository(tmp_path / "other")
    hooks = tmp_path / "home" / "codex" / "hooks.json"
    hooks.parent.mkdir()
    own = '{"hooks":{"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}'
    hooks.write_text(own)
    printed(capsys, "attach", "codex")
    first = json.loads(hooks.read_text())
    monkeypatch.chdir(other)
    printed(capsys, "attach", "codex")
    assert len(json.loads(hooks.read_text())["hooks"]["PreToolUse"]) == 2
    printed(capsys, "detach", "codex")
    assert json.loads(hooks.read_text()) == first
    monkeypatch.chdir(repository)
    printed(capsys, "leave")
    assert hooks.read_text() == own, "byte for byte"


@pytest.mark.slow(3)
def test_gemini_starts_once_its_hooks_are_in_its_settings(
    capsys: Captured, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service_allowed: None
) -> None:
    programs, settings = tmp_path / "programs", tmp_path / "home/.gemini/settings.json"
    programs.mkdir()
    settings.parent.mkdir()
    settings.write_text('{"ui": {"theme": "mine"}}\n')
    (programs / "gemini").write_text('#!/bin/sh\necho "$WATCHROOM_AGENT" "$@"\n')
    (programs / "gemini").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("GEMINI_CLI_HOME", raising=False)
    before = settings.read_bytes()
    refused = spawned("gemini", "-p", "Go")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "watchroom attach gemini" in refused.stderr
    assert spawned("gemini", "mcp", "list").stdout == " mcp list\n", "it starts no session"
    printed(capsys, "attach", "gemini")
    found = json.loads(settings.read_text())
    assert found["hooks"].keys() >= {"BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent"}
    assert "mcpServers" not in found, "the settings are those of all folders"
    started = spawned("gemini", "-p", "Go")
    assert (started.returncode, started.stdout) == (0, "gemini* -p Go\n"), started.stderr
    assert "folders that you trust" in started.stderr
    printed(capsys, "leave", "--yes")
    assert settings.read_bytes() == before


def test_codex_hooks_act_only_in_their_repository(capsys: Captured, repository: Path, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other")
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    hooks = tmp_path / "home" / "codex" / "hooks.json"
    hooks.parent.mkdir()
    printed(capsys, "attach", "codex")
    line = json.loads(hooks.read_text())["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    for folder, sessions in ((other, 0), (tmp_path, 0), (repository, 1), (tmp_path / "linked", 2)):
        event = {"hook_event_name": "SessionStart", "session_id": str(uuid4()), "cwd": str(folder)}
        command, given = ["/bin/sh", "-c", line], json.dumps(event)
        done = subprocess.run(command, cwd=folder, input=given, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert len(agents_of(repository)) == sessions, folder


@pytest.mark.slow(3)
def test_leaving_restores_the_repository_byte_for_byte(
    capsys: Captured, start: Start, repository: Path, tmp_path: Path
) -> None:
    local = repository / ".claude" / "settings.local.json"
    local.parent.mkdir()
    local.write_text('{\n    "model": "mine"\n}')
    (repository / "x.log").write_text("ignored")
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    before = state_of(repository)
    client = start()
    client.hook("SessionStart")
    client.hook("PreToolUse", **CALL)
    printed(capsys, "attach", "claude")
    ids = [repository / ".git" / TREE_FILE, repository / ".git" / "worktrees" / "linked" / TREE_FILE]
    for path in ids:
        path.write_text("id\n")
    assert f"claude1 ({client.process.pid})" in misuse(capsys, "leave")
    client.end()
    said = printed(capsys, "leave")
    for path in (root_of(repository), local, *ids):
        assert str(path) in said
    assert state_of(repository) == before
    assert local.read_text() == '{\n    "model": "mine"\n}'
    assert not [*Path(client_program.runtime_folder(), "clients").iterdir()]
    assert "is not supervised" in misuse(capsys, "leave")


def test_leaving_can_keep_the_journal(capsys: Captured, repository: Path) -> None:
    printed(capsys, "attach", "claude")
    said = printed(capsys, "leave", "--keep")
    assert str(root_of(repository)) in said
    assert not (repository / ".claude").exists()
    assert is_workspace(root_of(repository))


def test_leaving_asks_at_a_terminal(
    capsys: Captured, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = root_of(repository)
    Workspace.open(root).close()
    monkeypatch.setattr("watchroom_cli.start.leave.has_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", lambda question: "n")
    status, _, err = run(capsys, "leave")
    assert status == 1
    assert "still supervised" in err
    assert is_workspace(root)
    printed(capsys, "leave", "--yes")
    assert not root.exists()


def test_only_a_repository_can_be_left(capsys: Captured, tmp_path: Path) -> None:
    Workspace.open(tmp_path / "team").close()
    misuse(capsys, "leave", str(tmp_path / "team"))
    assert is_workspace(tmp_path / "team")


def test_an_agent_cannot_leave(capsys: Captured, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Workspace.open(root_of(repository)).close()
    monkeypatch.setenv("WATCHROOM_AGENT", "claude*")
    status, _, err = run(capsys, "leave", "--yes")
    assert status == 1
    assert "claude*" in err
    assert is_workspace(root_of(repository))


def test_a_new_workspace_at_the_same_place_is_trusted(capsys: Captured, repository: Path) -> None:
    for _ in range(2):
        Workspace.open(root_of(repository), agents=["alice"]).close()
        printed(capsys, "verify")
        printed(capsys, "leave")


def test_leaving_forgets_the_seals_of_this_workspace_only(
    capsys: Captured, repository: Path, tmp_path: Path
) -> None:
    checkpoints = Path(state_folder(), SEAL_FOLDER)
    with Workspace.open(tmp_path / "team") as other:
        other.sealing.write_due(Event(), at_once=True)
    others = {each.name for each in checkpoints.iterdir()}
    with Workspace.open(root_of(repository), agents=["alice"]) as workspace:
        workspace.sealing.write_due(Event(), at_once=True)
        (checkpoints / f"{find_id(workspace.journal)}.posted-0").touch()
    assert len([*checkpoints.iterdir()]) == len(others) + 4, "by id and place, keys, and the posted seal"
    printed(capsys, "leave")
    assert {each.name for each in checkpoints.iterdir()} == others


@pytest.mark.parametrize("arguments", [(), ("--scenario", "repository")])
def test_a_removed_demo_leaves_nothing_in_the_state_folder(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    # A demo that lasts a minute is sealed when it ends.
    monkeypatch.setattr("watchroom.history.seal.writer.MAX_UNSEALED_SECONDS", 0)
    monkeypatch.setattr("watchroom.workspace._SEAL_SECONDS", 0.1)
    before = {*Path(state_folder()).glob("*/*")}
    printed(capsys, "demo", *arguments, "--headless", "--speed", "0", "--for", "1")
    assert {*Path(state_folder()).glob("*/*")} == before
