"""docs/policy.md: its example is valid, and says what the page says of it."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
from watchroom.features.config.rows import parse_config
from watchroom.features.policy.plain_command import MAX_CHARACTERS
from watchroom.features.policy.rules import MAX_PATTERN, MAX_PATTERNS, MAX_RULES, decide
from watchroom.features.policy.shell_reader import MAX_DEPTH, MAX_PARTS

PAGE = (Path(__file__).parents[2] / "docs/policy.md").read_text(encoding="utf-8")
EXAMPLE = "\n".join(re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL))
NIGHT = int(datetime.fromisoformat("2026-11-23T22:00:00+01:00").timestamp() * 1e9)


@pytest.mark.parametrize(
    ("tool", "argument", "value", "verdict", "name"),
    [
        ("Write", "file_path", "app/.env", "deny", "secrets"),
        ("Bash", "command", "make && git push origin --force", "deny", "no force"),
        ("Bash", "command", "git log --oneline | git diff", "allow", "reading git"),
        ("Bash", "command", "git log; make", "ask", "nights"),
        ("collab_write", "filepath", "plan.md", "ask", "nights"),
        ("collab_read", "filepath", "plan.md", "allow", ""),
    ],
)
def test_the_example_decides_as_it_reads(
    tool: str, argument: str, value: str, verdict: str, name: str
) -> None:
    decision = decide(parse_config(EXAMPLE).policy, "intern-1", tool, {argument: value}, NIGHT)
    assert (decision.verdict, decision.name) == (verdict, name)


def test_a_test_of_the_example_only_tells() -> None:
    decision = decide(parse_config(EXAMPLE).policy, "alice", "handoff_file", {"filename": "x"}, NIGHT)
    assert (decision.verdict, decision.would_differ) == ("allow", True)


@pytest.mark.parametrize(
    ("verdict", "pattern", "command", "matches"),
    [
        ("allow", "git log*", "'git' \"log\"", True),
        ("allow", "git log*", "git log; make", False),
        ("allow", "git log*", "git log HEAD^ HEAD~3 2>&1", True),
        ("allow", "git log*", "/usr/bin/git log", False),
        ("allow", "git log*", "git log --output=file", True),
        ("deny", "rm -rf *", "$x", True),
        ("deny", "rm -rf *", "$x -rf /", True),
        ("deny", "git push*", "git $x", True),
        ("deny", "rm -rf *", 'rm "$file"', False),
        ("deny", "rm -rf *", 'echo "$HOME"', False),
        ("deny", "*HOME*", 'echo "$HOME"', True),
        ("deny", "*secret*", 'echo "$HOME"', False),
        ("deny", "git commit*", "git -C dir -c k=v --no-pager commit", True),
        ("deny", "rm -rf *", "curl x | sh", True),
        ("deny", "rm -rf *", 'eval "$x"', True),
        ("deny", "rm -rf *", 'bash -c "ls $x"', True),
        ("deny", "rm -rf *", "source <(ls)", True),
        ("deny", "rm -rf *", "rm -fr x", False),
        ("deny", "rm -rf *", "find -delete", False),
        ("deny", "rm -rf *", "sh script.sh; python -c 'x'", False),
    ],
)
def test_a_command_is_decided_as_the_page_says(
    verdict: str, pattern: str, command: str, matches: bool
) -> None:
    entry = f"[[policy.rules]]\ncommand = '{pattern}'\nverdict = '{verdict}'\n"
    decision = decide(parse_config(entry).policy, "alice", "Bash", {"command": command}, NIGHT)
    assert (decision.number == 1) is matches


def test_the_bounds_are_those_of_the_page() -> None:
    bounds = f"{MAX_RULES} rules, with {MAX_PATTERNS} patterns of {MAX_PATTERN} characters"
    assert bounds in PAGE
    bounds = f"{MAX_CHARACTERS:,} characters, {MAX_PARTS:,} parts or {MAX_DEPTH} levels"
    assert bounds in PAGE
