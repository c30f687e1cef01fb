"""The line of a hook as a client gives it to a shell: it asks the service by curl, and does without either."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest
from clients.attached import PATIENCE, attendant, told, wait_for
from clients.test_attached import answer
from clients.test_hook_program import ASKING, CALL, DENYING, add_rule
from service_process import allow_service, block_service
from watchroom import Workspace
from watchroom.agents.clients import client_program, run_client_program
from watchroom.agents.clients.configuration import AttachedAs, HookProgram, build_configuration
from watchroom.model import ASK

CURL: Final = shutil.which("curl") or ""
TIMEOUT: Final = shutil.which("timeout")
pytestmark = [pytest.mark.slow(4), pytest.mark.skipif(not CURL, reason="needs curl(1)")]

Service = Callable[[Path], AbstractContextManager[object]]


def alone(root: Path) -> AbstractContextManager[object]:
    return nullcontext()


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace.open(root, agents=["alice"]) as opened:
        yield opened


def hook_line(root: Path, event: str) -> str:
    """The line for ``event`` as `attach` writes it, for this interpreter."""
    program = [sys.executable, "-P", "-m", "watchroom_cli.main"]
    before = [sys.executable, "-I", "-S", run_client_program.__file__]
    within = (TIMEOUT, "5") if TIMEOUT else ()
    hook = HookProgram(
        program, before, curl=CURL, socket=client_program.socket_path(), files=["/bin/sh"], timeout=within
    )
    written = build_configuration("claude", hook, AttachedAs(str(root), ("alice",)))
    hooks: Any = next(fields["hooks"] for fields in written.json.values() if "hooks" in fields)
    line: str = hooks[event][0]["hooks"][0]["command"]
    return line


@contextmanager
def hook(root: Path, event: str, **more: object) -> Iterator[subprocess.Popen[str]]:
    """A hook whose input a client keeps open."""
    pipe = subprocess.PIPE
    command = ["/bin/sh", "-c", hook_line(root, event)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(told(event, **more)) + "\n")
        process.stdin.flush()
        try:
            yield process
        finally:
            process.kill()


def said_by(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    assert process.stderr is not None
    assert (process.wait(PATIENCE), process.stderr.read()) == (0, "")
    return process.stdout.read()


@pytest.mark.parametrize("service", [alone, attendant], ids=["alone", "attended"])
def test_a_line_answers_with_and_without_a_service(
    root: Path, workspace: Workspace, service: Service
) -> None:
    with service(root):
        with hook(root, "PreToolUse", **CALL) as asked:
            assert said_by(asked).strip() == ""
        add_rule(workspace, DENYING)
        with hook(root, "PreToolUse", **CALL) as asked:
            assert json.loads(said_by(asked))["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_line_needs_no_python_while_the_service_runs(root: Path, workspace: Workspace) -> None:
    add_rule(workspace, DENYING)
    with attendant(root):
        line = hook_line(root, "PreToolUse").replace(sys.executable, "/gone")
        event = json.dumps(told("PreToolUse", **CALL))
        ended = subprocess.run(
            ["/bin/sh", "-c", line], input=event, capture_output=True, text=True, check=False
        )
    assert (ended.returncode, '"deny"' in ended.stdout) == (0, True)


def test_a_line_survives_a_service_that_is_stopped(root: Path, workspace: Workspace) -> None:
    add_rule(workspace, DENYING)
    with attendant(root) as server:
        server.send_signal(signal.SIGSTOP)
        try:
            with hook(root, "PreToolUse", **CALL) as asked:
                assert '"deny"' in said_by(asked)
        finally:
            server.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("service", [alone, attendant], ids=["alone", "attended"])
def test_a_line_that_is_ended_lets_no_call_through(
    root: Path, workspace: Workspace, service: Service, number: signal.Signals
) -> None:
    add_rule(workspace, ASKING)
    with service(root), hook(root, "PreToolUse", **CALL) as waiting:
        asked = wait_for(workspace, lambda row: row.tool == ASK and row.version == 1)
        wait_for(workspace, lambda row: row.detail.get("status") == "waiting_for_human_input")
        waiting.send_signal(number)
        assert waiting.wait(PATIENCE) == 2
        wait_for(workspace, lambda row: row.path == asked.path and row.version == 2)


HALF: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n" + b" " * 63 + b"\n\r\n"


@contextmanager
def answering(said: bytes) -> Iterator[Path]:
    """In place of the service: something that answers ``said`` and ends. Yields its folder."""
    allow_service()
    folder = Path(client_program.make_runtime_folder())
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(client_program.socket_path())
        listener.listen()

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(1 << 16)
                        connection.sendall(said)

        Thread(target=serve, daemon=True).start()
        yield folder
        listener.shutdown(socket.SHUT_RDWR)
    shutil.rmtree(folder)
    block_service()


@pytest.mark.parametrize("said", [HALF, HALF + b'3\r\n{"a\r\n', HALF + b"2\r\n{}\r\n"])
def test_an_answer_that_is_not_complete_is_not_printed(root: Path, workspace: Workspace, said: bytes) -> None:
    """A client passes over what it cannot read, and makes the call."""
    add_rule(workspace, DENYING)
    with answering(said), hook(root, "PreToolUse", **CALL) as asked:
        assert json.loads(said_by(asked))["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make the folder of another user")
def test_a_service_in_the_folder_of_another_user_is_not_asked(root: Path, workspace: Workspace) -> None:
    add_rule(workspace, DENYING)
    allow = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    with answering(allow) as folder:
        os.chown(folder, 65534, 65534)
        try:
            with hook(root, "PreToolUse", **CALL) as asked:
                assert '"deny"' in said_by(asked)
        finally:
            os.chown(folder, 0, 0)


def test_the_deadline_begins_with_the_shell() -> None:
    """Its program comes last, after the service was waited for."""
    code = "from watchroom.agents.clients import client_program; print(client_program.age())"
    line = f"sleep 1; echo | {{ cat; }} | {sys.executable} -c '{code}'"
    ended = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=True)
    assert 1 <= float(ended.stdout) < PATIENCE


def test_a_question_ends_with_the_shell_that_asked_it(root: Path, workspace: Workspace) -> None:
    """A client that kills its hook leaves curl behind, which waits for the answer."""
    add_rule(workspace, ASKING)
    with attendant(root), hook(root, "PreToolUse", **CALL) as waiting:
        asked = wait_for(workspace, lambda row: row.tool == ASK and row.version == 1)
        waiting.kill()
        wait_for(workspace, lambda row: row.path == asked.path and row.version == 2)


def test_a_line_waits_for_a_person_as_long_as_it_takes(root: Path, workspace: Workspace) -> None:
    """curl gives up on a service that sends nothing for ten seconds, so the service sends blanks."""
    add_rule(workspace, ASKING)
    with attendant(root), hook(root, "PreToolUse", **CALL) as waiting:
        asked = wait_for(workspace, lambda row: row.tool == ASK and row.version == 1)
        time.sleep(12)
        assert waiting.poll() is None
        answer(workspace, asked, True)
        assert '"allow"' in said_by(waiting)
