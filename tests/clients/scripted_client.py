"""A client as Claude Code or Codex is one: a process of its own that starts a server and hooks.

It reads requests as lines of JSON on standard input, and answers each with a line on standard output.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


class Client:
    """What the client has started."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None

    def do(self, what: str, command: list[str], message: dict[str, Any]) -> dict[str, Any]:
        """Do ``what`` a request asks: start a server or run a hook with ``command``, or send the server
        ``message``."""
        if what == "hook":
            given = json.dumps(message).encode()
            ended = subprocess.run(command, input=given, capture_output=True, check=False)
            return {"status": ended.returncode, "out": ended.stdout.decode(), "err": ended.stderr.decode()}
        if what == "start":
            pipe = subprocess.PIPE
            self._server = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
            return {}
        assert self._server is not None
        return self._send(self._server, message)

    @staticmethod
    def _send(server: subprocess.Popen[bytes], message: dict[str, Any]) -> dict[str, Any]:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        if "id" not in message:
            return {}
        for line in server.stdout:
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == message["id"]:
                return answer
        return {"status": server.wait(), "err": server.stderr.read().decode()}


if __name__ == "__main__":
    client = Client()
    for request in sys.stdin:
        print(json.dumps(client.do(*json.loads(request))), flush=True)
