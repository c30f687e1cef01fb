"""The page on repositories: its commands and files are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from watchroom.agents.clients.registry import LAUNCHED_CLIENTS, hooks_of
from watchroom.features.trees.rows import GRADES
from watchroom_cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/repository.md").read_text(encoding="utf-8")


def test_the_page_names_every_client_that_can_be_started() -> None:
    typed = re.findall(r"^    watchroom ([a-z]+)", PAGE, flags=re.MULTILINE)
    assert LAUNCHED_CLIENTS.keys() <= set(typed)
    assert {"attach", "leave"} <= set(typed)


def test_the_page_names_the_files_and_the_grades() -> None:
    assert hooks_of("claude").hooks.file in PAGE
    personal = hooks_of("codex").personal
    assert personal is not None
    for word in (personal.variable, personal.folder, personal.name, *GRADES):
        assert f"`{word}`" in PAGE


def test_the_overview_begins_with_the_commands_of_a_repository() -> None:
    assert [each.name for each in COMMANDS][: len(LAUNCHED_CLIENTS) + 1] == [*LAUNCHED_CLIENTS, "leave"]


def test_the_first_lines_of_the_readme_lead_to_the_page() -> None:
    for name in ("README.md", "README.zh.md"):
        above = (ROOT / name).read_text(encoding="utf-8").split("\n## ")[0]
        assert "    watchroom claude" in above
        assert "(docs/repository.md)" in above
