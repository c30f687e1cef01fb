"""Every command, typed in every way of a newcomer, prints one clear sentence and never a traceback."""

from __future__ import annotations

import io
import itertools
import sys
from argparse import OPTIONAL, ZERO_OR_MORE, Action
from pathlib import Path
from typing import Final

import pytest
from cli.running import Captured, misuse, printed, refusal, run
from watchroom import Workspace
from watchroom.texts import catalogue
from watchroom_cli.arguments.parser import CommandParser
from watchroom_cli.arguments.workspace_argument import WorkspaceArgument
from watchroom_cli.commands import COMMANDS, Command
from watchroom_cli.main import OK, REFUSED, USAGE

TEXTS = catalogue("en", "watchroom_tui.texts")
OPTIONS: Final = {
    "attach": [["--agent", "alice"], ["--agent", "nobody"], ["--agent", "alice", "--project", "nowhere"]],
    "detach": [["--project", "nowhere"], ["--project", "file.txt"], ["--agent", "nobody"]],
    "diff": [["--from", "999"], ["--from", "soon"], ["--from", "2", "--to", "1"], ["--patch"]],
    "export": [["--at", "999"], ["--at", "soon"]],
    "fork": [["--at", "999"], ["--at", "soon"]],
    "git": [
        ["--export", "file.txt"],
        ["--import", "nowhere"],
        ["--branch", "b"],
        ["--branch", "b", "--task", "t"],
    ],
    "hook": [["--agent", "alice"]],
    "log": [
        ["--agent", "nobody"],
        ["--path", "nothing"],
        ["--limit", "0"],
        ["--since", "soon"],
        ["--zone", "x"],
    ],
    "mcp": [["--agent", "alice", "--toolsets", "x"], ["--agent", "a", "--agent", "b"], ["--http", "0"]],
    "member": [["--as", "agent"]],
    "open": [["--at", "999"], ["--plain", "--at", "1"]],
    "person": [["--role", "king"], ["--key", "no key"]],
    "policy": [["--time", "soon"]],
    "report": [["--from", "999"], ["--format", "pdf"]],
    "resume": [["--model", "m"]],
    "revert": [["--since", "999"], ["--since", "0", "--dry-run"], ["--undo", "x"], ["--all", "--since", "0"]],
    "run": [["--agent", "nobody"], ["--agent", "alice", "--command", "no-such-program"]],
    "search": [["--agent", "nobody"], ["--limit", "0"]],
    "settings": [["--sign"]],
    "show": [["--at", "999"], ["--at", "soon"]],
    "stop": [["--yes"], ["--all", "--yes"], ["--release", "--yes"]],
    "task": [["--workspace", "full"], ["--workspace", "full", "--simulate", "--headless"]],
    "token": [["--days", "0"], ["--revoke", "x"]],
    "traces": [["--since", "999", "--json"]],
    "usage": [["--by", "colour"]],
    "verify": [["--against", "nowhere"], ["--trust", "x"], ["--forget"]],
    "watch": [["--link", "x"]],
}
"""Options with wrong values, or that need other options, by command."""
NEVER_ENDING: Final = {"demo", "mcp", "watch", "web", "open", "server"}
"""Commands that do not end, become another program, or work elsewhere with valid arguments. Only wrong
arguments are typed."""
MAKING: Final = {"init", "demo", "export", "fork", "git"}
"""Commands that create a folder of any name."""
WORDS: Final = ["nowhere", "nobody", "file.txt", "999", "-1", "{not json", ""]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a workspace, one without agents, and other files."""
    Workspace.open(tmp_path / "team", agents=["alice", "bob"]).close()
    Workspace.open(tmp_path / "empty").close()
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("x")
    monkeypatch.chdir(tmp_path)
    for name, folder in (("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state"), ("HOME", "home")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    return tmp_path


def declared(command: Command) -> CommandParser:
    parser = CommandParser(prog=f"watchroom {command.name}")
    parser.texts = TEXTS
    command.declare(parser, TEXTS)
    return parser


def positionals(command: Command) -> list[Action]:
    return [each for each in declared(command)._actions if not each.option_strings]


def right_word(action: Action) -> str:
    """Return a valid value of the argument."""
    if isinstance(action, WorkspaceArgument):
        return "team"
    if action.choices is not None:
        return str(next(iter(action.choices)))
    return {"agent": "alice", "tool": "collab_list", "request": "1", "arguments": "{}"}.get(
        action.dest, "words"
    )


def typings(command: Command) -> list[list[str]]:
    """Return arguments to type: none, too few, too many, wrong words, and wrong orders."""
    right = [right_word(each) for each in positionals(command)]
    options = OPTIONS.get(command.name, [])
    typed: list[list[str]] = [
        [],
        *([word] for word in WORDS),
        ["--no-such-option"],
        [*right, "one", "more", "x"],
    ]
    typed += [right[:count] for count in range(len(right))]
    for at, word in itertools.product(range(len(right)), WORDS):
        typed.append([*right[:at], word, *right[at + 1 :]])
    for each in options:
        typed += [[*right, *each], [*each, *("empty" if word == "team" else word for word in right)], each]
    if command.name not in NEVER_ENDING:
        typed += [list(order) for order in itertools.permutations(right)]
        typed.append(["empty" if word == "team" else word for word in right])
    else:
        typed = [each for each in typed if command.name != "server" and can_end(command, each)]
    return [list(each) for each in dict.fromkeys(map(tuple, typed))]


def can_end(command: Command, typed: list[str]) -> bool:
    """Return whether a command that would not end is refused with these arguments."""
    return (
        typed != [] and "team" not in typed[:1] and typed[:1] not in (["nowhere"], [""], ["nobody"], ["999"])
    )


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_any_arguments_are_answered_with_one_sentence(
    capsys: Captured, command: Command, place: Path
) -> None:
    before = {each.name for each in place.iterdir()}
    for typed in typings(command):
        sys.stdin = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        status, out, err = run(capsys, command.name, *typed)
        shown = f"watchroom {command.name} {typed}: {status}\n{out}\n{err}"
        assert status in (OK, REFUSED, USAGE), shown
        assert "Traceback" not in out + err, shown
        assert "Errno" not in err, shown
        if status == USAGE:
            assert out == "", shown
            assert err.startswith(f"watchroom {command.name}: "), shown
            assert err.strip().count("\n") == 0, shown
            assert len(err) > len(f"watchroom {command.name}: ") + 10, shown
        if status == REFUSED:
            assert out or err, shown
        if command.name not in MAKING:
            assert {each.name for each in place.iterdir()} <= {*before, "config", "state"}, shown


@pytest.mark.parametrize(
    "command",
    [each for each in COMMANDS if any(isinstance(action, WorkspaceArgument) for action in positionals(each))],
    ids=lambda command: command.name,
)
def test_a_missing_workspace_is_reported_with_the_synopsis(capsys: Captured, command: Command) -> None:
    required = {
        "attach": ["--agent", "a"],
        "events": ["--json"],
        "git": ["--branch", "b"],
        "hook": ["--agent", "a"],
        "mcp": ["--agent", "a"],
        "run": ["--agent", "a"],
        "wait": ["--until", "idle"],
    }
    words = [
        right_word(each)
        for each in positionals(command)
        if not isinstance(each, WorkspaceArgument) and each.nargs not in (OPTIONAL, ZERO_OR_MORE)
    ]
    said = misuse(capsys, command.name, *words, *required.get(command.name, []))
    assert "no workspace in this folder or above" in said
    assert "[DIR]" in said


ORDERS = [
    ("show", ["team", "agents"]),
    ("diff", ["team", "config/config.toml"]),
    ("search", ["team", "alice"]),
    ("call", ["team", "alice", "collab_list"]),
    ("prompt", ["team", "alice"]),
    ("policy", ["explain", "team", "alice", "collab_list"]),
    ("attach", ["claude", "team"]),
    ("person", ["list", "team"]),
    ("revert", ["team", "bob"]),
]
MORE = {"attach": ["--agent", "alice"], "revert": ["--since", "0", "--dry-run"]}


@pytest.mark.parametrize(("command", "words"), ORDERS, ids=[name for name, _ in ORDERS])
def test_the_workspace_can_be_any_argument_or_the_nearest(
    capsys: Captured, command: str, words: list[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = MORE.get(command, [])
    expected = printed(capsys, command, *words, *more)
    others = [word for word in words if word != "team"]
    for at in range(len(words)):
        assert printed(capsys, command, *others[:at], "team", *others[at:], *more) == expected
    assert printed(capsys, "team", command, *others, *more) == expected
    monkeypatch.chdir(place / "team" / "agents")
    nearest = printed(capsys, command, *others, *more)
    if command != "attach":
        assert nearest == expected


@pytest.mark.parametrize("typed", [["attach", "claude", "team", "--agent", "alice"], ["detach", "claude"]])
@pytest.mark.parametrize("project", ["nowhere", "file.txt"])
@pytest.mark.parametrize("write", [[], ["--write"]])
def test_a_project_must_be_an_existing_folder(
    capsys: Captured, typed: list[str], project: str, write: list[str], place: Path
) -> None:
    options = write if typed[0] == "attach" else []
    said = misuse(capsys, *typed, "--project", project, *options)
    assert f"The folder {project} does not exist." in said
    assert not (place / "nowhere").exists()


def test_an_extra_is_named_before_the_program_of_a_client(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    monkeypatch.setitem(sys.modules, "acp", None)
    said = refusal(capsys, "run", "claude", "team", "--agent", "alice", "--command", "no-such-program")
    assert 'pip install "watchroom[acp]"' in said


def test_a_database_needs_an_extra(capsys: Captured, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    for module in [
        name for name in sys.modules if name.startswith(("psycopg", "watchroom.kernel.journal.postgres"))
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    address = "postgresql://dana@127.0.0.1:1/team"
    for typed in (
        ("init", "new", "--agent", "alice", "--database", address),
        ("move", "team", address),
        ("log", address),
        ("member", "list", address),
        ("server", "start", "--folder", "server"),
    ):
        said = refusal(capsys, *typed)
        assert 'pip install "watchroom[' in said, typed
        assert said.count("\n") == 1
    assert not (place / "new").exists()


def test_an_empty_workspace_says_what_to_do(capsys: Captured) -> None:
    assert "watchroom init DIR --agent ID" in refusal(capsys, "call", "empty", "alice", "collab_list")
    assert printed(capsys, "show", "empty", "agents") == "No agents.\n"
    assert "watchroom token DIR AGENT" in printed(capsys, "token", "empty")


def test_a_client_that_is_not_installed_is_named(capsys: Captured) -> None:
    said = refusal(capsys, "run", "claude", "team", "--agent", "alice", "--command", "no-such-program --acp")
    assert "the PATH has no program no-such-program" in said
    assert said.count("\n") == 1
