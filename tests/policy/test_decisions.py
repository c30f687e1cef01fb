"""Decisions of the policy about calls: the first rule that matches decides."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchroom.errors import ConfigInvalid
from watchroom.features.config.rows import Agent, Config, dump_config, parse_config
from watchroom.features.policy.rules import PolicyDecision, PolicyRules, decide, policy_subject
from watchroom.features.policy.shell_reader import split_command

MONDAY_NOON = int(datetime(2026, 11, 23, 12, 0, tzinfo=UTC).timestamp()) * 10**9
HOUR = 3600 * 10**9


def rules(*entries: str, top: str = "") -> PolicyRules:
    """Parse rules whose entries are each written in one line with semicolons."""
    lines = [f"[[policy.rules]]\n{entry.replace('; ', chr(10))}" for entry in entries]
    return parse_config("\n".join([f"[policy]\n{top}", *lines])).policy


def said(
    policy: PolicyRules, tool: str, arguments: Mapping[str, Any], agent: str = "alice", now: int = MONDAY_NOON
) -> PolicyDecision:
    return decide(policy, agent, tool, arguments, now)


def verdict(policy: PolicyRules, tool: str, **arguments: Any) -> str:
    return said(policy, tool, arguments).verdict


def runs(policy: PolicyRules, command: str) -> str:
    return verdict(policy, "run_command", command=command)


def test_the_first_rule_that_matches_decides() -> None:
    policy = rules(
        'agent = "bob"; verdict = "ask"',
        'name = "plans"; tool = ["collab_*", "Write"]; path = "plans/**"; verdict = "allow"',
        'path = "**"; verdict = "deny"',
    )
    decision = said(policy, "collab_write", {"filepath": "plans/a/b.md"})
    assert (decision.verdict, decision.number, decision.name) == ("allow", 2, "plans")
    assert [check.mismatch for check in decision.checks] == ["agent", ""]
    refused = said(policy, "private_write", {"filename": "plans/a.md"})
    assert [check.mismatch for check in refused.checks] == ["agent", "tool", ""]
    assert said(policy, "collab_list", {}).number == 0
    assert [check.mismatch for check in said(policy, "Write", {}).checks] == ["agent", "no_path", "no_path"]
    assert said(policy, "collab_list", {}, agent="bob").verdict == "ask"


def test_rules_apply_to_agents_and_not_to_people() -> None:
    policy = rules('tool = "nothing"; verdict = "deny"')
    assert policy.applies_to("alice")
    assert not policy.applies_to("human:dana")
    assert not rules().applies_to("alice")


def test_of_a_command_it_is_said_whether_all_of_it_or_a_part_is_not_allowed() -> None:
    policy = rules('command = "git *"; verdict = "allow"')
    for command, mismatch in (("git log; rm -r a", "command_part"), ("rm -r a; git log", "command")):
        (check,) = said(policy, "run_command", {"command": command}).checks
        assert check.mismatch == mismatch


def test_people_are_not_subject_to_it() -> None:
    everything = rules('verdict = "deny"')
    assert said(everything, "collab_write", {}, agent="human:dana").verdict == "allow"
    assert said(everything, "collab_write", {}, agent="dana").verdict == "deny"


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("plan.md", "plan.md", True),
        ("plan.md", "a/plan.md", False),
        ("*.md", "a/plan.md", False),
        ("**/*.md", "plan.md", True),
        ("**/*.md", "a/b/plan.md", True),
        ("a/**", "a", True),
        ("a/**/z", "a/b/c/z", True),
        ("a/**/z", "a/b/c/zz", False),
        ("a/?.md", "a/é.md", True),
        ("a/*/c", "a/b/b/c", False),
        ("**/.env", "/etc/.env", True),
        ("*/x", "/x", False),
        ("/etc/**", "/etc/passwd", True),
        ("/etc/**", "etc/passwd", False),
        ("secrets/**", "open/../secrets/key", True),
        ("secrets/**", "./secrets//key", True),
        ("secrets/**", "secrets/../open/key", False),
        ("[a]/x", "a/x", False),
        ("secrets/**", "Secrets/KEY", True),
    ],
)
def test_a_path_is_matched_name_by_name_after_its_dots_are_gone(
    pattern: str, path: str, matches: bool
) -> None:
    policy = rules(f'path = "{pattern}"; verdict = "deny"')
    assert (verdict(policy, "x", filepath=path) == "deny") is matches


@given(st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=6), st.data())
def test_names_replaced_by_asterisks_still_match(names: list[str], data: st.DataObject) -> None:
    pattern = [data.draw(st.sampled_from([name, "*", f"{name[0]}*", "?" * len(name)])) for name in names]
    start = data.draw(st.integers(0, len(names)))
    end = data.draw(st.integers(start, len(names)))
    pattern[start:end] = ["**"]
    policy = rules(f'path = "{"/".join(pattern)}"; verdict = "deny"')
    assert verdict(policy, "x", path="/".join(names)) == "deny"
    if "**" not in "".join(pattern[: start + 1]):
        return
    other = rules(f'path = "{"/".join([*pattern, "zz"])}"; verdict = "deny"')
    assert verdict(other, "x", path="/".join(names)) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "cd /tmp && rm -rf x",
        "ls; rm -rf x",
        "ls | rm -rf x",
        "ls & rm -rf x",
        "echo a\nrm -rf x",
        "echo $(rm -rf x)",
        'echo "$(rm -rf x)"',
        'echo "`rm -rf x`"',
        "(cd x; rm -rf y)",
        "f() { rm -rf x; }",
        "if true; then rm -rf x; fi",
        "A=1 B='2 3' rm -rf x",
        ">log rm -rf x",
        "2> log rm -rf x",
        "sudo -u root rm -rf x",
        "sudo -u a -g b -p c -k rm -rf x",
        "env A=1 rm -rf x",
        "ls | xargs -n 1 rm -rf",
        "/bin/rm -rf x",
        "'rm' -rf x",
        "r\\m -rf x",
        "rm  -rf   x",
        "rm \\\n-rf x",
        "bash -lc 'ls && rm -rf x'",
        "sudo sh -c 'rm -rf x'",
        "eval 'rm -rf x'",
        "echo hi # don't\nrm -rf x",
        "cat <<EOF\ndon't\nEOF\nrm -rf x; echo 'x'",
        "bash <<EOF\nrm -rf x\nEOF",
        "cat <<-'EOF'\n\tit's\n\tEOF\nrm -rf x; echo 'x'",
        "cat <<< EOF\nrm -rf x",
        "echo $'a\\'b'; rm -rf x; echo 'c'",
        "echo >&2 a && rm -rf x",
    ],
)
def test_a_denied_command_is_found_in_each_part_of_another_one(command: str) -> None:
    policy = rules('command = ["rm -rf *", "rm -rf"]; verdict = "deny"')
    assert runs(policy, command) == "deny"
    assert runs(policy, command.replace("rm", "ls").replace("r\\m", "ls")) == "allow"


@pytest.mark.parametrize(
    ("command", "is_allowed"),
    [
        ("git status", True),
        ("git log | git shortlog", True),
        ("git log 2>&1", True),
        ("git commit -m 'a; b && c'", True),
        ("git status && rm x", False),
        ("git status; rm x", False),
        ("git commit -m $(rm x)", False),
        ('git commit -m "`rm x`"', False),
        ("git status\nrm x", False),
        ("A=1 git status", False),
        ("git status > f", False),
        ("git status < f", False),
        ("git status 2>/dev/null", True),
        ("git status $x", False),
        ("git 'sta'tus", True),
        ("'git status'", False),
        ("git status # all", False),
        ("git *", False),
        ("git status &&", False),
        ("/usr/bin/git status", False),
        ("git add \\\n  a", True),
        ("git add a\\\nb", False),
        ("git add 'é'", True),
        ("git add é", False),
        ("git add\u3000a", False),
        ("git status\r\nmake", False),
        ("git status \\;#; make", False),
        ("git status \\&#; make", False),
        ("git status \\|#; make", False),
        ("git status \\(#; make", False),
        ("git status ${x:- #}; make", False),
        ("git status ${x/ #/}; make", False),
        ('git status "${x:-"\'"}"; make #\'', False),
        ("git status \\\\\n make", False),
        ("git status \\\\\n git log", True),
        ("git commit -m 'unended", False),
        ("git " + "; git ".join("x" * 3000), False),
    ],
)
def test_a_command_is_allowed_only_where_all_of_its_parts_are(command: str, is_allowed: bool) -> None:
    policy = rules('command = ["git *", "git"]; verdict = "allow"', 'verdict = "deny"')
    assert runs(policy, command) == ("allow" if is_allowed else "deny")


def test_a_command_of_more_parts_than_are_looked_at_matches_what_denies() -> None:
    policy = rules('command = "rm *"; verdict = "deny"')
    assert runs(policy, "true;" * 3000 + "rm x") == "deny"
    assert runs(policy, "$(" * 100 + "rm x" + ")" * 100) == "deny"


@given(st.text(alphabet="ab '\"\\$()`;&|<>\n#{}", max_size=60))
def test_whatever_a_command_says_it_is_taken_apart(command: str) -> None:
    found = split_command(command)
    assert found.doubt is not None or "`" in command or all(part in command for part in found.parts)


@pytest.mark.parametrize(
    ("entry", "hour", "matches"),
    [
        ('hours = "09:00-18:00"', 12, True),
        ('hours = "09:00-12:00"', 12, False),
        ('hours = "12:00-24:00"', 12, True),
        ('hours = "22:00-06:00"', 23, True),
        ('hours = "22:00-06:00"', 29, True),
        ('hours = "22:00-06:00"', 12, False),
        ('days = "mon"', 12, True),
        ('days = "sat-sun"', 12, False),
        ('days = ["fri-mon"]', 12, True),
        ('days = "mon"; hours = "22:00-06:00"', 29, True),
        ('days = "tue"; hours = "22:00-06:00"', 29, False),
    ],
)
def test_hours_and_days_are_those_of_the_moment(entry: str, hour: int, matches: bool) -> None:
    policy = rules(f'{entry}; verdict = "deny"')
    decision = said(policy, "x", {}, now=MONDAY_NOON + (hour - 12) * HOUR)
    assert (decision.verdict == "deny") is matches


def test_hours_are_those_of_the_time_zone() -> None:
    policy = rules('hours = "20:00-21:00"; verdict = "deny"', top='time_zone = "Asia/Shanghai"')
    assert verdict(policy, "x") == "deny"


def test_a_rule_that_is_a_test_decides_nothing_and_says_what_it_would_have_done() -> None:
    policy = rules('name = "strict"; verdict = "deny"; mode = "test"', 'verdict = "ask"')
    decision = said(policy, "x", {})
    assert (decision.verdict, decision.number, decision.would_differ) == ("ask", 2, True)
    assert decision.tested is not None
    assert (decision.tested.number, decision.tested.rule.name) == (1, "strict")
    all_tests = rules('verdict = "allow"', 'verdict = "deny"', top='mode = "test"')
    quiet = said(all_tests, "x", {})
    assert (quiet.verdict, quiet.number, quiet.would_differ) == ("allow", 0, False)


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"file_path": "/project/secrets/key"}, "secrets/key"),
        ({"notebook_path": "secrets/a.ipynb"}, "secrets/*"),
        ({"path": "../x"}, "/x"),
        ({"edits": [{"file_path": "secrets/key"}]}, "secrets/*"),
        ({"changes": {"secrets/key": {"add": "x"}}}, "secrets/*"),
        ({"input": "*** Begin Patch\n*** Update File: secrets/key\n*** Move to: b\n"}, "secrets/*"),
        ({"command": ["apply_patch", "*** Begin Patch\n*** Add File: secrets/key\n"]}, "secrets/*"),
        ({"input": "*** Begin Patch\n  *** Update File:secrets/key  \n"}, "secrets/*"),
        ({"file_path": "secrets/a\0b"}, "secrets/*"),
        ({"file_path": "secrets/a\ud800"}, "secrets/*"),
        ({"command": "apply_patch <<'E'\n*** Delete File: secrets/key\nE"}, "secrets/*"),
        ({"source": "a", "destination": "secrets/b"}, "secrets/*"),
        ({"file_path": "link/key"}, "secrets/*"),
    ],
)
def test_the_paths_of_common_clients_tools_are_found(arguments: dict[str, Any], path: str) -> None:
    policy = rules(f'path = "{path}"; verdict = "deny"')
    subject = policy_subject(
        arguments, folder="/project", resolve=lambda given: given.replace("/project/link", "/project/secrets")
    )
    assert decide(policy, "alice", "Edit", subject, MONDAY_NOON).verdict == "deny"


def test_upper_and_lower_case_of_a_path_are_told_apart_only_by_what_allows() -> None:
    policy = rules('path = "Docs/**"; verdict = "allow"', 'path = "**"; verdict = "ask"')
    assert verdict(policy, "x", path="Docs/a") == "allow"
    assert verdict(policy, "x", path="docs/a") == "ask"


def test_a_path_counts_by_the_folder_in_which_a_client_began() -> None:
    policy = rules('path = "secrets/**"; verdict = "deny"')
    for path in ("key", "/project/secrets/key"):
        subject = policy_subject({"file_path": path}, folder="/project", cwd="/project/secrets")
        assert subject.paths == ("secrets/key",)
        assert decide(policy, "alice", "Write", subject, MONDAY_NOON).verdict == "deny"


def test_no_folder_of_a_client_that_holds_a_nul_raises() -> None:
    """The folder of a client may also be its only working tree."""
    folder = "/project\0"
    subject = policy_subject(
        {"file_path": "a.md"}, folder=folder, worktrees=(folder,), resolve=os.path.realpath
    )
    assert "a.md" in subject.paths


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "rm -rf x"},
        {"cmd": "ls && rm -rf x"},
        {"command": ["bash", "-lc", "rm -rf x"]},
        {"command": ["rm", "-rf", "x"]},
    ],
)
def test_the_commands_of_common_clients_tools_are_found(arguments: dict[str, Any]) -> None:
    assert said(rules('command = "rm -rf *"; verdict = "deny"'), "Bash", arguments).verdict == "deny"


@pytest.mark.parametrize(
    ("first", "second"),
    [("git log '", "rm -rf x\n'"), ("git log <<E", "rm -rf x\nE"), ("git log #", "rm -rf x")],
)
def test_arguments_with_commands_are_read_each_for_itself(first: str, second: str) -> None:
    """The policy does not know which command the tool executes, so each of them counts."""
    arguments = {"command": first, "cmd": second}
    allowing = rules('command = "git log*"; verdict = "allow"', 'verdict = "deny"')
    assert said(allowing, "exec", arguments).verdict == "deny"
    denying = rules('command = "rm -rf *"; verdict = "deny"')
    assert said(denying, "exec", arguments).checks[0].mismatch == ""
    assert said(denying, "exec", {"command": "git log", "cmd": "git status"}).verdict == "allow"


def test_a_patch_is_not_read_as_commands_that_a_shell_runs() -> None:
    patch = "*** Begin Patch\n*** Add File: a\n+don't\n*** End Patch"
    denying = rules('command = "rm -rf *"; verdict = "deny"')
    assert said(denying, "apply_patch", {"command": patch}).verdict == "allow"
    assert said(denying, "Bash", {"command": patch}).verdict == "deny"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("policy = 3", "policy"),
        ("[policy]\nrule = 1", "policy: 'rule' (mode, time_zone, rules)"),
        ('[policy]\nmode = "off"', "policy: mode = 'off' (enforce, test)"),
        ('[policy]\ntime_zone = "Mars/Olympus"', "policy.time_zone = 'Mars/Olympus'"),
        ('[policy]\ntime_zone = "../../etc/passwd"', "policy.time_zone"),
        (f'[policy]\ntime_zone = "{"Europe/Berlin" * 3000}"', "policy.time_zone"),
        ('[policy.rules]\nverdict = "deny"', "policy.rules ([[policy.rules]])"),
        ('[[policy.rules]]\nverdict = "allow"\n[[policy.rules]]\n', "policy.rules 2: verdict = None"),
        ('[[policy.rules]]\nverdict = "no"', "policy.rules 1: verdict = 'no' (allow, ask, deny)"),
        ('[[policy.rules]]\nverdict = "ask"\ntools = "x"', "policy.rules 1: 'tools' (name, tool, agent"),
        ('[[policy.rules]]\nverdict = "ask"\ntool = 3', "policy.rules 1: tool = 3 (1 … 200)"),
        ('[[policy.rules]]\nverdict = "ask"\ntool = []', "policy.rules 1: tool: 0 (1 … 20)"),
        ('[[policy.rules]]\nverdict = "ask"\npath = "a/../b"', "policy.rules 1: path = 'a/../b'"),
        ('[[policy.rules]]\nverdict = "ask"\npath = "a"\ncommand = "b"', "policy.rules 1: path, command"),
        ('[[policy.rules]]\nverdict = "ask"\nhours = "9-18"', "policy.rules 1: hours = '9-18'"),
        ('[[policy.rules]]\nverdict = "ask"\nhours = "24:30-18:00"', "policy.rules 1: hours"),
        ('[[policy.rules]]\nverdict = "ask"\ndays = "monday"', "policy.rules 1: days = 'monday' (mon, tue"),
        ('[[policy.rules]]\nverdict = "ask"\n' * 101, "policy.rules: 101 (0 … 100)"),
        ('[[policy.rules]]\nverdict = "ask"\nname = "a\\u001bb"', "policy.rules 1: name (1 … "),
        (f'[[policy.rules]]\nverdict = "ask"\npath = "{"a" * 201}"', "policy.rules 1: path = "),
    ],
)
def test_an_entry_that_is_not_valid_is_named(text: str, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        parse_config(text)
    assert problem in str(refused.value.values["problem"])


def test_registering_an_agent_keeps_the_rules() -> None:
    policy = rules(
        'name = "night"; tool = ["a*", "b"]; agent = "x"; path = "p/**"; hours = "22:00-06:00"; '
        'days = ["fri", "sat"]; verdict = "ask"; mode = "test"',
        'command = "rm *"; verdict = "deny"',
        top='mode = "test"\ntime_zone = "Europe/Berlin"',
    )
    config = Config(policy=policy).with_agents([Agent("alice")])
    assert parse_config(dump_config(config)) == config


def test_what_a_call_is_about_is_cut_where_it_names_more_than_two_hundred_paths() -> None:
    files = [{"path": f"{number}.md"} for number in range(201)]
    some, all_of_them = (policy_subject({"files": given}) for given in (files[:200], files))
    assert (len(some.paths), some.is_cut) == (200, False)
    assert (all_of_them.paths, all_of_them.is_cut) == (some.paths, True)
