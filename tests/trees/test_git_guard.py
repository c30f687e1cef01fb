"""Git commands that are refused while other agents work in the same tree, and commands that change no file."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy.shell_commands import random_command
from watchroom.features.trees.git_guard import MAX_SHOWN, RefusedGit, find_refused, is_read_only
from watchroom.texts import LANGUAGES, catalogue

REFUSED = {
    "git checkout main": "branch",
    "git checkout -b new": "branch",
    "git checkout": "branch",
    "git checkout -- a.py": "discard",
    "git checkout .": "discard",
    "git checkout -p a.py": "discard",
    "git switch -c new": "branch",
    "git restore a.py": "discard",
    "git restore --staged --worktree a.py": "discard",
    "git restore -SW a.py": "discard",
    "git restore -s HEAD~1 a.py": "discard",
    "git reset --hard": "discard",
    "git reset --har HEAD~1": "discard",
    "git reset --merge": "discard",
    "git reset --soft HEAD~1": "history",
    "git reset HEAD~1": "history",
    "git reset main a.py": "history",
    "git stash": "discard",
    "git stash push -m x": "discard",
    "git stash pop": "discard",
    "git stash drop": "discard",
    "git clean -fd": "discard",
    "git clean -fd -e n": "discard",
    "git rebase main": "history",
    "git merge topic": "history",
    "git merge --abort": "history",
    "git pull": "history",
    "git pull --rebase": "history",
    "git cherry-pick abc": "history",
    "git revert --no-edit HEAD": "history",
    "git am x.patch": "history",
    "git bisect start": "branch",
    "git add -A": "stage_all",
    "git add --al": "stage_all",
    "git add .": "stage_all",
    "git add ./": "stage_all",
    "git add :/": "stage_all",
    "git add *": "stage_all",
    "git add -u": "stage_all",
    "git add -vu": "stage_all",
    "git add -A .": "stage_all",
    "git add ':!secret'": "stage_all",
    "git stage -A": "stage_all",
    "git commit -a": "commit_all",
    "git commit -am 'fix'": "commit_all",
    "git commit -m 'fix' --all": "commit_all",
    "git commit -qam fix": "commit_all",
    "git commit . -m x": "commit_all",
}
ALLOWED = [
    "",
    "ls",
    "git",
    "git status",
    "git log --oneline -5",
    "git diff HEAD -- a.py",
    "git show HEAD:a.py",
    "git fetch",
    "git push",
    "git branch new",
    "git worktree add ../x HEAD",
    "git checkout --help",
    "git stash list",
    "git stash show -p stash@{0}",
    "git clean -n",
    "git clean -fdn",
    "git add a.py 'b c.py'",
    "git add -A src/mine",
    "git add -p",
    "git add -n .",
    "git commit -m fix",
    "git commit -m 'all: -a'",
    "git commit -ma",
    'git commit -m "add -A; git checkout ."',
    "git commit --amend --no-edit",
    "git commit -F - -- a.py",
    "git commit -Ca",
    "git commit --dry-run -a",
    "git reset",
    "git reset -q HEAD",
    "git restore --staged a.py",
    "git merge-base a b",
    "git rebase --show-current-patch",
    "echo git checkout main",
    "grep -r 'git checkout' .",
    "cat <<'E'\ngit checkout .\nE",
    "git $subcommand x",
    "gitk",
    "./git-checkout.sh",
]


@pytest.mark.parametrize(("command", "rule"), REFUSED.items())
def test_what_could_lose_or_take_the_work_of_others_is_refused(command: str, rule: str) -> None:
    (found,) = find_refused(command)
    assert (found.rule, found.folder) == (rule, ".")


@pytest.mark.parametrize("command", ALLOWED)
def test_other_commands_are_not_refused(command: str) -> None:
    assert find_refused(command) == ()


@pytest.mark.parametrize(
    "command",
    [
        "make && git checkout main",
        "git log | head; git checkout main",
        "(git checkout main)",
        "x=$(git checkout main)",
        "bash -lc 'git checkout main'",
        "sudo -u x env A=1 timeout 5 git checkout main",
        "/usr/bin/git checkout main",
        "git --no-pager -c core.pager=cat checkout main",
        "if true; then git checkout main; fi",
        "git 'check'out main",
        "xargs git checkout main < names",
        "eval git checkout main",
        "A=1 git checkout main",
        "git-checkout main",
        "bash <<'E'\ngit checkout main\nE",
        "git checkout main 2>&1 | tail -5",
        "\\git checkout main",
    ],
)
def test_a_command_is_found_wherever_it_is(command: str) -> None:
    assert [each.rule for each in find_refused(command)] == ["branch"]


@pytest.mark.parametrize(
    ("command", "folders"),
    [
        ("git -C /elsewhere checkout x", ["/elsewhere"]),
        ("git -C a -C ../b checkout x", ["b"]),
        ("git --work-tree=/w checkout x", ["/w"]),
        ("git --git-dir=/elsewhere/.git checkout x", ["."]),
        ("cd /elsewhere && git checkout x", ["/elsewhere"]),
        ("cd /elsewhere && git checkout x 2>&1 | tail", ["/elsewhere"]),
        ("cd a; git checkout x; cd ../..; git checkout x", ["a", ".."]),
        ("(cd /elsewhere && make) && git checkout x", ["."]),
        ("make -C $(cd /elsewhere; pwd) && git checkout x", ["."]),
        ("cd /elsewhere | git checkout x", ["."]),
        ("bash -c 'cd /elsewhere && git checkout x' && git checkout x", [".", "/elsewhere"]),
        ("cd /elsewhere && bash -c 'git checkout x'", ["/elsewhere"]),
        ("cd ~/x && git checkout x", [None]),
        ('cd "$x" && git checkout x', [None]),
        ('git -C "$x" checkout x', [None]),
        ("cd - && git checkout x", [None]),
        ("cd && git checkout x", [None]),
        ("cd $x && cd /elsewhere && git checkout x", ["/elsewhere"]),
        ("pushd a && popd && git checkout x", [None]),
    ],
)
def test_the_folder_of_each_command_is_known(command: str, folders: list[str | None]) -> None:
    assert [each.folder for each in find_refused(command)] == folders


def test_a_commit_of_what_others_staged_is_refused() -> None:
    others = ("b.py", "c.py")
    (found,) = find_refused("git commit -m x", others)
    assert (found.rule, found.paths) == ("commit_staged", others)
    assert find_refused("git commit -i -m x a.py", others)
    assert find_refused("git commit --amend", others)
    assert find_refused("git commit -m x -- a.py", others) == ()
    assert find_refused("git commit -m x a.py", others) == ()


def test_only_own_paths_are_unstaged_if_others_staged_some() -> None:
    def refused(command: str) -> list[str]:
        found = find_refused(command, ("b.py",), {"a.py", "src/d.py", "/abs/e.py"}.__contains__)
        return [each.rule for each in found]

    assert refused("git restore --staged a.py") == []
    assert refused("git restore -S -- ./a.py") == []
    assert refused("git restore --staged -s HEAD a.py") == []
    assert refused("cd src && git restore --staged d.py ../a.py /abs/e.py") == []
    assert refused("git reset -q -- a.py") == []
    for command in ("a.py b.py", "b.py", ".", "'*.py'", "$x", "':(glob)a.py'", "", "src"):
        assert refused(f"git restore --staged {command}") == ["unstage"], command
    assert refused("git reset") == refused("git reset -- b.py") == ["unstage"]
    assert refused("cd $x && git restore --staged a.py") == ["unstage"]


def test_the_agent_reads_why_and_what_to_do_instead() -> None:
    (found,) = find_refused("git -C src commit -am 'x'")
    said = found.say(catalogue("en"), "alice", ("bob", "carol"))
    assert said.startswith("Not run: 'git -C src commit -am x' would also commit changes of bob, carol.")
    assert "watchroom commit alice" in said
    (found,) = find_refused("git commit " + "x" * 1000 + " -a")
    assert len(found.command) == MAX_SHOWN + 1
    (found,) = find_refused("git commit", [f"f{n}" for n in range(9)])
    assert "(f0, f1, f2, f3, f4 and 4 more)" in found.say(catalogue("en"), "alice")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("command", [*REFUSED, "git commit", "git reset"])
def test_every_rule_has_texts(language: str, command: str) -> None:
    texts = catalogue("zh" if language == "zh" else "en")
    (found,) = find_refused(command, ("b.py",))
    assert "{" not in found.say(texts, "alice", ("bob",))


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "cat a.py | head -5",
        "/usr/bin/grep -rn 'a b' src 2>/dev/null",
        "rg --files",
        "cd src && pwd",
        "git status --short && git diff",
        "git -C src --no-pager log --oneline -n 5",
        "git branch --show-current",
        "git branch",
        "git stash list",
        "git grep -n x",
        "git config --get user.name",
        "find . -name '*.py' -type f",
        "sed -n '1,20p' a.py",
        "sed -n 5p a.py",
        "sed -n '/def f/,/return/p' a.py",
        "sort a | uniq -c",
        "wc -l a.py; tail -n 3 b.py",
        "command -v git",
        "date +%s",
    ],
)
def test_commands_that_only_read(command: str) -> None:
    assert is_read_only(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "make",
        "python3 a.py",
        "ls > out",
        "cat a.py | tee b.py",
        "ls $(make)",
        "ls *.py",
        "bash -c ls",
        "sudo ls",
        "xargs ls",
        "./ls",
        "/tmp/ls",
        "find . -delete",
        "find . -exec ls ;",
        "find . -fprintf out x",
        "sed -i s/a/b/ a.py",
        "sed -n 's/a/b/w out' a.py",
        "sed -n '1,20w out' a.py",
        "sed 1p a.py",
        "sed -n 1p -i a.py",
        "sed -n 1p -e 'w out' a.py",
        "sort -o a a",
        "sort -uo a a",
        "sort --output=a a",
        "uniq a b",
        "git",
        "git checkout x",
        "git branch new",
        "git branch -D x",
        "git stash",
        "git config user.name x",
        "git diff --output=out",
        "git -c alias.log=!make log",
        "git grep -Oless x",
        "git tag v1",
        "git fetch",
        "git unknown",
        "rg --pre cmd x",
        "tree -o out",
        "date -s x",
        "hostname x",
        "awk '{print > \"out\"}' a",
        "rm a",
        "ls; rm a",
        "ls && touch a",
        "A=1 ls",
    ],
)
def test_commands_that_could_change_a_file(command: str) -> None:
    assert not is_read_only(command)


@given(st.integers(0, 2**32))
def test_every_command_gets_an_answer(seed: int) -> None:
    command = random_command(random.Random(seed)).replace("make", "git checkout x")
    found = find_refused(command)
    assert all(isinstance(each, RefusedGit) for each in found)
    if is_read_only(command):
        assert found == ()


@given(st.text(alphabet=st.sampled_from([*"git adcomekuhrs-A.$(){}|&;<>'\"\\`\n\0 \ud800\ufdd0é"])))
def test_no_text_raises_an_error(text: str) -> None:
    find_refused(f"git {text}")
    is_read_only(text)


@pytest.mark.parametrize(
    "command",
    [
        "git checkout x;" * 20_000,
        "git " + "-C a " * 40_000 + "checkout x",
        "git commit -m " + "a " * 90_000,
        "git commit -" + "q" * 190_000 + "a",
        "(" * 10_000 + "git add .",
        "$(git add . " * 5_000,
        "git add '" + "." * 190_000 + "x'",
        "cd a && " * 20_000 + "git add .",
        "bash -c '" * 1_000 + "git add .",
        "git restore --staged " + "a " * 90_000,
        "sed -n '" + "1p;" * 60_000 + "'",
        "git -c " * 40_000,
        "env " * 40_000 + "git add .",
        "git " * 50_000,
        "x" * 5_000_000,
    ],
    ids=range(15),
)
def test_huge_commands_take_no_quadratic_time(command: str) -> None:
    started = time.process_time()
    find_refused(command, ("b",), {"a"}.__contains__)
    is_read_only(command)
    assert time.process_time() - started < 10
