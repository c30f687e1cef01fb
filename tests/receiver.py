"""A server on loopback that receives POST requests, with configurable answers."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue
from threading import Thread
from typing import Any, NamedTuple

PATIENCE = 30


class Posted(NamedTuple):
    path: str
    headers: dict[str, str]
    body: Any


class Receiver:
    """The received requests. ``statuses`` are the next answers, then 200."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.statuses: deque[int] = deque()
        self._posted: Queue[Posted] = Queue()

    def take(self, posted: Posted) -> int:
        self._posted.put(posted)
        return self.statuses.popleft() if self.statuses else 200

    def next(self) -> Posted:
        return self._posted.get(timeout=PATIENCE)

    def rest(self) -> list[Posted]:
        found = []
        while True:
            try:
                found.append(self._posted.get_nowait())
            except Empty:
                return found


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.take(Posted(self.path, dict(self.headers), json.loads(body)))
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(f"http://127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
