"""What a command could run: its parts as they are written, its programs, and what is doubted."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from watchroom.algorithms.globs import ANY, GLOB, ONE, OUTPUT, WORDS
from watchroom.features.policy.plain_command import MAX_CHARACTERS, MAX_COMMANDS, read_plain_command
from watchroom.features.policy.rules import PolicyRule, PolicyRules, decide, policy_subject
from watchroom.features.policy.shell_reader import MAX_PARTS, split_command


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("", []),
        ("a b", ["a b"]),
        ("a; b | c && d || e & f\ng", ["a", "b", "c", "d", "e", "f", "g"]),
        ("a; a", ["a"]),
        ("a 'b; c'", ["a 'b; c'"]),
        ('a "b; c"', ['a "b; c"']),
        ("a \\; b", ["a \\; b"]),
        ("a >&2 &>f", ["a >&2 &>f"]),
        ("a $'x y; z'; b", ["a $'x y; z'", "b"]),
        ("a # b; c\nd", ["a", "d"]),
        ("a#b; c", ["a#b", "c"]),
        ("#a\nb", ["b"]),
        ("a;#b", ["a"]),
        ("a $(b; c) d", ["b", "c", "a $(b; c) d"]),
        ('a "$(b)" c', ["b", 'a "$(b)" c']),
        ('a "$(b ")" c)"', ['b ")" c', 'a "$(b ")" c)"']),
        ('a "(b)"', ['a "(b)"']),
        ("a `b` c", ["b", "a `b` c"]),
        ('a "`b`"', ["b", 'a "`b`"']),
        ("(a; b)", ["a", "b"]),
        ("{ a; }", ["{ a", "}"]),
        ("a {b,c}", ["a {b,c}"]),
        ("a <<< b; c", ["a <<< b", "c"]),
        ("a <<E\nb\nE\nc", ["a <<E", "c"]),
        ("sh <<E\nb\nE\nc", ["sh <<E", "c", "b"]),
        ("sh <<'E F'\nb\nE F\nc", ["sh <<'E F'", "c", "b"]),
        ("a <<E <<-F\nb\nE\n\tc\n\tF\nd", ["a <<E <<-F", "d"]),
        ("sh -c 'a; b'", ["sh -c 'a; b'", "a", "b"]),
        ("eval 'a; b'", ["eval 'a; b'", "a", "b"]),
        ("sudo bash -lc 'a'", ["sudo bash -lc 'a'", "a"]),
        ("case a in b|c) d;; (e) f;; esac; g", ["d", "f", "g"]),
    ],
)
def test_the_parts_of_a_command_are_found(command: str, parts: list[str]) -> None:
    found = split_command(command)
    assert (list(found.parts), found.doubt) == (parts, None)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("a 'b", "unfinished"),
        ('a "b', "unfinished"),
        ("a $(b", "unfinished"),
        ("a `b", "unfinished"),
        ("a ${b", "unfinished"),
        ("(a", "unfinished"),
        ("a <<E\nb", "unfinished"),
        ("a <<E", "unfinished"),
        ("a <<E\n\tE", "unfinished"),
        ("a <<$'E'\nb\nE", "unfinished"),
        ("a $(b <<E)", "unfinished"),
        ("a <<E $(b\n)\nE", "unfinished"),
        ("a $'b\\'", "unfinished"),
        ("a \\", "unfinished"),
        ("a=(b", "unfinished"),
        ("case a in b) c", "unfinished"),
        ("[[ a", "unfinished"),
        ("a )", "operator"),
        ("a ;; b", "operator"),
        ("[[ a; b ]]", "operator"),
        ("a (b)", "group"),
        ("case a b", "keyword"),
        ("case a in b; c) d;; esac", "keyword"),
        ("a @(b|c)", "glob"),
        ("a $[b]", "expansion"),
        ("a ${ b; }", "expansion"),
        ('a "${b:-\'}"', "quote"),
        ("a &\\\n& b", "continuation"),
        ("a $\\\n(b)", "continuation"),
        ('a "$\\\n(b)"', "continuation"),
        ("a \\\n#b", "continuation"),
        ("a <<E\nb\\\nE\nE", "continuation"),
        ("a >", "redirection"),
        ("a\0b", "character"),
        ("a | sh", "script"),
        ("eval $a", "script"),
    ],
)
def test_what_is_not_understood_is_doubted(command: str, kind: str) -> None:
    doubt = split_command(command).doubt
    assert doubt is not None
    assert doubt.kind == kind


@pytest.mark.parametrize(
    ("command", "simple"),
    [
        ("/usr/bin/git 'a b'", ["git a b"]),
        ('git "a\\"b\\n"', ['git a"b\\n']),
        ("git a\\ b", ["git a b"]),
        ("git $'a\\x62\\143\\n\\q'", ["git abc\n\\q", "git $a\\x62\\143\\n\\q"]),
        ("A=1 B+=2 C[1]=3 git", ["git"]),
        ("! git", ["git"]),
        ("if git", ["git"]),
        (">f git >g 2>&1 a", ["git a"]),
        ("A=1", []),
        ("/", ["/"]),
        ("git $a \"$b\" *c ~/d <(e) '$f'", ["e", f"git{WORDS} {ONE} {GLOB}c {GLOB}/d {OUTPUT} $f"]),
        ("$a b", [f"{ANY} b", "b"]),
        ("a${b}c", [f"a{ANY}c"]),
        ('"${a}b" c', [f"{ONE}b c", "c"]),
        ("a {b,c}d e{f}", [f"a {ANY}d e{{f}}"]),
        ("sudo -u root git push", ["sudo -u root git push", "git push"]),
        ("sudo -Z git push", ["sudo -Z git push", "git push", "push"]),
        ("xargs -n 1 git", ["xargs -n 1 git", f"git{WORDS}"]),
        ("sudoku a", ["sudoku a"]),
        ("git -C a -c b=c push", ["git -C a -c b=c push", "git push"]),
        ("timeout 5 a b", ["timeout 5 a b", "a b"]),
        ("find a b -exec c {} \\; -o", ["find a b -exec c {} ; -o", f"c {ONE}"]),
        ("find a -exec c {} +", ["find a -exec c {} +", f"c a{ONE} +"]),
    ],
)
def test_a_simple_command_is_its_program_and_words(command: str, simple: list[str]) -> None:
    found = split_command(command)
    assert (list(found.simple), found.doubt) == (simple, None)


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ([], ""),
        (["bash"], "bash"),
        (["bash", "-c"], "bash -c"),
        (["bash", "-c", "a; b"], "a; b"),
        (["/bin/sh", "-lc", "a"], "a"),
        (["./sh", "-lc", "a"], "./sh -lc a"),
        (["/bin/sh", "-lc", "a", "b"], "/bin/sh -lc a b"),
        (["bash", "--rcfile", "a", "-c", "b"], "bash --rcfile a -c b"),
        (["bash", "-ic", "a"], "bash -ic a"),
        (["python", "-c", "a"], "python -c a"),
    ],
)
def test_only_a_plain_call_of_a_shell_is_the_same_as_its_script(words: list[str], command: str) -> None:
    assert policy_subject({"command": words}).command == command


@pytest.mark.parametrize(("more", "is_doubted"), [(0, False), (1, True)])
def test_a_command_is_read_up_to_its_bounds(more: int, is_doubted: bool) -> None:
    assert (MAX_CHARACTERS, MAX_PARTS, MAX_COMMANDS) == (200_000, 2000, 2000)
    long, many = "a" * (200_000 + more), ";".join(f"a{n}" for n in range(2000 + more))
    nested = "$(" * (29 + more) + "a" + ")" * (29 + more)
    for command in (long, many, nested):
        assert (split_command(command).doubt is not None) is is_doubted
    for command in (long, many):
        assert (read_plain_command(command).doubt is not None) is is_doubted


HOSTILE = {
    "parts": "a b;" * 2000,
    "megabyte": "a " * 500_000,
    "levels": "$(" * 1000 + "a" + ")" * 1000,
    "open substitutions": "$(" * 100_000,
    "open parentheses": "(" * 200_000,
    "open arithmetic": "$((1+" * 40_000,
    "failing arithmetic": "$(( (1) " * 20_000 + ") ) " * 20_000,
    "quotes": "'\"`" * 60_000,
    "open braces": "${x:-" * 40_000,
    "braces": "{a," * 60_000 + "}" * 10_000,
    "brackets": "[" * 200_000,
    "here-documents": "a <<E " * 30_000 + "\n",
    "cases": "case x in " * 20_000,
    "backquotes": "`" * 199_999,
    "escaped backquotes": "`a \\" * 40_000,
    "expansions": "a $x " * 40_000,
    "marked words": '"$x"' * 50_000,
    "runners": "sudo " * 40_000 + "a",
    "unsure runners": "sudo -Z " * 20_000 + "a",
    "unsure watchers": "watch -Z " * 20_000 + "a",
    "splitters": "env -S a " * 20_000,
    "replacements": "xargs -Ia " * 20_000,
    "arrays": "a=(" * 60_000,
    "shells": "sh -c " * 30_000 + "a",
    "evals": "eval " * 40_000 + "a",
    "scripts": "docker 'a b' " * 15_000,
    "execs": "find a -exec b {} \\; " * 9_000,
    "descriptors": "{" + "a" * 90_000 + ">b" * 50_000,
    "continuations": "a \\\n" * 50_000,
    "backslashes": "\\" * 199_999,
    "gits": "git -c alias.a='!git " * 9_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_command_costs_little(name: str) -> None:
    rules = PolicyRules(
        (
            PolicyRule("deny", command=("*a*b*c*d*", "rm * -rf *", "git*push* --force*")),
            PolicyRule("allow", command=("a*", "git log*")),
        )
    )
    began = time.process_time()
    decide(rules, "alice", "Bash", {"command": HOSTILE[name]}, 0)
    assert time.process_time() - began < 5


def test_a_usual_command_is_decided_within_a_millisecond() -> None:
    rules = PolicyRules(
        (
            PolicyRule("deny", command=("rm -rf *", "git push *--force*", "git push* -f*")),
            PolicyRule("allow", command=("git status*", "git log*", "git diff*")),
        )
    )
    command = "cd /repo && git log --oneline -n 20 | head -5; make test 2>&1 | tail"
    times = []
    for _ in range(20):
        began = time.process_time()
        decide(rules, "alice", "Bash", {"command": command}, 0)
        times.append(time.process_time() - began)
    assert min(times) < 0.001


def test_a_long_command_needs_little_memory() -> None:
    rules = PolicyRules((PolicyRule("deny", command=("rm * -rf *",)), PolicyRule("allow", command=("a*",))))
    tracemalloc.start()
    decide(rules, "alice", "Bash", {"command": HOSTILE["megabyte"]}, 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60_000_000


def test_a_list_of_changes_is_looked_at_beside_others() -> None:
    found = policy_subject({"edits": [{"path": "b"}, "c"], "changes": {"a": {}}, "files": ["d"], "path": "e"})
    assert {"a", "b", "e"} <= set(found.paths)
