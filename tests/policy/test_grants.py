"""What a person's grant covers: calls like the shown one, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from effort import IS_HUNTING, rounds
from policy.shell_commands import random_command
from policy.test_shell_oracle import oracle
from watchroom.features.policy.grants import (
    PLACE,
    Grant,
    covers,
    describe_grant,
    dump_grant,
    is_offered,
    list_scopes,
    parse_grant,
    read_call,
)
from watchroom.features.requests.rows import PendingCall, Request
from watchroom.model import Json
from watchroom.texts import catalogue

SESSION, FOLDER, FILE = "alice/s1", "/home/team/app", "/home/team/app/a.py"
UNTIL = 10**18
FIRST_SEED = Random().randrange(10**6) if IS_HUNTING else 7


class Call(NamedTuple):
    """A call that asks, with the path of its request."""

    arguments: Mapping[str, Json]
    tool: str = "Bash"
    path: str = f"{SESSION}/c2"
    folder: str = FOLDER
    target: str = ""
    prompt: str = ""

    @property
    def request(self) -> Request:
        place = {"folder": self.folder, "target": self.target}
        call = PendingCall("c", self.tool, json.dumps(self.arguments))
        return Request("approve", self.prompt, calls=(call,), metadata={PLACE: place})


def bash(command: Json, **other: Json) -> Call:
    return Call({"command": command, **other})


def write(path: str = FILE, target: str = FILE, **other: Json) -> Call:
    return Call({"file_path": path, "content": "x", **other}, "Write", target=target)


def granted(shown: Call, *, is_prefix: bool = False, is_session: bool = True, words: int = 99) -> Grant:
    """The grant that a person gives when ``shown`` is on screen."""
    call = read_call(shown.request)
    assert call is not None
    call = call._replace(words=call.words[:words])
    grant = Grant(
        "alice", call, SESSION if is_session else "", is_prefix, None if is_session else UNTIL, 5, 3
    )
    assert is_offered(grant, shown.path, shown.request)
    return grant


SHOWN = bash("npm test", timeout=60)
EXACT = granted(SHOWN)
PREFIX = granted(SHOWN, is_prefix=True)
PLACE_EXACT = granted(SHOWN, is_session=False)
ON_FILE = granted(write())

COVERED: list[tuple[str, Grant, Call]] = [
    ("the same call", EXACT, SHOWN),
    ("another description", EXACT, bash("npm test", timeout=60, description="again")),
    ("other blanks and quotes", EXACT, bash("  npm\t'test'", timeout=60)),
    ("a line end", EXACT, bash("npm test\n", timeout=60)),
    ("a redirection that writes no file", EXACT, bash("npm test 2>&1 >/dev/null", timeout=60)),
    ("further words", PREFIX, bash("npm test -- x", timeout=60)),
    ("no further word", PREFIX, SHOWN),
    ("another session", PLACE_EXACT, SHOWN._replace(path="alice/s9/c")),
    ("another content", ON_FILE, write(content="y")),
]

EVASIONS: list[tuple[str, Grant, Call]] = [
    ("another session", EXACT, SHOWN._replace(path="alice/s2/c2")),
    ("a session with a longer name", EXACT, SHOWN._replace(path="alice/s11/c2")),
    ("a session below", EXACT, SHOWN._replace(path="alice/s1/sub/c2")),
    ("another agent", EXACT, SHOWN._replace(path="bob/s1/c2")),
    ("another agent, in every session", PLACE_EXACT, SHOWN._replace(path="bob/s1/c2")),
    ("no session", EXACT, SHOWN._replace(path="alice/mcp/c2")),
    ("another tool", EXACT, SHOWN._replace(tool="run_command")),
    ("a tool of a server", EXACT, SHOWN._replace(tool="mcp__x__Bash")),
    ("a longer command", EXACT, bash("npm test x", timeout=60)),
    ("a shorter command", EXACT, bash("npm", timeout=60)),
    ("an option", EXACT, bash("npm test --force", timeout=60)),
    ("an empty word", EXACT, bash("npm test ''", timeout=60)),
    ("one word for two", EXACT, bash("'npm test'", timeout=60)),
    ("other case", EXACT, bash("npm TEST", timeout=60)),
    ("the folder of the program", EXACT, bash("./npm test", timeout=60)),
    ("a whole path of the program", EXACT, bash("/usr/bin/npm test", timeout=60)),
    ("cd before", EXACT, bash("cd /tmp && npm test", timeout=60)),
    ("cd in a line before", EXACT, bash("cd /tmp\nnpm test", timeout=60)),
    ("a command after &&", EXACT, bash("npm test && make", timeout=60)),
    ("a command after ;", EXACT, bash("npm test; make", timeout=60)),
    ("a command after ||", EXACT, bash("npm test || make", timeout=60)),
    ("a pipe", EXACT, bash("npm test | sh", timeout=60)),
    ("a pipe of both outputs", EXACT, bash("npm test |& sh", timeout=60)),
    ("a command in the next line", EXACT, bash("npm test\nmake", timeout=60)),
    ("a carriage return", EXACT, bash("npm test\r", timeout=60)),
    ("in the background", EXACT, bash("npm test &", timeout=60)),
    ("a semicolon", EXACT, bash("npm test;", timeout=60)),
    ("negated", EXACT, bash("! npm test", timeout=60)),
    ("timed", EXACT, bash("time npm test", timeout=60)),
    ("grouped", EXACT, bash("{ npm test; }", timeout=60)),
    ("in a subshell", EXACT, bash("(npm test)", timeout=60)),
    ("an assignment", EXACT, bash("PATH=/tmp npm test", timeout=60)),
    ("an assignment that appends", EXACT, bash("PATH+=:/tmp npm test", timeout=60)),
    ("env", EXACT, bash("env PATH=/tmp npm test", timeout=60)),
    ("exec", EXACT, bash("exec npm test", timeout=60)),
    ("eval", EXACT, bash("eval npm test", timeout=60)),
    ("sudo", EXACT, bash("sudo npm test", timeout=60)),
    ("a shell", EXACT, bash("sh -c 'npm test'", timeout=60)),
    ("output to a file", EXACT, bash("npm test > out", timeout=60)),
    ("output added to a file", EXACT, bash("npm test >> out", timeout=60)),
    ("input from a file", EXACT, bash("npm test < in", timeout=60)),
    ("a here-document", EXACT, bash("npm test <<E\nx\nE", timeout=60)),
    ("a process substitution", EXACT, bash("npm test <(make)", timeout=60)),
    ("a variable", EXACT, bash("npm $test", timeout=60)),
    ("a variable in quotes", EXACT, bash('npm "$test"', timeout=60)),
    ("a substitution", EXACT, bash("npm test $(make)", timeout=60)),
    ("a substitution in quotes", EXACT, bash('npm "test`make`"', timeout=60)),
    ("a pattern", EXACT, bash("npm tes?", timeout=60)),
    ("braces", EXACT, bash("npm {test,x}", timeout=60)),
    ("a home folder", EXACT, bash("~/npm test", timeout=60)),
    ("escaped codes", EXACT, bash("npm $'test'", timeout=60)),
    ("a comment", EXACT, bash("npm test # x", timeout=60)),
    ("a function", EXACT, bash("npm() { make; }; npm test", timeout=60)),
    ("a continuation within a word", EXACT, bash("npm te\\\nst", timeout=60)),
    ("a blank that is no blank", EXACT, bash("npm\u00a0test", timeout=60)),
    ("a letter that looks the same", EXACT, bash("npm t\u0435st", timeout=60)),
    ("a sign that writes backwards", EXACT, bash("npm test\u202e", timeout=60)),
    ("a NUL", EXACT, bash("npm test\0", timeout=60)),
    ("no command", EXACT, bash("", timeout=60)),
    ("a list of words", EXACT, bash(["npm", "test"], timeout=60)),
    ("another timeout", EXACT, bash("npm test", timeout=61)),
    ("no timeout", EXACT, bash("npm test")),
    ("in the client's background", EXACT, bash("npm test", timeout=60, run_in_background=True)),
    ("without the client's sandbox", EXACT, bash("npm test", timeout=60, dangerouslyDisableSandbox=True)),
    ("a second command", EXACT, bash("npm test", timeout=60, script="make")),
    ("another working folder", EXACT, bash("npm test", timeout=60, workdir="/tmp")),
    ("another folder", EXACT, SHOWN._replace(folder="/home/team/other")),
    ("a folder below", EXACT, SHOWN._replace(folder=f"{FOLDER}/sub")),
    ("the folder above", PLACE_EXACT, SHOWN._replace(folder="/home/team")),
    ("a folder with the same beginning", PLACE_EXACT, SHOWN._replace(folder=f"{FOLDER}2")),
    ("an unknown folder", PLACE_EXACT, SHOWN._replace(folder="")),
    ("a request with a condition", EXACT, SHOWN._replace(prompt="Without a sandbox?")),
    ("a longer word", PREFIX, bash("npm testing", timeout=60)),
    ("other first words", PREFIX, bash("npm run test", timeout=60)),
    ("further words after an operator", PREFIX, bash("npm test && npm test", timeout=60)),
    ("a further word that expands", PREFIX, bash("npm test $x", timeout=60)),
    ("a further word with a substitution", PREFIX, bash('npm test "$(make)"', timeout=60)),
    ("a further word that writes", PREFIX, bash("npm test >out", timeout=60)),
    ("a prefix before an assignment", PREFIX, bash("A=1 npm test x", timeout=60)),
    ("a prefix in another folder", PREFIX, SHOWN._replace(folder="/tmp")),
    (
        "further words that run a program",
        granted(bash("find ."), is_prefix=True),
        bash("find . -exec rm x '{}' +"),
    ),
    (
        "an alias that git runs",
        granted(bash("git -c"), is_prefix=True),
        bash("git -c alias.x='!make' x"),
    ),
    (
        "a blank for another blank",
        granted(bash("node -e 'a b'")),
        bash("node -e 'a\tb'"),
    ),
    (
        "a line end for a blank",
        granted(bash("node -e 'a b'")),
        bash("node -e 'a\nb'"),
    ),
    ("another file", ON_FILE, write("/home/team/app/b.py", "/home/team/app/b.py")),
    ("a link to the file", ON_FILE, write("/home/team/app/link", FILE)),
    ("the file became a link", ON_FILE, write(FILE, "/home/team/secrets")),
    ("a folder of the file became a link", ON_FILE, write(FILE, "/home/team/other/a.py")),
    ("dots in the path", ON_FILE, write("/home/team/app/../app/a.py", FILE)),
    ("a relative path", ON_FILE, write("a.py", FILE)),
    ("slashes in the path", ON_FILE, write("/home/team//app/a.py", FILE)),
    ("a blank after the path", ON_FILE, write(f"{FILE} ", FILE)),
    ("an unknown target", ON_FILE, write(target="")),
    ("another tool for the file", ON_FILE, write()._replace(tool="Edit")),
    ("a second path", ON_FILE, write(path=FILE, target=FILE, paths=["/etc/passwd"])),
    ("a second path in the content", ON_FILE, write(content=[{"file_path": "/etc/passwd"}])),
    ("the file of a zone", ON_FILE, Call({"filepath": FILE, "content": "x"}, "collab_write")),
    (
        "an unchecked version",
        granted(Call({"filepath": "plan.md", "content": "x", "message": "m"}, "collab_write")),
        Call({"filepath": "plan.md", "content": "x", "expected_version": -1}, "collab_write"),
    ),
    (
        "an unchecked version as text",
        granted(Call({"filepath": "plan.md", "content": "x", "message": "m"}, "collab_write")),
        Call({"filepath": "plan.md", "content": "x", "expected_version": "-1"}, "collab_write"),
    ),
]


@pytest.mark.parametrize(("grant", "call"), [each[1:] for each in COVERED], ids=[each[0] for each in COVERED])
def test_a_grant_covers_the_shown_call(grant: Grant, call: Call) -> None:
    assert covers(grant, call.path, call.request)


@pytest.mark.parametrize(
    ("grant", "call"), [each[1:] for each in EVASIONS], ids=[each[0] for each in EVASIONS]
)
def test_a_grant_covers_nothing_else(grant: Grant, call: Call) -> None:
    assert not covers(grant, call.path, call.request)


def test_there_are_at_least_fifty_evasions() -> None:
    assert len({each[0] for each in EVASIONS}) == len(EVASIONS) >= 50


NOT_UNDERSTOOD = [
    bash("npm test | head"),
    bash("cd x && npm test"),
    bash("echo $HOME"),
    bash("npm test > out"),
    bash("x" * 2000),
    bash("echo '\u202e'"),
    bash("npm test", script="make"),
    bash("*** Update File: a.py"),
    bash("npm test")._replace(prompt="Without a sandbox?"),
    bash("npm test")._replace(tool="unknown"),
    write("a.py"),
    write(target=""),
    Call({"filepath": "../x", "content": ""}, "collab_write"),
    Call({"patch": "*** Update File: a.py"}, "apply_patch"),
]


@pytest.mark.parametrize("call", NOT_UNDERSTOOD, ids=str)
def test_a_call_that_is_not_understood_can_only_be_approved_once(call: Call) -> None:
    assert read_call(call.request) is None


def test_two_calls_can_only_be_approved_once() -> None:
    call = SHOWN.request.calls[0]
    assert read_call(Request("approve", calls=(call, call))) is None


def test_a_request_offers_no_wider_grant() -> None:
    shown, request = PLACE_EXACT, SHOWN.request
    runs = bash("sudo npm test")
    wide = [
        shown._replace(expires=None),
        shown._replace(uses=0),
        shown._replace(uses=101),
        shown._replace(agent="bob"),
        shown._replace(session="alice/s2", expires=None),
        shown._replace(call=shown.call._replace(folder="/home/team")),
        shown._replace(call=shown.call._replace(words=("npm",))),
        shown._replace(call=shown.call._replace(words=()), is_prefix=True),
        shown._replace(call=shown.call._replace(words=("npm", "run")), is_prefix=True),
        shown._replace(call=shown.call._replace(fixed="{}")),
    ]
    assert is_offered(shown, SHOWN.path, request)
    assert is_offered(
        shown._replace(call=shown.call._replace(words=("npm",)), is_prefix=True), SHOWN.path, request
    )
    assert not any(is_offered(each, SHOWN.path, request) for each in wide)
    call = read_call(runs.request)
    assert call is not None
    assert not is_offered(shown._replace(call=call, is_prefix=True), runs.path, runs.request)


def test_only_scopes_that_fit_the_call_are_offered() -> None:
    def scopes(call: Call) -> tuple[str, ...]:
        found = read_call(call.request)
        return list_scopes(call.path, found) if found else ()

    shared = Call({"filepath": "plan.md", "content": "x"}, "collab_write", folder="")
    assert scopes(SHOWN) == ("session", "place")
    assert scopes(SHOWN._replace(folder="")) == ("session",)
    assert scopes(SHOWN._replace(folder="", path="alice/mcp/1")) == ()
    assert scopes(shared._replace(path="alice/mcp/1")) == ("place",)
    # The same path is another file in another task.
    assert scopes(Call({"path": "a.py", "content": "x"}, "write_file", folder="")) == ("session",)


@pytest.mark.parametrize("grant", [EXACT, PREFIX, PLACE_EXACT, ON_FILE])
def test_a_grant_is_read_as_it_was_written(grant: Grant) -> None:
    assert parse_grant(dump_grant(grant)) == grant


@pytest.mark.parametrize(
    "change",
    [
        {"uses": True},
        {"uses": "5"},
        {"expires": 1.5},
        {"agent": None},
        {"more": 1},
        {"call": {"tool": "Bash"}},
    ],
    ids=str,
)
def test_a_damaged_grant_is_none(change: dict[str, Json]) -> None:
    assert parse_grant(json.dumps({**json.loads(dump_grant(EXACT)), **change})) is None
    assert parse_grant("[]") is None


def test_the_sentence_says_exactly_what_is_covered() -> None:
    texts = catalogue("en")
    assert describe_grant(PREFIX, texts) == (
        "alice may call Bash with the command npm test and any further words (also options that write files "
        "or run programs), in the folder /home/team/app, "
        'in the session alice/s1, only with {"timeout": 60}'
    )
    link = granted(write("/home/team/app/link", FILE), is_session=False)
    assert "/home/team/app/link (a link to /home/team/app/a.py)" in describe_grant(link, texts)


@pytest.mark.parametrize("number", range(rounds(1, 100)))
def test_what_a_grant_covers_runs_only_the_shown_command(tmp_path: Path, number: int) -> None:
    """Random commands, run by bash: a covered command starts one program, with the shown words."""
    random = Random(FIRST_SEED + number)
    count = 0
    with oracle(tmp_path) as run:
        for _ in range(400):
            text = random_command(random)
            call = read_call(bash(text).request)
            if call is None:
                continue
            count += 1
            seen = run("bash", text)
            assert (seen["traced"], seen["files"]) == (1, []), text
            assert seen["ran"] in ([list(call.words)], []), text
            prefix = granted(bash(text), is_prefix=True, words=1) if _is_alone(call.words) else None
            other = random_command(random)
            if prefix is not None and covers(prefix, SHOWN.path, bash(other).request):
                ran = run("bash", other)["ran"]
                assert [each[:1] for each in ran] == [list(call.words[:1])], other
    assert count > 20


def _is_alone(words: tuple[str, ...]) -> bool:
    shown = bash("x")._replace(arguments={"command": " ".join(words)})
    call = read_call(shown.request)
    if call is None or call.words != words:
        return False
    grant = Grant("alice", call, SESSION, True, None, 5, 3)
    return is_offered(grant, shown.path, shown.request)
