"""A shell's command taken apart: each thing that begins or ends a part, and what is no command of its own."""

from __future__ import annotations

import pytest
from watchroom.rules.command_parts import MAX_CHARACTERS, MAX_PARTS, script_of, split_command
from watchroom.rules.policy_subject import policy_subject


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
        ("a \\\nb", ["a b"]),
        ("a $'x y; z'; b", ["a $'x y; z'", "b"]),
        ("a # b; c\nd", ["a", "d"]),
        ("a#b; c", ["a#b", "c"]),
        ("#a\nb", ["b"]),
        ("a;#b", ["a"]),
        ("a $(b; c) d", ["b", "c", "a $(b; c) d"]),
        ('a "$(b)" c', ["b", 'a "$(b)" c']),
        ('a "$(b ")" c)"', ['b ")" c', 'a "$(b ")" c)"']),
        ('a "$(b ")")"', ['b ")"', 'a "$(b ")")"']),
        ('a "(b)"', ['a "(b)"']),
        ("a `b` c", ["b", "a `b` c"]),
        ('a "`b`"', ["b", 'a "`b`"']),
        ("(a; b)", ["a", "b", "(a; b)"]),
        ("{ a; }", ["a", "}"]),
        ("a {b,c}", ["a {b,c}"]),
        ("a <<< b; c", ["a <<< b", "c"]),
        ("a <<E\nb\nE\nc", ["a <<E", "b", "c"]),
        ("a <<'E F'\nb\nE F\nc", ["a <<'E F'", "b", "c"]),
        ('a <<"E"\nb\nE', ['a <<"E"', "b"]),
        ("a <<-E\n\tb\n\tE\nc", ["a <<-E", "b", "c"]),
        ("a <<E <<F\nb\nE\nc\nF\nd", ["a <<E <<F", "b", "c", "d"]),
        ("sh -c 'a; b'", ["sh -c 'a; b'", "a", "b"]),
        ("eval 'a; b'", ["eval 'a; b'", "a", "b"]),
        ("sudo bash -lc 'a'", ["sudo bash -lc 'a'", "a"]),
    ],
)
def test_the_parts_of_a_command_are_found_in_their_order(command: str, parts: list[str]) -> None:
    found = split_command(command)
    assert (list(found.parts), found.is_cut, found.is_understood) == (parts, False, True)


def test_a_quote_that_has_escapes_ends_behind_them() -> None:
    """What it says is not read, so that nothing of it is allowed."""
    found = split_command("a $'x\\'y; z'; b")
    assert (found.parts, found.is_understood) == (("a $'x\\'y; z'", "b"), False)


@pytest.mark.parametrize(
    "command",
    [
        "a 'b",
        'a "b',
        "a $(b",
        "a `b",
        "(a",
        "a <<E\nb",
        "a <<E",
        "a <<-E\n\tb",
        "a <<E\n\tE",
        "a $'b\\'",
        "a \\",
    ],
)
def test_half_a_quote_or_bracket_is_not_understood(command: str) -> None:
    found = split_command(command)
    assert not found.is_understood
    assert found.parts


@pytest.mark.parametrize(
    ("command", "simple"),
    [
        ("/usr/bin/git 'a b'", ["git a b"]),
        ('git "a\\"b\\n"', ['git a"b\\n']),
        ("git a\\ b", ["git a b"]),
        ("A=1 B+=2 git", ["git"]),
        ("! git", ["git"]),
        ("if git", ["git"]),
        (">f git", ["git"]),
        ("2> f git", ["git"]),
        ("A=1", []),
        (">", []),
        ("/", ["/"]),
        ("sudo -u root git push", ["sudo -u root git push", "root git push", "git push", "push"]),
        ("xargs '' git", ["xargs  git", "git"]),
        (
            "env 1 2 3 4 5 6 7 8 9",
            ["env 1 2 3 4 5 6 7 8 9", *(" ".join("123456789"[n:]) for n in range(8))],
        ),
        ("sudoku a", ["sudoku a"]),
    ],
)
def test_a_simple_command_is_its_program_without_what_stands_before_it(
    command: str, simple: list[str]
) -> None:
    assert list(split_command(command).simple) == simple


@pytest.mark.parametrize(
    ("words", "script"),
    [
        ([], None),
        (["bash"], None),
        (["bash", "-c"], None),
        (["bash", "-c", "a"], "a"),
        (["/bin/sh", "-lc", "a", "b"], "a"),
        (["zsh", "-l", "-ec", "a"], "a"),
        (["bash", "--rcfile", "a"], None),
        (["python", "-c", "a"], None),
    ],
)
def test_a_shell_is_given_its_script_after_c(words: list[str], script: str | None) -> None:
    assert script_of(words) == script


@pytest.mark.parametrize(("more", "is_cut"), [(0, False), (1, True)])
def test_a_command_is_looked_at_up_to_200_000_characters_2_000_parts_and_8_levels(
    more: int, is_cut: bool
) -> None:
    assert (MAX_CHARACTERS, MAX_PARTS) == (200_000, 2000)
    long = split_command("a" * (200_000 + more))
    assert (long.is_cut, [len(part) for part in long.parts]) == (is_cut, [200_000])
    many = split_command(";".join(f"a{n}" for n in range(2000 + more)))
    assert (many.is_cut, len(many.parts)) == (is_cut, 2000)
    assert split_command("$(" * (8 + more) + "a" + ")" * (8 + more)).is_cut is is_cut
    assert split_command("eval " * (8 + more) + "a").is_cut is is_cut


def test_a_list_of_changes_is_looked_at_beside_others() -> None:
    found = policy_subject({"edits": [{"path": "b"}, "c"], "changes": {"a": {}}, "files": ["d"], "path": "e"})
    assert {"a", "b", "e"} <= set(found.paths)
