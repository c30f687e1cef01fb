"""docs/commands.md has every command, in the groups and the order of ``watchroom --help``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from watchroom_cli.commands import COMMANDS
from watchroom_cli.main import INTERRUPTED, OK, REFUSED, USAGE
from watchroom_tui.presentation.localization import load_texts

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/commands.md").read_text("utf-8")


def test_it_has_every_command_in_its_group() -> None:
    texts = load_texts("en")
    for group in dict.fromkeys(each.group for each in COMMANDS):
        heading = re.split("[:,] (?=who)", texts(f"cli.group.{group}"))[0].rstrip(":")
        section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
        typed = re.findall(r"^    watchroom ([a-z-]+)", section, flags=re.MULTILINE)
        assert [*dict.fromkeys(typed)] == [each.name for each in COMMANDS if each.group == group]


def test_it_has_every_exit_status() -> None:
    section = PAGE.split("\n## Exit status\n")[1].split("\n## ")[0]
    stated = [int(each) for each in re.findall(r"^\| (\d+) \|", section, flags=re.MULTILINE)]
    assert stated == [OK, REFUSED, USAGE, INTERRUPTED]


def test_the_extras_that_it_names_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = set(re.findall(r"watchroom\[([\w-]+)\]", PAGE))
    assert named
    assert named <= set(project["optional-dependencies"])
