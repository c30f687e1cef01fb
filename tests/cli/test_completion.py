"""Scripts that complete commands, and the manual page, are made from the commands' own parsers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cli.running import Captured, printed
from watchroom_cli.commands import COMMANDS


def complete_in_bash(capsys: Captured, script: Path, *words: str) -> list[str]:
    """Return what bash offers for the last of ``words`` after ``watchroom``."""
    script.write_text(printed(capsys, "completion", "bash"))
    quoted = " ".join(f"'{word}'" for word in ("watchroom", *words))
    program = (
        f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words)};"
        " $(complete -p watchroom | grep -oE '_[a-z_]+' | head -1) watchroom"
        f" '{words[-1]}' ''; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    return [each.strip() for each in done.stdout.split()]


def test_bash_completes_commands_and_options(capsys: Captured, tmp_path: Path) -> None:
    script = tmp_path / "watchroom.bash"
    assert complete_in_bash(capsys, script, "chan") == ["changes"]
    assert "--follow" in complete_in_bash(capsys, script, "log", "--")
    assert "claude" in complete_in_bash(capsys, script, "attach", "c")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_has_every_command(capsys: Captured, shell: str) -> None:
    script = printed(capsys, "completion", shell)
    assert [each.name for each in COMMANDS if each.name not in script] == []


def test_the_manual_page_has_every_command_with_its_arguments(capsys: Captured) -> None:
    page = printed(capsys, "man")
    assert page.startswith(".TH")
    assert [each.name for each in COMMANDS if f"watchroom {each.name}" not in page.replace("\\", "")] == []
    assert "follow" in page
