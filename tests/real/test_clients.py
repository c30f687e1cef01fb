"""Real clients, started by Watchroom in a repository, against a model that follows a script."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from cli.running import as_typed
from real.scripted_model import Turn, serve_model
from trees.git_repo import ENVIRONMENT
from trees.git_repository import Repository
from watchroom import Workspace
from watchroom.agents.clients.registry import LAUNCHED_CLIENTS
from watchroom.features.trees.rows import REPO, grade_of, split_repo_path

pytestmark = pytest.mark.real

SECONDS: Final = 180
PATCH: Final = "*** Begin Patch\n{}\n*** End Patch"


class RealClient(NamedTuple):
    """How a client is run without a terminal.

    - ``words``: its arguments before the prompt, by the address of its model
    - ``environment``: further variables, by the same
    - ``turns``: the reading of a file, its change, and a new file, by the folder; before the change, a person
      changes the file
    """

    words: Callable[[str], list[str]]
    environment: Callable[[str], dict[str, str]]
    turns: Callable[[Path, Callable[[], object]], list[Turn]]


def _claude_turns(folder: Path, person: Callable[[], object]) -> list[Turn]:
    path = str(folder / "a.txt")
    return [
        Turn("Read", {"file_path": path}),
        Turn("Edit", {"file_path": path, "old_string": "two", "new_string": "TWO"}, person),
        Turn("Write", {"file_path": str(folder / "new.txt"), "content": "new\n"}),
    ]


def _codex_turns(folder: Path, person: Callable[[], object]) -> list[Turn]:
    change = "*** Update File: a.txt\n@@\n one\n-two\n+TWO\n three\n four\n five"
    return [
        Turn("exec", 'text(await tools.exec_command({cmd: "cat a.txt"}))'),
        Turn("exec", _apply(change), person),
        Turn("exec", _apply("*** Add File: new.txt\n+new")),
    ]


def _apply(files: str) -> str:
    return f"text(await tools.apply_patch({json.dumps(PATCH.format(files))}))"


def _opencode_turns(folder: Path, person: Callable[[], object]) -> list[Turn]:
    path = str(folder / "a.txt")
    return [
        Turn("read", {"filePath": path}),
        Turn("write", {"filePath": path, "content": "one\nTWO\nthree\nfour\nfive\n"}, person),
        Turn("write", {"filePath": str(folder / "new.txt"), "content": "new\n"}),
    ]


def _codex_words(address: str) -> list[str]:
    provider = f'model_providers.s={{name="s",base_url="{address}/v1",wire_api="responses"}}'
    return [
        *("exec", "--dangerously-bypass-hook-trust", "-s", "workspace-write"),
        *("-c", "model_provider=s", "-c", provider),
    ]


def _opencode_environment(address: str) -> dict[str, str]:
    options = {"baseURL": f"{address}/v1", "apiKey": "none"}
    model = "anthropic/claude-sonnet-4-5"
    settings = {"provider": {"anthropic": {"options": options}}, "model": model, "small_model": model}
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps({**settings, "autoupdate": False, "share": "disabled"}),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }


CLIENTS: Final = {
    "claude": RealClient(
        lambda address: ["-p", "--permission-mode", "acceptEdits", "--"],
        lambda address: {
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        _claude_turns,
    ),
    "codex": RealClient(_codex_words, lambda address: {"OPENAI_API_KEY": "none"}, _codex_turns),
    "opencode": RealClient(lambda address: ["run"], _opencode_environment, _opencode_turns),
}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_stale_change_keeps_the_lines_of_a_person(name: str, tmp_path: Path) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"NOT RUN: {name} is not installed")
    client, repository = CLIENTS[name], Repository(tmp_path / "project")
    repository.commit(a__txt="one\ntwo\nthree\nfour\nfive\n")
    after = "one\ntwo\nthree\nfour\nFIVE\n"
    (tmp_path / "home").mkdir()
    own = {"HOME": str(tmp_path / "home"), "PWD": str(repository.folder), **ENVIRONMENT}
    turns = client.turns(repository.folder, lambda: repository.write("a.txt", after))
    with serve_model(turns) as model:
        done = subprocess.run(
            as_typed(name, *client.words(model.address), "Do it"),
            cwd=repository.folder,
            env={**os.environ, **own, **client.environment(model.address)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert repository.read("a.txt") == "one\nTWO\nthree\nfour\nFIVE\n", done.stderr
    with Workspace.open(repository.root, create=False, scan=False) as workspace:
        rows = [row for row in workspace.journal.rows(0, limit=1000) if row.zone == REPO and row.version]
    found = [
        (split_repo_path(row.path)[1], row.actor, grade_of(row)) for row in rows if row.actor != "system"
    ]
    agent = f"{name}1"
    assert found == [
        ("a.txt", "outside", "external"),
        ("a.txt", agent, "tool"),
        ("new.txt", agent, "tool"),
    ]


PROMPT: Final = '--version of "a.txt"; $HOME'
"""A prompt that looks like an option, and is no word of a shell."""


@pytest.mark.parametrize("name", CLIENTS)
def test_a_race_gives_each_client_the_prompt_as_it_is(name: str, tmp_path: Path) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"NOT RUN: {name} is not installed")
    client, repository = CLIENTS[name], Repository(tmp_path / "project")
    repository.commit(a__txt="one\n")
    (tmp_path / "home").mkdir()
    variables = {**os.environ, "HOME": str(tmp_path / "home"), **ENVIRONMENT}
    with serve_model([]) as model:
        support = LAUNCHED_CLIENTS[name]
        own = [word for word in client.words(model.address) if word not in (support.batch[0], "--")]
        done = subprocess.run(
            as_typed("race", "2", "--json", "--client", shlex.join((name, *own)), "--", PROMPT),
            cwd=repository.folder,
            env={**variables, **client.environment(model.address)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        asked = model.asked
    assert done.returncode == 0, done.stderr
    # opencode quotes a word with spaces.
    shown = PROMPT.replace('"', '\\"') if name == "opencode" else PROMPT
    assert any(json.dumps(shown)[1:-1] in body for body in asked), asked
    agents = json.loads(done.stdout)["agents"]
    assert [each["state"] for each in agents] == ["done", "done"]
    assert {each for agent in agents for each in agent["agents"]} == {f"{name}1", f"{name}2"}


def test_a_copy_of_a_session_goes_on_in_a_new_tree(tmp_path: Path) -> None:
    program = shutil.which("claude")
    if program is None:
        pytest.skip("NOT RUN: claude is not installed")
    repository, forked = Repository(tmp_path / "project"), tmp_path / "project.trees" / "claude1-fork"
    repository.commit(a__txt="one\n")
    for name in ("home", "programs"):
        (tmp_path / name).mkdir()
    # The real one, which needs no terminal this way.
    wrapper = tmp_path / "programs" / "claude"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(program)} "$@" -p "What did I say?"\n')
    wrapper.chmod(0o755)
    write = Turn("Write", {"file_path": str(repository.folder / "new.txt"), "content": "new\n"})

    def run(address: str, *words: str, path: str) -> None:
        own = {"HOME": str(tmp_path / "home"), "PWD": str(repository.folder), **ENVIRONMENT, "PATH": path}
        done = subprocess.run(
            as_typed(*words),
            cwd=repository.folder,
            env={**os.environ, **own, **CLIENTS["claude"].environment(address)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    with serve_model([write]) as model:
        words = CLIENTS["claude"].words(model.address)
        run(model.address, "claude", *words, "Remember the pineapple", path=os.environ["PATH"])
        (session,) = (tmp_path / "home/.claude/projects").glob("*/*.jsonl")
        before, asked = session.read_bytes(), len(model.asked)
        run(model.address, "fork-session", "claude1", path=f"{wrapper.parent}:{os.environ['PATH']}")
        later = model.asked[asked:]
    assert any("pineapple" in each and "What did I say?" in each and str(forked) in each for each in later)
    assert session.read_bytes() == before
    assert (forked / "new.txt").read_text() == "new\n"
    with Workspace.open(repository.root, create=False, scan=False) as workspace:
        agents = {row.path.partition("/")[0] for row in workspace.session_zone.heads()}
    assert agents == {"claude1", "claude1-fork"}


PLUGIN: Final = Path(__file__).parents[2] / "tui" / "watchroom_cli" / "marketplace"
INSTALLS: Final = {
    "claude": [["claude", "plugin", "install", "watchroom", "--marketplace", str(PLUGIN)]],
    "codex": [
        ["codex", "plugin", "marketplace", "add", str(PLUGIN)],
        ["codex", "plugin", "add", "watchroom@watchroom"],
    ],
}
"""The commands that install the plugin."""


@pytest.mark.parametrize("is_started_by_us", [False, True], ids=["itself", "watchroom"])
@pytest.mark.parametrize("name", INSTALLS)
def test_a_client_with_the_plugin_reports_each_event_once(
    name: str, tmp_path: Path, *, is_started_by_us: bool
) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"NOT RUN: {name} is not installed")
    client, repository = CLIENTS[name], Repository(tmp_path / "project")
    repository.commit(a__txt="one\ntwo\nthree\nfour\nfive\n")
    Workspace.open(repository.root).close()
    for each in ("home", "programs"):
        (tmp_path / each).mkdir()
    program = tmp_path / "programs" / "watchroom"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m watchroom_cli.program "$@"\n')
    program.chmod(0o755)
    own = {"HOME": str(tmp_path / "home"), "PWD": str(repository.folder), **ENVIRONMENT}
    environment = {**os.environ, **own, "PATH": f"{program.parent}:{os.environ['PATH']}"}

    def run(*command: str, **more: str) -> str:
        done = subprocess.run(
            command,
            cwd=repository.folder,
            env={**environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    for command in INSTALLS[name]:
        run(*command)
    with serve_model(client.turns(repository.folder, lambda: None)) as model:
        words = [*client.words(model.address), "Do it"]
        start = as_typed(name, *words) if is_started_by_us else [name, *words]
        run(*start, **client.environment(model.address))
        asked = model.asked
    assert any("shared-work" in body for body in asked) is not is_started_by_us
    with Workspace.open(repository.root, create=False, scan=False) as workspace:
        rows = [*workspace.journal.rows(0, limit=1000)]
        assert [*workspace.registry.current().agents] == [f"{name}1"]
    written = [split_repo_path(row.path)[1] for row in rows if row.zone == REPO and row.actor == f"{name}1"]
    calls = [row.message for row in rows if row.tool == "client_call"]
    assert [each for each in written if each == "new.txt"] == ["new.txt"]
    assert len(calls) == len({*calls}) == 3, calls
