"""The program of a hook never waits without a deadline, and nobody ends it so that a call slips through."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import pytest
from cli.running import as_typed
from clients.attached import (
    PATIENCE,
    AttachedClient,
    attendant,
    hook_command,
    told,
    wait_for,
)
from watchroom import Workspace, __version__
from watchroom.agents.clients import client_program
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.model import ASK, PAUSE

pytestmark = pytest.mark.slow(4)

CALL: Final[dict[str, Any]] = {
    "tool_name": "Bash",
    "tool_input": {"command": "make deploy"},
    "tool_use_id": "t1",
}
DENYING: Final = '\n[[policy.rules]]\nname = "never"\ntool = ["Bash"]\nverdict = "deny"\n'
ASKING: Final = '\n[[policy.rules]]\ntool = ["Bash"]\nverdict = "ask"\n'


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace.open(root, agents=["alice"]) as opened:
        yield opened


def add_rule(workspace: Workspace, rule: str) -> None:
    config = Path(workspace.root, CONTROL, CONFIG_PATH)
    config.write_text(config.read_text() + rule)
    workspace.scan()


@contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as hook:
        yield hook


@pytest.mark.parametrize("program", ["client", "command"])
@pytest.mark.parametrize("has_attendant", [False, True], ids=["alone", "attended"])
def test_a_hook_answers_although_its_input_stays_open(
    root: Path, workspace: Workspace, program: str, has_attendant: bool
) -> None:
    add_rule(workspace, DENYING)
    plain = as_typed("hook", str(root), "--agent", "alice", "--client", "claude")
    command = hook_command(root) if program == "client" else plain
    with attendant(root) if has_attendant else nullcontext(), started(command) as hook:
        assert hook.stdin is not None
        assert hook.stdout is not None
        hook.stdin.write(json.dumps(told("PreToolUse", **CALL)) + "\n")
        hook.stdin.flush()
        assert hook.wait(PATIENCE) == 0
        assert '"deny"' in hook.stdout.read()


def test_input_that_never_becomes_an_object_blocks(root: Path, workspace: Workspace) -> None:
    with started(hook_command(root)) as hook:
        assert hook.stdin is not None
        hook.stdin.write('{"hook_event_name": "PreToolUse", ')
        hook.stdin.flush()
        assert hook.wait(PATIENCE) == 2


def test_an_event_in_pieces_is_read_to_its_end() -> None:
    reads, writes = os.pipe()
    event = json.dumps({"tool_input": {"a": "}" * 100_000}}).encode()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=writes) as writer:
        os.close(writes)
        assert writer.stdin is not None
        writer.stdin.write(event)
        writer.stdin.flush()
        assert client_program.read_event(reads, PATIENCE) == event
        writer.stdin.close()
    os.close(reads)


def test_the_age_of_a_hook_begins_with_its_process() -> None:
    code = "import time; time.sleep(0.5); from watchroom.agents.clients import client_program; print(client_program.age())"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0.5 <= float(ended.stdout) < PATIENCE


@pytest.mark.parametrize("is_strict", [False, True], ids=["", "strict"])
@pytest.mark.parametrize("rule", ["", DENYING], ids=["", "denied"])
def test_a_stopped_attendant_holds_no_hook(
    root: Path, workspace: Workspace, is_strict: bool, rule: str
) -> None:
    """Without it the hook looks by itself; with --strict nothing is made meanwhile."""
    more = ("--client", "claude", "--strict") if is_strict else ("--client", "claude")
    add_rule(workspace, rule)
    with attendant(root, *more[2:]) as server:
        AttachedClient(root, *more).hook("UserPromptSubmit", prompt="Go")
        server.send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            said = AttachedClient(root, *more).hook("PreToolUse", **CALL)
            assert time.monotonic() - began < PATIENCE
        finally:
            server.send_signal(signal.SIGCONT)
        is_denied = is_strict or bool(rule)
        assert (said is not None) == is_denied
        if said is not None:
            decided = said["hookSpecificOutput"]
            assert decided["permissionDecision"] == "deny"
            assert ("never" in decided["permissionDecisionReason"]) == (not is_strict)


def test_an_attendant_that_is_stopped_amid_a_wait_is_noticed(root: Path, workspace: Workspace) -> None:
    """The hook then waits by itself, as if there were no attendant."""
    with attendant(root) as server:
        client = AttachedClient(root)
        client.hook("UserPromptSubmit", prompt="Go")
        workspace.session_zone.control(CallContext("human:ann", PAUSE), "alice", None, "")
        held = client.begin("PreToolUse", **CALL)
        paused = wait_for(workspace, lambda row: row.detail.get("status") == "paused")
        server.send_signal(signal.SIGSTOP)
        try:
            again = wait_for(
                workspace, lambda row: row.seq > paused.seq and row.detail.get("status") == "paused"
            )
            assert again.seq > paused.seq
            assert held.poll() is None
        finally:
            server.send_signal(signal.SIGCONT)
            held.kill()
            held.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("has_attendant", [False, True], ids=["alone", "attended"])
def test_a_hook_that_is_ended_lets_no_call_through(
    root: Path, workspace: Workspace, has_attendant: bool, number: signal.Signals
) -> None:
    add_rule(workspace, ASKING)
    with attendant(root) if has_attendant else nullcontext():
        waiting = AttachedClient(root).begin("PreToolUse", **CALL)
        asked = wait_for(workspace, lambda row: row.tool == ASK and row.version == 1)
        wait_for(workspace, lambda row: row.detail.get("status") == "waiting_for_human_input")
        waiting.send_signal(number)
        waiting.communicate(timeout=PATIENCE)
        assert waiting.returncode == 2
        wait_for(workspace, lambda row: row.path == asked.path and row.version == 2)


def test_the_program_has_the_version_of_the_package() -> None:
    """It imports nothing, so it states the version itself."""
    assert __version__ == client_program.VERSION
