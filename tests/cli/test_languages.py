"""Commands in Chinese, in an unknown language, and with an ASCII terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok
from cli.running import Captured, misuse, printed, refusal, spawned
from watchroom import Workspace
from watchroom.texts import catalogue
from watchroom_cli.main import LANGUAGE_VARIABLE, OK
from watchroom_tui.keys.keymap import keys_page
from watchroom_tui.presentation.localization import load_texts


def test_the_language_variable_turns_help_refusals_and_words_chinese(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, team: str
) -> None:
    monkeypatch.setenv(LANGUAGE_VARIABLE, "zh")
    words = load_texts("zh")
    assert words("cli.description") in printed(capsys, "--help")
    assert catalogue("zh")("error.workspace_not_found.suggestion") in refusal(capsys, "log", str(tmp_path))
    assert words("cli.moment.wrong", given="soon") in misuse(capsys, "show", team, "files", "--at", "soon")
    assert words("need.kind.conflict") == "冲突"
    assert words("row.conflict", base=1, current=2) in printed(capsys, "log", team)
    assert printed(capsys, "keys") == keys_page(words) + "\n"


def test_an_unknown_language_in_the_variable_means_english(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LANGUAGE_VARIABLE, "xx")
    assert load_texts("en")("cli.description") in printed(capsys, "--help")


def test_ascii_output_does_not_crash(team: str) -> None:
    done = spawned("log", team, WATCHROOM_LANGUAGE="zh", PYTHONUTF8="0", LC_ALL="C", PYTHONIOENCODING="ascii")
    assert done.returncode == OK, done.stderr
    assert "plan.md" in done.stdout


def test_file_names_outside_of_the_locale_are_utf8(team: str) -> None:
    with Workspace.open(team, create=False) as workspace:
        ok(workspace.tools("alice"), "save_to_my_workspace", filename="港口.md", content="鹿特丹")
    done = spawned("verify", team, PYTHONUTF8="0", LC_ALL="C")
    assert done.returncode == OK, done.stdout + done.stderr
