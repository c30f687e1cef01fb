"""The page on tasks, tried as it is written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from watchroom import Workspace
from watchroom.agents.society import ROLES, build_system_prompt
from watchroom.features.calls.tool_registry import all_tools
from watchroom.features.config.rows import parse_config
from watchroom.features.tasks.rows import TaskLimits
from watchroom.features.tasks.rules import Member
from watchroom.texts import LANGUAGES, Language

PAGE = (Path(__file__).parents[2] / "docs/tasks.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_example_runs_as_it_stands(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "probe") as workspace:
        if workspace.commands.sandbox.best is None:
            pytest.skip("no sandbox works here, so no command runs: bubblewrap is to be installed")
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLE], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "done\n"
    assert (tmp_path / "app/calculator/evaluate.py").exists()


def test_every_tool_and_role_of_a_task_stands_in_a_table() -> None:
    named = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| `.*$", PAGE, flags=re.MULTILINE))))
    of_tasks = {each.name for each in all_tools().values() if each.toolset in ("file", "agent")}
    assert of_tasks <= named
    assert set(ROLES) <= named


def test_the_limits_are_those_of_a_task() -> None:
    assert TaskLimits() == (4, 12, 300)
    assert "four layers beneath its first agent and twelve agents at a time" in PAGE
    assert "at most three hundred steps" in PAGE


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("role", [*ROLES, "tester"])
def test_each_role_is_told_who_it_is(role: str, language: Language) -> None:
    prompt = build_system_prompt(Member("ada", role, "mid", "", "t1", 0, None, None), language)
    assert "`ada`" in prompt
    assert "`user`" in prompt
    assert "$" not in prompt


def test_the_settings_are_understood() -> None:
    (settings,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    config = parse_config(settings)
    assert config.allowed_hosts == ("example.org", "*.example.com")
    assert config.unfenced_commands == "ask"
