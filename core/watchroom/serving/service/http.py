"""HTTP requests on the service's socket. They are read within limits, and answered in chunks."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import h11

from watchroom.agents.clients.client_program import BEAT_SECONDS, MAX_EVENT_BYTES

READ_SECONDS: Final = 10.0
"""Timeout for reading a request, in seconds."""
MAX_BODY_BYTES: Final = MAX_EVENT_BYTES
_MAX_HEAD_BYTES: Final = 65_536
_PIECE: Final = 1 << 16
_MAX_FIELDS: Final = 200
_BEAT: Final = b" " * 63 + b"\n"
"""Sent while an answer is pending. Clients give up on a service that sends less than a byte per second."""
_CREDENTIALS: Final = struct.Struct("3i")
"""The answer of SO_PEERCRED: process, user and group."""


class BadRequest(Exception):  # The error is sent as the answer.
    """A refused request. ``status``: the HTTP status. The text is the body of the answer."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


class Peer(NamedTuple):
    """The process at the other end of a connection; 0 if unknown, for example in another namespace."""

    pid: int
    uid: int


class ServiceRequest(NamedTuple):
    """A request: its method, its path, the fields of its query in order, and its body."""

    method: str
    path: str
    fields: Sequence[tuple[str, str]]
    body: bytes
    peer: Peer

    def all(self, name: str) -> tuple[str, ...]:
        """Return the values of the field ``name``."""
        return tuple(value for each, value in self.fields if each == name)

    def get(self, name: str, default: str = "") -> str:
        """Return the last value of the field ``name``."""
        return next(iter(reversed(self.all(name))), default)


def peer_of(writer: asyncio.StreamWriter) -> Peer:
    """Return the process that has connected."""
    connection: socket.socket = writer.get_extra_info("socket")
    if not hasattr(socket, "SO_PEERCRED"):
        return Peer(0, -1)
    given = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(given)
    return Peer(pid, uid)


class Connection:
    """One connection to the service, for one request. `close` closes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD_BYTES)
        self._has_begun = False

    async def read_request(self) -> ServiceRequest:
        """Return the request. Raise `BadRequest`, ConnectionError, TimeoutError."""
        async with asyncio.timeout(READ_SECONDS):
            try:
                head = await self._next_event()
                if not isinstance(head, h11.Request):
                    raise ConnectionResetError("no request")
                body = await self._read_body()
            except h11.RemoteProtocolError as error:
                raise BadRequest(error.error_status_hint, str(error)) from error
        target = urlsplit(head.target.decode("ascii"))
        try:
            fields = parse_qsl(
                target.query, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="surrogateescape"
            )
        except ValueError as error:
            raise BadRequest(400, str(error)) from error
        return ServiceRequest(head.method.decode("ascii"), target.path, fields, body, peer_of(self.writer))

    async def _next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._http.receive_data(await self.reader.read(_PIECE))
        return event

    async def _read_body(self) -> bytes:
        body = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            body += event.data
            if len(body) > MAX_BODY_BYTES:
                raise BadRequest(413, f"more than {MAX_BODY_BYTES} bytes")
        if not isinstance(event, h11.EndOfMessage):
            raise ConnectionResetError("no whole request")
        return bytes(body)

    async def _send(self, *events: h11.Event) -> None:
        data = b"".join(self._http.send(event) or b"" for event in events)
        if data:
            self.writer.write(data)
            await self.writer.drain()

    async def beat(self) -> None:
        """Show the client that its answer is still pending. Raise ConnectionError."""
        await self._send(*self._begin(200), h11.Data(data=_BEAT))

    def _begin(self, status: int) -> Sequence[h11.Event]:
        """Return the head of the answer, or nothing if it was already sent."""
        if self._has_begun:
            return ()
        self._has_begun = True
        headers = [("Transfer-Encoding", "chunked"), ("Connection", "close")]
        return (h11.Response(status_code=status, headers=headers),)

    async def answer(self, text: str, status: int = 200) -> None:
        """Answer with ``text``, and end the answer. ``status``: the HTTP status, if the answer has not begun.
        Raise ConnectionError."""
        body = h11.Data(data=text.encode("utf-8", "replace"))
        await self._send(*self._begin(status), body, h11.EndOfMessage())

    async def refuse(self, text: str, status: int) -> None:
        """Answer with an error. An answer that has begun is cut off, because it began as a success. Raise
        ConnectionError."""
        if self._has_begun:
            self.writer.transport.abort()
        else:
            await self.answer(text, status)

    async def upgrade(self, protocol: str) -> None:
        """Switch from HTTP to ``protocol``.

        Raise `BadRequest` if the client has not requested this or does not wait for the answer, and
        ConnectionError.
        """
        # The state is documented, but is not in the library's list of names.
        if self._http.their_state is not h11.MIGHT_SWITCH_PROTOCOL:  # type: ignore[attr-defined]
            raise BadRequest(426, "no upgrade")
        if self._http.trailing_data[0]:
            raise BadRequest(400, "sent before the upgrade")
        self._has_begun = True
        headers = [("Connection", "Upgrade"), ("Upgrade", protocol)]
        await self._send(h11.InformationalResponse(status_code=101, headers=headers))

    async def wait_with_beats(self, *awaited: asyncio.Future[Any]) -> None:
        """Wait until one of ``awaited`` is done. In the meantime, show the client that its answer is still
        pending. Raise ConnectionError."""
        while not (await asyncio.wait(awaited, timeout=BEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED))[0]:
            await self.beat()

    async def close(self) -> None:
        """Close the connection."""
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()
