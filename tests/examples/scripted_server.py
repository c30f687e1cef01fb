"""A model with the chat completions API on loopback, which works on a shared file as a careful agent does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

PATIENCE: Final = 60


class ScriptedServer(ThreadingHTTPServer):
    """Reads the file, adds a line, and merges after a refusal. All ``agents`` have read before one writes."""

    daemon_threads = True

    def __init__(self, agents: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._have_read = threading.Barrier(agents)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def answer(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the model's next message. It depends only on the conversation."""
        results = [json.loads(_text(each)) for each in messages if each["role"] == "tool"]
        if not results:
            return _call(0, "collab_read", {"filepath": "plan.md"})
        last = results[-1]
        if last["success"] and "content" not in last:
            return {"role": "assistant", "content": "Done."}
        if last["success"]:
            self._have_read.wait(PATIENCE)
        task = next(_text(each) for each in messages if each["role"] == "user")
        line = task.partition("Add one line about ")[2].partition(" at its end")[0]
        text, version = ("content", "version") if last["success"] else ("current_content", "current_version")
        written = {"content": f"{last[text]}- {line}\n", "message": line, "expected_version": last[version]}
        return _call(len(results), "collab_write", {"filepath": "plan.md", **written})


@contextmanager
def serve_script(agents: int) -> Iterator[ScriptedServer]:
    """Serve a model within the context."""
    with ScriptedServer(agents) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _call(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": f"c{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedServer

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = self.server.answer(given["messages"])
        is_stream = bool(given.get("stream"))
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        kind = "chat.completion.chunk" if is_stream else "chat.completion"
        choice = {"index": 0, "delta" if is_stream else "message": message, "finish_reason": reason}
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        answer = {"id": "1", "object": kind, "created": 0, "model": "scripted", "choices": [choice]}
        text = json.dumps({**answer, "usage": usage})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
        self.end_headers()
        self.wfile.write((f"data: {text}\n\ndata: [DONE]\n\n" if is_stream else text).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Write nothing to standard error."""
