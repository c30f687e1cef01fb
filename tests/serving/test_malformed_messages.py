"""Lines on standard input that are no messages: each is answered, and the next one is read."""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.running import as_typed
from service_process import own_runtime_folder
from watchroom import Workspace

PATIENCE = 30
Ask = Callable[[bytes], Any]
BEGIN = (
    {
        "jsonrpc": "2.0",
        "id": "begin",
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
)
PING = b'{"jsonrpc":"2.0","id":"ping","method":"ping"}'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("served") / "team"
    Workspace.open(root, agents=["alice"]).close()
    return root


@pytest.fixture(scope="module")
def ask(root: Path) -> Iterator[Ask]:
    """Sends a line, and a ping after it; returns what came before the ping's answer, None for nothing."""
    command = as_typed("mcp", str(root), "--agent", "alice", "--ask", "collab_write")
    with (
        pytest.MonkeyPatch.context() as patch,
        own_runtime_folder(patch, is_blocked=False),
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as server,
    ):
        assert server.stdin
        assert server.stdout

        def send(line: bytes) -> None:
            assert server.stdin
            server.stdin.write(line + b"\n")
            server.stdin.flush()

        def receive() -> Any:
            assert server.stdout
            assert select.select([server.stdout], [], [], PATIENCE)[0], "no answer"
            return json.loads(server.stdout.readline())

        def asked(line: bytes) -> Any:
            send(line)
            answer = None
            if not line.startswith(b" "):
                answer = receive()
            send(PING)
            assert receive() == {"jsonrpc": "2.0", "id": "ping", "result": {}}
            return answer

        for message in BEGIN:
            send(json.dumps(message).encode())
        assert receive()["id"] == "begin"
        yield asked
        server.stdin.close()


def call(arguments: bytes, tool: bytes = b"collab_read") -> bytes:
    return b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"%s","arguments":%s}}' % (
        tool,
        arguments,
    )


@pytest.mark.parametrize(("digits", "told"), [("9" * 19, 10**19 - 1), ("9" * 5000, None)])
def test_an_answer_has_the_whole_id_of_its_request_or_none(ask: Ask, digits: str, told: int | None) -> None:
    line = (
        b'{"jsonrpc":"2.0","id":' + digits.encode() + b',"method":"tools/list","params":{"cursor":"\\ud800"}}'
    )
    assert ask(line)["id"] == told


@pytest.mark.parametrize("line", [b"{", b"hello", b'"', b"[" * 30_000, b'{"a":' * 30_000, b'{"a": "\\'])
def test_what_is_no_json_is_a_parse_error(ask: Ask, line: bytes) -> None:
    answer = ask(line)
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    assert "Parse error" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (b"[]", None),
        (b"7", None),
        (b'{"jsonrpc":"2.0","id":5}', 5),
        (b'{"jsonrpc":"2.0","id":"x","method":7}', "x"),
        (b'{"jsonrpc":"1.0","id":9,"method":"tools/call","params":{"x":"\\udfff"}}', 9),
        (b'["\\ud800"]', None),
    ],
)
def test_json_that_is_no_request_is_an_error(ask: Ask, line: bytes, request_id: object) -> None:
    answer = ask(line)
    assert (answer["id"], answer["error"]["code"]) == (request_id, -32600)


def test_another_request_with_parameters_that_cannot_be_read_is_an_error(ask: Ask) -> None:
    answer = ask(b'{"jsonrpc":"2.0","id":8,"method":"resources/read","params":{"uri":"\\ud800"}}')
    assert (answer["id"], answer["error"]["code"]) == (8, -32602)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (b'{"filepath":"\\ud800"}', "lone surrogate"),
        (b'{"\\udfff":1}', "lone surrogate"),
        (b'{"filepath":"a","x":' + b"[" * 20_000 + b"]" * 20_000 + b"}", "nested too deeply"),
        (b'{"x":' * 20_000 + b"1" + b"}" * 20_000, "nested too deeply"),
        (b'{"version":' + b"1" * 5000 + b"}", "not valid JSON"),
    ],
    ids=["surrogate", "surrogate key", "deep list", "deep object", "long number"],
)
@pytest.mark.parametrize("tool", [b"collab_read", b"collab_write", b"no_such_tool"])
def test_a_call_that_cannot_be_read_is_refused(
    ask: Ask, root: Path, arguments: bytes, why: str, tool: bytes
) -> None:
    answer = ask(call(arguments, tool))
    assert answer["id"] == 7
    result = answer["result"]
    assert result["isError"] is True
    told = result["structuredContent"]
    assert (told["success"], told["error"]) == (False, "invalid_arguments")
    assert why in told["message"]
    with Workspace.open(root, scan=False) as workspace:
        (row,) = workspace.journal.rows(workspace.journal.last_seq() - 1)
        assert (row.actor, row.tool, row.outcome) == ("alice", tool.decode(), "denied")


@pytest.mark.parametrize("line", [b" ", b' {"jsonrpc":"2.0","method":"x","params":{"a":"\\ud800"}}'])
def test_what_wants_no_answer_gets_none(ask: Ask, line: bytes) -> None:
    assert ask(line) is None
