"""An HTTP proxy on a Unix socket. Commands without network can reach a few hosts through it.

It connects to listed hosts, on the ports 80 and 443, with CONNECT or for a plain request. It never connects
to an address of this machine or of a private network, even if a name resolves to such an address. It cannot
read encrypted connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from threading import Thread
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

from watchroom.platform.sandbox.hosts import is_allowed, normalize_host
from watchroom.texts import Catalogue

PORTS: Final = (80, 443)
_HEAD_SECONDS: Final = 30.0
"""Timeout for the header of a request."""
_CONNECT_SECONDS: Final = 30.0
_MAX_CONNECTIONS: Final = 64
_READ_BYTES: Final = 64 * 1024
_TRANSLATED: Final = ipaddress.ip_network("64:ff9b::/96")
"""The IPv6 addresses of NAT64. Each contains an IPv4 address."""
_END_OF_HEAD: Final = b"\r\n\r\n"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[str, int], Awaitable[Streams]]


class RequestRefused(Exception):
    """A request for ``host`` is refused. ``key``: the key of the text with the reason."""

    def __init__(self, key: str, host: str) -> None:
        super().__init__(key)
        self.key = key
        self.host = host


class _ProxyRequest(NamedTuple):
    host: str
    port: int
    head: bytes
    """The bytes that are first sent to the host; empty for a tunnel."""


async def connect_public(host: str, port: int) -> Streams:
    """Connect to a public address of ``host``. Raise `RequestRefused` if it has none, OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    public = [str(address[4][0]) for address in found if _is_public(str(address[4][0]))]
    if not public:
        raise RequestRefused("private", host)
    # Connect by address, because a second lookup of the name can return another address.
    return await asyncio.open_connection(public[0], port)


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            address = inner
    return address.is_global and not address.is_multicast


class Proxy:
    """Serves on its own thread from `__enter__` to `__exit__`, at the socket ``path``.

    - ``hosts``: names and patterns of the allowed hosts.
    - ``texts``: the texts for refusals.
    - ``connect``: opens connections, default `connect_public`.

    The attributes ``reached`` and ``refused`` are the requested hosts so far.
    """

    def __init__(self, hosts: Sequence[str], texts: Catalogue, connect: Connect = connect_public) -> None:
        self.reached: set[str] = set()
        self.refused: set[str] = set()
        self._hosts = tuple(hosts)
        self._texts = texts
        self._connect = connect
        self._serving: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="watchroom-proxy", daemon=True)
        self._folder = tempfile.mkdtemp(prefix="watchroom-")
        self.path = os.path.join(self._folder, "proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        shutil.rmtree(self._folder)

    async def _begin(self) -> None:
        self._server = await asyncio.start_unix_server(self._accept, self.path, limit=_READ_BYTES)

    async def _end(self) -> None:
        self._server.close()
        for task in tuple(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._serving) >= _MAX_CONNECTIONS:
            writer.close()
            return
        self._serving.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, EOFError):
            # One of the two ends has closed the connection.
            return
        finally:
            self._serving.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = ""
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                request = _parse_request(await reader.readuntil(_END_OF_HEAD))
            host = request.host
            if request.port not in PORTS:
                raise RequestRefused("port", host)
            if not is_allowed(host, self._hosts):
                raise RequestRefused("host", host)
            async with asyncio.timeout(_CONNECT_SECONDS):
                there, forward = await self._connect(host, request.port)
        except RequestRefused as refusal:
            self.refused.add(refusal.host)
            await _answer(writer, 403, self._texts(f"proxy.{refusal.key}", host=refusal.host))
        except (ValueError, asyncio.LimitOverrunError):
            await _answer(writer, 400, self._texts("proxy.invalid"))
        except (OSError, TimeoutError):
            await _answer(writer, 502, self._texts("proxy.unreachable", host=host))
        else:
            self.reached.add(host)
            try:
                if request.head:
                    forward.write(request.head)
                else:
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await asyncio.gather(_relay(reader, forward), _relay(there, writer))
            finally:
                forward.close()


def _parse_request(head: bytes) -> _ProxyRequest:
    """Parse the header of a request. Raise ValueError if it is invalid."""
    first, *fields = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, target, version = first.split(" ")
    if method == "CONNECT":
        name, _, number = target.rpartition(":")
        return _ProxyRequest(normalize_host(name), int(number), b"")
    url = urlsplit(target)
    if url.scheme != "http" or not url.hostname:
        raise ValueError(target)
    host, port = normalize_host(url.hostname), url.port or PORTS[0]
    path = f"{url.path or '/'}{'?' + url.query if url.query else ''}"
    # Our own Host and Connection headers: no request for another name, and no second request on this
    # connection.
    kept = [each for each in fields if not _HOP_BY_HOP.match(each)]
    named = host if port == PORTS[0] else f"{host}:{port}"
    lines = [f"{method} {path} {version}", f"Host: {named}", *kept, "Connection: close", "", ""]
    return _ProxyRequest(host, port, "\r\n".join(lines).encode("latin-1"))


_HOP_BY_HOP: Final = re.compile(r"(host|connection|keep-alive|proxy-[a-z-]+)\s*:", re.IGNORECASE)


async def _relay(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Forward ``source`` until its end."""
    while piece := await source.read(_READ_BYTES):
        target.write(piece)
        await target.drain()
    with contextlib.suppress(OSError):
        target.write_eof()


async def _answer(writer: asyncio.StreamWriter, status: int, text: str) -> None:
    body = (text + "\n").encode()
    reason = text if text.isascii() else "refused"
    head = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
