"""A client as Claude Code is one, as far as its server and its hooks go: it starts both as `attach` says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cli.running import as_typed
from service_process import is_attended, running_service
from watchroom import Workspace
from watchroom.agents.clients import run_client_program
from watchroom.model import Row

PATIENCE = 20
SESSION = "11111111-2222-4333-8444-555555555555"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    },
}


def hook_command(root: Path, *more: str, agent: str = "alice") -> list[str]:
    """The command of a hook, as `attach` writes it."""
    called = as_typed("hook", str(root), "--agent", agent, *more)
    return [sys.executable, "-I", "-S", run_client_program.__file__, *called]


def told(name: str, **more: object) -> dict[str, Any]:
    """An event of the session, as a client tells it."""
    return {"hook_event_name": name, "session_id": SESSION, "cwd": "/project", **more}


class AttachedClient:
    """A client of ``agent`` in the workspace at ``root``, in a terminal or without one, whose hooks run
    ``within`` another command."""

    def __init__(
        self,
        root: Path,
        *more: str,
        agent: str = "alice",
        has_terminal: bool = True,
        within: Sequence[str] = (),
    ) -> None:
        self._command = [*within, *hook_command(root, *more, agent=agent)]
        self._environment = {**os.environ, "CLAUDE_CODE_ENTRYPOINT": "cli" if has_terminal else "sdk-cli"}

    def hook(self, name: str, **more: object) -> dict[str, Any] | None:
        """What the hook answers to an event, None for nothing."""
        return self.answer(self.begin(name, **more))

    def begin(self, name: str, **more: object) -> subprocess.Popen[str]:
        """Begin a hook, which may wait."""
        pipe = subprocess.PIPE
        hook = subprocess.Popen(
            self._command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=self._environment
        )
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(told(name, **more)))
        hook.stdin.close()
        hook.stdin = None
        return hook

    def answer(self, hook: subprocess.Popen[str]) -> dict[str, Any] | None:
        """What the hook answers that was begun."""
        out, err = hook.communicate(timeout=PATIENCE)
        assert (hook.returncode, err) == (0, ""), err
        return json.loads(out) if out else None


@contextmanager
def attendant(root: Path, *more: str, agent: str = "alice") -> Iterator[subprocess.Popen[bytes]]:
    """The service, once it answers the hooks of this process, which is a client that has started its server and
    has said nothing to it yet."""
    with running_service() as service, relay(root, *more, agent=agent):
        yield service


@contextmanager
def relay(root: Path, *more: str, agent: str = "alice") -> Iterator[subprocess.Popen[str]]:
    """The server that a client starts, once the service knows the client."""
    command = as_typed("mcp", str(root), "--agent", agent, "--client", "claude", *more)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        until = time.monotonic() + PATIENCE
        while not is_attended(root, os.getpid(), agent):
            assert server.poll() is None
            assert time.monotonic() < until, "the service does not know the client"
            time.sleep(0.01)
        yield server


def wait_for(workspace: Workspace, fits: Callable[[Row], bool]) -> Row:
    """The first row that fits, once it is there."""
    changes, until = workspace.journal.changes(), time.monotonic() + PATIENCE
    try:
        while time.monotonic() < until:
            found = next((row for row in workspace.journal.rows(limit=10_000) if fits(row)), None)
            if found is not None:
                return found
            changes.wait(1)
    finally:
        changes.close()
    seen = [
        (row.seq, row.tool, row.path, row.detail.get("status"))
        for row in workspace.journal.rows(limit=10_000)
    ]
    raise AssertionError(f"no such row among {seen}")
