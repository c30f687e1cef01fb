"""What the command line tells of itself: usage, help, and the page of keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.running import Captured, misuse, printed, refusal
from watchroom_tui.actions import keys_page
from watchroom_tui.commands import COMMANDS
from watchroom_tui.localization import load_texts


def test_without_a_command_or_with_an_unknown_one_the_usage_is_told(capsys: Captured) -> None:
    assert "usage: watchroom" in misuse(capsys)
    assert "usage: watchroom" in misuse(capsys, "nonsense")


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
