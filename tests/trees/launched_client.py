"""A client that `watchroom claude` starts: it reads its hooks and its server from the files that its arguments
name.

Each line on standard input is JSON. It runs the hooks of an event, and prints what they answered. A request
with a ``method`` goes to the server of Watchroom's tools, which the first one starts. It ends with status 7.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


class Client:
    """The client with its ``arguments``."""

    def __init__(self, arguments: list[str]) -> None:
        own = arguments[: arguments.index("--")] if "--" in arguments else arguments
        self._files = {option: own[at + 1] for at, option in enumerate(own[:-1]) if option[:2] == "--"}
        self._server: subprocess.Popen[str] | None = None

    def run_hooks(self, line: str, event: str) -> list[Any]:
        answers = []
        for group in self._read("--settings").get("hooks", {})[event]:
            command = ["/bin/sh", "-c", group["hooks"][0]["command"]]
            done = subprocess.run(command, input=line, capture_output=True, text=True, check=False)
            answers.append([done.returncode, done.stdout, done.stderr])
        return answers

    def request(self, line: str) -> Any:
        """Return what the server answers to a request."""
        if self._server is None:
            server = self._read("--mcp-config")["mcpServers"]["watchroom"]
            command, pipe = [server["command"], *server["args"]], subprocess.PIPE
            self._server = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1)
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(line)
        self._server.stdin.flush()
        number = json.loads(line)["id"]
        return next(each for each in map(json.loads, self._server.stdout) if each.get("id") == number)

    def _read(self, option: str) -> dict[str, Any]:
        name = self._files.get(option, "")
        if not name:
            return {}
        with open(name, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
        return found


def main(arguments: list[str]) -> int:
    client = Client(arguments)
    print(json.dumps({"pid": os.getpid(), "arguments": arguments}), flush=True)
    for line in sys.stdin:
        given = json.loads(line)
        answer = (
            client.request(line) if "method" in given else client.run_hooks(line, given["hook_event_name"])
        )
        print(json.dumps(answer), flush=True)
    return 7


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
