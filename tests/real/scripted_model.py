"""A model that says what a script tells it, on loopback, for real clients without an account.

It speaks Anthropic's Messages API and OpenAI's Responses API, streamed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

_USAGE: Final = {"input_tokens": 100, "output_tokens": 20}


class Turn(NamedTuple):
    """What the model says to one request.

    - ``tool``, ``given``: the call that it makes: its arguments, or the text of a free-form tool. Empty for a
      message.
    - ``before``: called before it answers.
    """

    tool: str = ""
    given: dict[str, Any] | str = ""
    before: Callable[[], object] = lambda: None


class ScriptedModel(ThreadingHTTPServer):
    """Answers each request that offers tools with the next of ``turns``, and all others with a message.

    ``asked``: the requests.
    """

    daemon_threads = True

    def __init__(self, turns: Sequence[Turn]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self._turns = [*turns]
        self._taken = 0
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def take(self, body: str) -> tuple[int, Turn]:
        """Return the turn that answers ``body``, and its number."""
        with self._lock:
            self.asked.append(body)
            if '"tools":[' not in body.replace(": ", ":") or '"tools":[]' in body or not self._turns:
                return 0, Turn()
            self._taken += 1
            return self._taken, self._turns.pop(0)


@contextmanager
def serve_model(turns: Sequence[Turn]) -> Iterator[ScriptedModel]:
    """Serve a model within the context."""
    with ScriptedModel(turns) as model:
        threading.Thread(target=model.serve_forever, daemon=True).start()
        try:
            yield model
        finally:
            model.shutdown()


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedModel

    def do_GET(self) -> None:
        self._send({"object": "list", "data": []})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        path = self.path.partition("?")[0]
        if not path.endswith(("/messages", "/responses")):
            self._send({"input_tokens": 1})
            return
        number, turn = self.server.take(body)
        turn.before()
        events = _messages(turn, number) if path.endswith("/messages") else _responses(turn, number)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in events:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def _send(self, said: dict[str, Any]) -> None:
        text = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Write nothing to standard error."""


def _messages(turn: Turn, number: int) -> Iterator[dict[str, Any]]:
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": "Done."}
    if turn.tool:
        block = {"type": "tool_use", "id": f"toolu_{number:06d}", "name": turn.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(turn.given)}
    reason = {"stop_reason": "tool_use" if turn.tool else "end_turn", "stop_sequence": None}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted"}
    begun: dict[str, Any] = {
        **message,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _USAGE,
    }
    yield {"type": "message_start", "message": begun}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": reason, "usage": _USAGE}
    yield {"type": "message_stop"}


def _responses(turn: Turn, number: int) -> Iterator[dict[str, Any]]:
    content = [{"type": "output_text", "text": "Done.", "annotations": []}]
    item: dict[str, Any] = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}
    if turn.tool:
        item = {"id": f"fc_{number}", "call_id": f"call_{number:06d}", "name": turn.tool}
        item |= {"type": "custom_tool_call", "input": turn.given}
    whole = {"id": f"resp_{number}", "object": "response", "model": "scripted"}
    usage = {**_USAGE, "total_tokens": 120}
    yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    done = {**whole, "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.completed", "response": done}
