"""``watchroom policy explain``: the rule that decides a call, and why earlier rules do not match."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from cli.running import Captured, misuse, printed, printed_json, refusal, run
from watchroom_cli.main import OK

RULES = """
[policy]
time_zone = "Asia/Shanghai"

[[policy.rules]]
name = "night"
hours = "22:00-06:00"
verdict = "ask"

[[policy.rules]]
name = "trial"
tool = "collab_*"
verdict = "deny"
mode = "test"

[[policy.rules]]
name = "secrets"
path = "secrets/**"
verdict = "deny"

[[policy.rules]]
tool = ["Bash", "run_command"]
command = "git *"
verdict = "allow"

[[policy.rules]]
tool = ["Bash", "run_command"]
verdict = "deny"
"""
NOON = "2026-11-23T12:00:00+08:00"


@pytest.fixture
def ruled(team: str) -> str:
    config = Path(team, ".watchroom/config.toml")
    config.write_text(config.read_text() + RULES)
    return team


def explained(capsys: Captured, root: str, *arguments: str, time: str = NOON) -> str:
    return printed(capsys, "policy", "explain", root, *arguments, "--time", time)


def test_the_deciding_rule_and_the_mismatches_before_it_are_printed(capsys: Captured, ruled: str) -> None:
    lines = explained(capsys, ruled, "alice", "collab_write", '{"filepath": "a/../secrets/key"}').splitlines()
    assert lines[0] == "Denied by rule 3 (secrets)."
    assert lines[1] == "Rule 2 (trial) is only a test: it would deny the call."
    night, trial, secrets = lines[3:]
    assert night.endswith("it is 12:00 CST, not 22:00-06:00")
    assert trial.endswith("matches, but is only a test")
    assert secrets.split()[:3] == ["3", "secrets", "deny"]
    assert "ask" in explained(capsys, ruled, "alice", "x", time="2026-11-23T23:00+08:00").splitlines()[0]
    unmatched = explained(capsys, ruled, "alice", "Bash", '{"command": "git log && rm x"}').splitlines()
    assert unmatched[0] == "Denied by rule 5."
    assert unmatched[-2].endswith("a part of the command does not match: git *")


def test_the_paths_of_a_client_are_those_of_its_folder(capsys: Captured, ruled: str, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "link").symlink_to("secrets")
    arguments = f'{{"file_path": "{tmp_path}/link/key"}}'
    within = ("--folder", str(tmp_path), "--time", NOON, "--json")
    found = printed_json(capsys, "policy", "explain", ruled, "bob", "Write", arguments, *within)
    assert (found["verdict"], found["rule"], found["paths"]) == ("deny", 3, ["link/key", "secrets/key"])


def test_a_path_in_a_linked_worktree_is_also_relative_to_it(
    capsys: Captured, ruled: str, tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    tree = repository / ".claude/worktrees/a"
    git(tmp_path, "init", "--quiet", str(repository))
    git(repository, "commit", "--quiet", "--allow-empty", "-m", "first")
    git(repository, "worktree", "add", "--quiet", str(tree))
    for folder, path, paths in (
        (repository, tree / "secrets/key", [".claude/worktrees/a/secrets/key", "secrets/key"]),
        (tree, repository / "secrets/key", [str(repository / "secrets/key"), "secrets/key"]),
        (repository / "app", tree / "app/secrets/key", [str(tree / "app/secrets/key"), "secrets/key"]),
    ):
        arguments = json.dumps({"file_path": str(path)})
        within = ("--folder", str(folder), "--time", NOON, "--json")
        found = printed_json(capsys, "policy", "explain", ruled, "bob", "Write", arguments, *within)
        assert (found["verdict"], found["paths"]) == ("deny", paths)


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("language", "command", "why"),
    [
        ("en", "git log; ls $x", "cannot be parsed: an expansion, at '$x'"),
        ("zh", "git log; ls $x", "无法解析：展开，位于 '$x'"),
        ("en", "git log > x", "cannot be parsed: a redirection, at '> x'"),
        ("en", "curl x | sh", "no part of the command matches: git *"),
    ],
)
def test_doubts_about_a_command_are_printed(
    capsys: Captured, ruled: str, monkeypatch: pytest.MonkeyPatch, language: str, command: str, why: str
) -> None:
    arguments = json.dumps({"command": command})
    whole = ("policy", "explain", ruled, "alice", "Bash", arguments, "--time", NOON)
    monkeypatch.setenv("WATCHROOM_LANGUAGE", language)
    lines = printed(capsys, *whole).splitlines()
    assert lines[-2].endswith(why)


def test_a_match_because_of_a_doubt_is_printed(capsys: Captured, ruled: str) -> None:
    config = Path(ruled, ".watchroom/config.toml")
    rule = '[[policy.rules]]\ncommand = "rm *"\nverdict = "deny"\n'
    config.write_text(config.read_text().replace("[[policy.rules]]", rule + "\n[[policy.rules]]", 1))
    arguments = '{"command": "curl x | sh"}'
    lines = explained(capsys, ruled, "alice", "Bash", arguments).splitlines()
    why = "matches and decides, because the command cannot be parsed: "
    assert lines[-1].endswith(why + "a shell runs text that is not visible here")
    found = printed_json(capsys, "policy", "explain", ruled, "alice", "Bash", arguments, "--json")
    assert found["rules"][0]["doubt"] == {"kind": "script", "text": ""}


def test_json_contains_each_checked_rule(capsys: Captured, ruled: str) -> None:
    arguments = ("alice", "run_command", '{"command": "git status"}', "--time", NOON, "--json")
    found = printed_json(capsys, "policy", "explain", ruled, *arguments)
    assert (found["verdict"], found["rule"], found["would"]) == ("allow", 4, None)
    assert [each["mismatch"] for each in found["rules"]] == ["hours", "tool", "no_path", None]
    assert found["rules"][3]["command"] == "git *"


def test_people_and_workspaces_without_rules_have_their_own_texts(capsys: Captured, ruled: str) -> None:
    assert "people" in explained(capsys, ruled, "human:dana", "Bash")
    Path(ruled, ".watchroom/config.toml").write_text("[agents.alice]\n")
    assert "no rules" in explained(capsys, ruled, "alice", "Bash")


def test_a_file_that_is_not_valid_is_reported_and_the_last_valid_one_explained(
    capsys: Captured, ruled: str
) -> None:
    assert "rule 5" in explained(capsys, ruled, "alice", "Bash", '{"command": "ls"}')
    config = Path(ruled, ".watchroom/config.toml")
    config.write_text(config.read_text() + '\n[[policy.rules]]\nverdict = "no"\n')
    arguments = ("alice", "Bash", '{"command": "ls"}', "--time", NOON)
    status, out, err = run(capsys, "policy", "explain", ruled, *arguments)
    assert (status, out.splitlines()[0]) == (OK, "Denied by rule 5.")
    assert "policy.rules 6: verdict = 'no' (allow, ask, deny)" in err


def test_an_invalid_call_is_refused(capsys: Captured, ruled: str) -> None:
    assert "alice" in refusal(capsys, "policy", "explain", ruled, "nobody", "Bash")
    assert "JSON" in misuse(capsys, "policy", "explain", ruled, "alice", "Bash", "[1]")
