"""Fifty attached clients at two events a second each: how soon each event stands in the dashboard's model,
and what a client's attendant takes of memory and processor, beside a server of the MCP SDK that does nothing.

The events are handed over as the program of a hook does it, without its process: that is the client's.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from statistics import median, quantiles
from tempfile import TemporaryDirectory

import psutil
from measure import Measure
from watchroom import Workspace
from watchroom.clients.hook_client import FOLDER
from watchroom.projections import Fold

AGENTS = 50
EVENTS_A_SECOND = 2.0
SECONDS = 15.0
MOST_MILLISECONDS = 100.0
MOST_MEGABYTES = 40.0
_START_SECONDS = 240.0
_SDK_SERVER = """
import asyncio
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server

async def serve():
    server = Server("nothing")
    async with stdio_server() as (reads, writes):
        await server.run(reads, writes, server.create_initialization_options(NotificationOptions()))

asyncio.run(serve())
"""
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}


def measure() -> list[Measure]:
    """All in one run."""
    names = [f"agent{number}" for number in range(AGENTS)]
    with (
        TemporaryDirectory() as folder,
        Workspace.open(folder, agents=names) as workspace,
        ExitStack() as stack,
    ):
        servers = [stack.enter_context(_attendant(folder, name)) for name in names]
        bare = stack.enter_context(_server([sys.executable, "-c", _SDK_SERVER]))
        for name in names:
            _tell(folder, name, "SessionStart", source="startup")
        taken = _Taken(workspace)
        stack.callback(taken.end)
        before = sum(map(_cpu_seconds, servers))
        sent = _send(folder, names)
        used = sum(map(_cpu_seconds, servers)) - before
        taken.wait_for(len(sent))
        delays = [1000 * (taken.at[key] - at) for key, at in sent.items() if key in taken.at]
        memory, of_sdk = median(map(_megabytes, servers)), _megabytes(bare)
    return [
        Measure(
            f"{AGENTS} attached agents at {EVENTS_A_SECOND:g} events a second: event → model, p95",
            quantiles(delays, n=20)[-1],
            "ms",
            MOST_MILLISECONDS,
            remark=f"median {median(delays):.0f} ms, {len(delays)} of {len(sent)} events",
        ),
        Measure("CPU of all attendants for an event", 1000 * used / len(sent), "ms"),
        Measure(
            "an attendant's own memory, median",
            memory,
            "MB",
            MOST_MEGABYTES,
            remark=f"{of_sdk:.0f} MB a server of the SDK alone, {memory - of_sdk:.0f} MB more",
        ),
    ]


def _cpu_seconds(server: subprocess.Popen[str]) -> float:
    times = psutil.Process(server.pid).cpu_times()
    return times.user + times.system


def _megabytes(server: subprocess.Popen[str]) -> float:
    """What the server has of memory to itself."""
    return psutil.Process(server.pid).memory_full_info().uss / 1e6


def _attendant(root: str, agent: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """The server that a client of ``agent`` starts, once it serves."""
    return _server(
        [sys.executable, "-m", "watchroom_tui.cli", "mcp", root, "--agent", agent, "--client", "claude"]
    )


@contextmanager
def _server(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A server with this ``command``, once it serves."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no pipes")
        server.stdin.write(json.dumps(_HELLO) + "\n")
        server.stdin.flush()
        server.stdout.readline()
        yield server
        server.stdin.close()


def _tell(root: str, agent: str, name: str, **more: object) -> None:
    """Hand an event over to the attendant of ``agent``, and wait for its answer."""
    event = {"hook_event_name": name, "session_id": f"session-of-{agent}", "cwd": root, **more}
    given = json.dumps(event).encode()
    # A path from the root may be too long for a socket.
    address = os.path.relpath(os.path.join(root, FOLDER, f"{agent}-{os.getpid()}.sock"))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_START_SECONDS)
        connection.connect(address)
        connection.sendall(json.dumps({"bytes": len(given), "may_wait": False}).encode() + b"\n" + given)
        with connection.makefile("rb") as file:
            file.readline()


def _send(root: str, agents: list[str]) -> dict[str, float]:
    """Send the events of all agents, evenly; the time at which each was sent, by the id of its call."""
    sent: dict[str, float] = {}
    begun = time.perf_counter() + 0.5

    def run(number: int, agent: str) -> None:
        count = int(SECONDS * EVENTS_A_SECOND)
        for at in range(count):
            due = begun + at / EVENTS_A_SECOND + number / AGENTS / EVENTS_A_SECOND
            time.sleep(max(0.0, due - time.perf_counter()))
            call = f"{agent}-{at}"
            sent[call] = time.perf_counter()
            _tell(
                root, agent, "PreToolUse", tool_name="Bash", tool_input={"command": "true"}, tool_use_id=call
            )

    threads = [threading.Thread(target=run, args=each) for each in enumerate(agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sent


class _Taken:
    """Folds the rows of ``workspace`` as the dashboard does, and notes when each call had come."""

    def __init__(self, workspace: Workspace) -> None:
        self.at: dict[str, float] = {}
        self._journal = workspace.journal
        self._fold = Fold(workspace.journal.content, workspace.journal.row)
        self._is_ended = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        changes = self._journal.changes()
        while not self._is_ended:
            changes.wait(0.5)
            while rows := self._journal.rows(self._fold.seq):
                self._fold.apply(rows)
                self._fold.model()
                now = time.perf_counter()
                for row in rows:
                    key = str(row.detail.get("idempotency_key", "")).rpartition(" ")[2]
                    self.at.setdefault(key, now)
        changes.close()

    def wait_for(self, count: int) -> None:
        """Wait until so many calls have come, or none has for a while."""
        until = time.monotonic() + 20
        while len(self.at) < count and time.monotonic() < until:
            time.sleep(0.1)

    def end(self) -> None:
        self._is_ended = True
        self._thread.join()
