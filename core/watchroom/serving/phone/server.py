"""`PhoneServer`: the HTTP server of the pages, on the loopback interface. A person's own proxy or tunnel
forwards to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from socket import socket
from typing import Final

import h11

from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.serving.phone.pages import HEADERS, PhonePages, PhoneRequest, PhoneResponse

READ_SECONDS: Final = 10.0
"""Timeout for reading a request, in seconds."""
_WRITE_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 30.0
_DRAIN_SECONDS: Final = 1.0
MAX_BODY_BYTES: Final = 65_536
MAX_HEAD_BYTES: Final = 16_384
MAX_CONNECTIONS: Final = 100
_MAX_THREADS: Final = 8
"""Maximum number of requests that are answered at the same time."""
_PIECE: Final = 1 << 14
_MAX_DRAINED_BYTES: Final = 1 << 20
_log = logging.getLogger("watchroom")


class _Refused(Exception):
    """A request that is not read to its end. ``status``: the HTTP status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class PhoneServer:
    """Serves ``pages`` on the listening socket ``listener``. Each connection has one request."""

    def __init__(self, pages: PhonePages, listener: socket) -> None:
        self._pages = pages
        self._listener = listener
        self._connections: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(_MAX_THREADS)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serve while the context lasts."""
        server = await asyncio.start_server(self._accept, sock=self._listener, limit=MAX_HEAD_BYTES)
        try:
            yield
        finally:
            server.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
            await run_in_thread(self._pages.close)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._serve_connection(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        try:
            try:
                async with asyncio.timeout(READ_SECONDS):
                    request = await _read_request(http, reader, writer)
            except h11.RemoteProtocolError as error:
                await _refuse(http, reader, writer, error.error_status_hint)
            except _Refused as error:
                await _refuse(http, reader, writer, error.status)
            except TimeoutError:
                await _refuse(http, reader, writer, HTTPStatus.REQUEST_TIMEOUT)
            else:
                response = await self._respond(request)
                async with asyncio.timeout(_WRITE_SECONDS):
                    await _send(http, writer, response, is_head=request.method == "HEAD")
        except (OSError, TimeoutError, h11.LocalProtocolError):
            # The client has gone, or does not read its answer.
            writer.transport.abort()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _respond(self, request: PhoneRequest) -> PhoneResponse:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS), self._turns:
                return await run_in_thread(self._pages.respond, request)
        except TimeoutError:
            return PhoneResponse(HTTPStatus.SERVICE_UNAVAILABLE, "")
        except Exception:  # noqa: BLE001  # one request must not end the server; the log has the error
            _log.exception("a page could not be shown")
            return PhoneResponse(HTTPStatus.INTERNAL_SERVER_ERROR, "")


async def _read_request(
    http: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> PhoneRequest:
    """Return the request of a connection. Raise `_Refused`, OSError, and h11.RemoteProtocolError."""
    head = await _next_event(http, reader, writer)
    if not isinstance(head, h11.Request):
        raise ConnectionResetError("no request")
    headers = [(name.decode("ascii"), value.decode("latin-1")) for name, value in head.headers]
    body = bytearray()
    while isinstance(event := await _next_event(http, reader, writer), h11.Data):
        body += event.data
        if len(body) > MAX_BODY_BYTES:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    if not isinstance(event, h11.EndOfMessage):
        raise ConnectionResetError("no whole request")
    path = head.target.decode("ascii", "replace").partition("?")[0]
    return PhoneRequest(head.method.decode("ascii"), path, headers, bytes(body))


async def _next_event(
    http: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
    while (event := http.next_event()) is h11.NEED_DATA:
        if http.they_are_waiting_for_100_continue:
            writer.write(http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            await writer.drain()
        http.receive_data(await reader.read(_PIECE))
    return event


async def _send(
    http: h11.Connection, writer: asyncio.StreamWriter, response: PhoneResponse, *, is_head: bool
) -> None:
    """Send ``response``. ``is_head``: without its page. Raise OSError."""
    body = response.page.encode("utf-8", "replace")
    headers = [*HEADERS, *response.headers, ("Content-Length", str(len(body))), ("Connection", "close")]
    events: list[h11.Event] = [h11.Response(status_code=response.status, headers=headers)]
    if body and not is_head:
        events.append(h11.Data(data=body))
    writer.write(b"".join(http.send(event) or b"" for event in (*events, h11.EndOfMessage())))
    await writer.drain()


async def _refuse(
    http: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: int
) -> None:
    """Answer with ``status`` a request that was not read to its end. Raise OSError."""
    text = f"{status}\n".encode()
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + text)
    async with asyncio.timeout(_DRAIN_SECONDS):
        await writer.drain()
        writer.write_eof()
        # Otherwise the system would reset the connection, and the client might not see the answer.
        left = _MAX_DRAINED_BYTES
        while left > 0 and (piece := await reader.read(_PIECE)):
            left -= len(piece)
