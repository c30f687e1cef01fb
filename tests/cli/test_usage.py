"""Usage, help, and the page of keys of the command line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cli.running import Captured, as_typed, misuse, printed, refusal
from pty_driver import Terminal
from watchroom import Workspace
from watchroom_cli.commands import COMMANDS
from watchroom_cli.main import USAGE
from watchroom_tui.keys.keymap import keys_page
from watchroom_tui.presentation.localization import load_texts


def test_an_unknown_command_prints_the_usage(capsys: Captured) -> None:
    said = misuse(capsys, "nonsense")
    assert said == "watchroom: unknown command “nonsense”. All commands: watchroom --help\n"
    assert "Did you mean show?" in misuse(capsys, "shwo", ".")
    assert "options follow the command" in misuse(capsys, "--utc", "log")
    assert printed(capsys, "help") == printed(capsys, "--help")
    assert printed(capsys, "help", "show") == printed(capsys, "show", "--help")


def test_without_a_command_and_a_workspace_first_steps_are_printed(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = misuse(capsys)
    assert all(f"watchroom {command} " in said for command in ("demo", "init", "attach"))
    tmp_path.rmdir()
    assert misuse(capsys) == said, "nor in a folder that was removed"


def test_without_a_command_the_nearest_workspace_above_is_opened(root: Path, tmp_path: Path) -> None:
    Workspace.open(root, agents=["alice"]).close()
    below = root / "agents" / "alice"
    with Terminal(as_typed(), 120, 40, cwd=str(below)) as terminal:
        terminal.wait_for_text("alice", timeout=30)
    ended = subprocess.run(as_typed(), cwd=below, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (USAGE, "")
    assert f"watchroom watch {root}" in ended.stderr
    assert f"watchroom show {root} needs" in ended.stderr


def test_help_names_every_command(capsys: Captured) -> None:
    out = printed(capsys, "--help")
    for command in COMMANDS:
        assert command.name in out
        assert load_texts("en")(f"cli.{command.name}.help") in " ".join(out.split())


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_has_help_of_its_own(capsys: Captured, command: str) -> None:
    assert f"usage: watchroom {command}" in printed(capsys, command, "--help")


@pytest.mark.parametrize(
    "arguments",
    [
        ("call", "{}", "alice", "collab_list"),
        ("prompt", "{}", "alice"),
        ("log", "{}"),
        ("show", "{}", "agents"),
        ("verify", "{}"),
        ("export", "{}", "{}-out"),
        ("open", "{}"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_folder_that_is_no_workspace_is_refused_and_left_alone(
    capsys: Captured, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    message = refusal(capsys, *(each.format(empty) for each in arguments))
    assert f"'{empty}' is not a workspace." in message
    assert "watchroom init DIR" in message
    assert list(tmp_path.rglob("*")) == [empty]


def test_keys_prints_the_page_of_keys(capsys: Captured) -> None:
    assert printed(capsys, "keys") == keys_page(load_texts("en")) + "\n"
    assert printed(capsys, "keys", "--language", "zh") == keys_page(load_texts("zh")) + "\n"


def test_a_view_can_precede_or_follow_the_folder(
    capsys: Captured, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Workspace.open(root, agents=["alice"]).close()
    shown = printed(capsys, "show", str(root), "agents")
    assert "alice" in shown
    assert printed(capsys, "show", "agents", str(root)) == shown
    said = misuse(capsys, "show", str(root), "agnts")
    assert "unknown view “agnts”. Did you mean agents?" in said
    assert printed(capsys, str(root), "show", "agents") == shown
    # A folder with the name of a view is still a folder.
    monkeypatch.chdir(root.parent)
    root.rename("agents")
    assert printed(capsys, "show", "agents", "agents") == shown
