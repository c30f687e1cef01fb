"""Complete programs that work in the same workspace: a society of simulated agents, and an attached agent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import count
from typing import Final, TextIO, cast

from watchroom import Json

from reliability.torturing.workers import Told

ATTACHED: Final = "ivy"
_LONG: Final = 3600
"""Seconds until it would end by itself."""
_CLI: Final = (sys.executable, "-m", "watchroom_cli.main")
_HELLO: Final[dict[str, Json]] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "torture", "version": "1"},
}


class Society:
    """``watchroom demo --headless`` at several times its speed, in the workspace at ``root``."""

    def __init__(self, root: str, seed: int) -> None:
        command = [*_CLI, "demo", root, "--headless", "--speed", "8", "--seed", str(seed)]
        command += ["--for", str(_LONG)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def kill(self) -> bool:
        """Kill it and its child processes. Return whether it was alive."""
        was_alive = self._process.poll() is None
        if was_alive:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        return was_alive


class AttachedAgent:
    """``watchroom mcp`` for `ATTACHED`, and a client that calls its tools until it is killed.

    - ``root``: the workspace.
    - ``number``: a unique number, for its tokens.
    - ``tell``: called with each call, before and after.
    """

    def __init__(self, root: str, number: int, tell: Callable[[Told], None]) -> None:
        command = [*_CLI, "mcp", root, "--agent", ATTACHED]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._number = number
        self._tell = tell
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def kill(self) -> bool:
        """Kill the server, and wait until the client notices. Return whether it was alive."""
        was_alive = self._process.poll() is None
        self._process.kill()
        self._process.wait()
        self._thread.join()
        return was_alive

    def _run(self) -> None:
        to, of = cast("TextIO", self._process.stdin), cast("TextIO", self._process.stdout)
        with to, of:
            try:
                self._ask(to, of, 0, "initialize", _HELLO)
                self._send(to, {"jsonrpc": "2.0", "method": "notifications/initialized"})
                for n in count(1):
                    self._save(to, of, n)
            except (BrokenPipeError, EOFError):
                # It was killed, so unanswered calls are not acknowledged.
                self._process.kill()

    def _save(self, to: TextIO, of: TextIO, n: int) -> None:
        token, path = f"<{self._number}.{n}>", f"{n % 3}.md"
        about = Told(kind="save_to_my_workspace", token=token, zone="private", path=f"{ATTACHED}/{path}")
        self._tell(about)
        arguments: dict[str, Json] = {"filename": path, "content": f"{token} attached"}
        answer = self._ask(to, of, n, "tools/call", {"name": about["kind"], "arguments": arguments})
        said = cast("dict[str, Json]", cast("dict[str, Json]", answer["result"])["structuredContent"])
        version = said.get("version")
        is_made = said["success"] is True
        error = said.get("error")
        answered = version if is_made and isinstance(version, int) else None
        self._tell({**about, "success": is_made, "version": answered, "error": str(error) if error else None})

    def _ask(self, to: TextIO, of: TextIO, n: int, method: str, params: dict[str, Json]) -> dict[str, Json]:
        """Return the answer to request ``n``, and skip other messages. Raises EOFError."""
        self._send(to, {"jsonrpc": "2.0", "id": n, "method": method, "params": params})
        while line := of.readline():
            answer = cast("dict[str, Json]", json.loads(line))
            if answer.get("id") == n and "result" in answer:
                return answer
        raise EOFError

    def _send(self, to: TextIO, message: dict[str, Json]) -> None:
        to.write(json.dumps(message) + "\n")
        to.flush()
