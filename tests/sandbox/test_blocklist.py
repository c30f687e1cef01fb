"""The keywords that are refused before anything runs (TASKS-P5)."""

from __future__ import annotations

import pytest
from effort import rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from watchroom.platform.sandbox.blocklist import KEYWORDS, find_blocked_keyword

SPEC = (
    "rm -rf /",
    "sudo",
    "su ",
    "chmod 777",
    "mkfs",
    "dd if=",
    "> /dev/",
    "shutdown",
    "reboot",
    "init 0",
    "init 6",
)
BEFORE = st.sampled_from(
    ["", " ", "\t", "\n", ";", "&&", "||", "|", "&", "(", "{ ", "$(", "`", "'", '"', "/usr/bin/"]
)
AFTER = st.sampled_from(["", " ", "\n", ";", " -h now", "&", "|", ")", "`", "'", '"', ">log"])
ANYTHING = st.text(max_size=30)


def test_the_words_are_those_of_the_spec() -> None:
    assert KEYWORDS == SPEC


@settings(max_examples=rounds(200, 400))
@given(ANYTHING, BEFORE.filter(bool), st.sampled_from(SPEC), AFTER, ANYTHING)
def test_a_command_with_a_keyword_is_refused(
    start: str, before: str, word: str, after: str, end: str
) -> None:
    tail = f"{after}{end}" if after else ""
    assert find_blocked_keyword(f"{start}{before}{word}{tail}") is not None
    assert find_blocked_keyword(f"{word}{tail}") is not None


@given(st.sampled_from(SPEC), st.sampled_from(["  ", "\t", " \t "]))
def test_any_space_counts_as_one(word: str, space: str) -> None:
    assert find_blocked_keyword(word.replace(" ", space)) == word


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /var/lib/x",
        "/bin/rm -rf /",
        "echo x >/dev/sda",
        "cat x > /dev/null/../sda",
        "mkfs.ext4 disk.img",
        "sudo -n true",
        "x=$(sudo id)",
    ],
)
def test_what_is_meant_is_refused(command: str) -> None:
    assert find_blocked_keyword(command) is not None


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q 2> /dev/null",
        "make >/dev/null 2>&1",
        "echo wrong > /dev/stderr; echo right > /dev/stdout",
        "gh issue list",
        "cat pseudocode.md sudoku.py",
        "sort -su names.txt",
        "python -c 'server.shutdown()'",
        "pytest tests/test_shutdown.py",
        "rm -rf build",
        "chmod 755 run.sh",
        "git init",
        "add if=1",
        "grep -rn result src",
        "npm init -y",
        "terraform init 2>/dev/null",
        "farm -rf /x",
    ],
)
def test_everyday_commands_pass(command: str) -> None:
    assert find_blocked_keyword(command) is None
