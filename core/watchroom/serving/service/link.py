"""Keeps a request to the service open for as long as this process needs it: to keep a workspace, or to serve
a port."""

from __future__ import annotations

import logging
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Final

from watchroom.agents.clients import client_program
from watchroom.errors import NoService

_RETRY_SECONDS: Final = (0.1, 30.0)
"""Seconds before another attempt to reach the service: the first delay, and the maximum."""
_START_SECONDS: Final = 60.0
"""Timeout for the start of a service, in seconds. It may wait 30 seconds for the end of another service."""
_log = logging.getLogger("watchroom")


class ServiceLink:
    """A request to the service that is held until `close`. If the service ends, it is started again.

    - ``program``: the words that call ``watchroom``
    - ``path``: ``/use`` to keep a workspace, ``/http`` to serve a port
    - ``fields``: the fields of the request, such as the ``root`` of the workspace
    """

    def __init__(self, program: Sequence[str], path: str, fields: Sequence[tuple[str, str]]) -> None:
        self._program = program
        self._path = path
        self._fields = [*fields]
        self._closing = Event()
        self._connection: socket.socket | None = None

    def start(self) -> None:
        """Begin to hold the request, on a thread. An unreachable service is only logged: without a service,
        each process does its work itself."""
        Thread(target=self.run, name="watchroom-service", daemon=True).start()

    def run(self) -> None:
        """Hold the request until `close`. Errors are logged."""
        first, longest = _RETRY_SECONDS
        delay = first
        while not self._closing.is_set():
            try:
                connection = self._connection or self.connect()
                # The service sends nothing. This returns when the service ends, or at `close`.
                connection.recv(1)
                delay = first
            except (OSError, NoService) as error:
                _log.warning("%s", error.message() if isinstance(error, NoService) else error)
                self._closing.wait(delay)
                delay = min(2 * delay, longest)
            finally:
                self._leave()

    def connect(self) -> socket.socket:
        """Send the request to the service. Raise `NoService` with the reason if the service does not accept
        it."""
        try:
            return self._connect()
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            self._leave()
            reason = error.strerror if isinstance(error, OSError) else ""
            raise NoService(reason=reason or str(error)) from error

    def close(self) -> None:
        """End the request. The service continues for others, or ends when it is idle."""
        self._closing.set()
        if self._connection is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)

    def _connect(self) -> socket.socket:
        try:
            connection = client_program.open_connection()
        except (FileNotFoundError, ConnectionRefusedError):
            self._start_service()
            connection = client_program.open_connection()
        self._connection = connection
        # Opening a large journal takes a while. A service that has died closes the connection.
        stream = client_program.Stream(connection, None)
        upgrade = "Connection: Upgrade\r\nUpgrade: hold\r\n"
        connection.sendall(client_program.request("GET", self._path, self._fields, more=upgrade))
        if client_program.read_head(stream) != client_program.SWITCHING:
            raise ValueError(client_program.read_chunks(stream).decode(errors="replace"))
        connection.settimeout(None)
        if self._closing.is_set():
            raise ConnectionAbortedError("closed")
        return connection

    def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _start_service(self) -> None:
        """Start the service, and wait until it is ready. Raise OSError."""
        client_program.make_runtime_folder()
        # The shell leaves the service to process 1. Its output ends when the service is ready.
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *self._program, "service", "run"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env=client_program.service_environment(),
            timeout=_START_SECONDS,
            check=False,
        )
