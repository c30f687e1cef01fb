"""The process of `SignerProcess`. It holds one key, and answers requests on a socket.

Started as ``python -m watchroom.platform.signing.serve_key FD``.
"""

from __future__ import annotations

import base64
import ctypes
import resource
import select
import signal
import socket
import sys
import time
from typing import Final

from watchroom.errors import WatchroomError
from watchroom.platform.signing.key_file import open_key_file
from watchroom.platform.signing.signer_process import receive_object, send_object

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The clock of the idle timeout. It continues while the machine sleeps: on Linux, CLOCK_MONOTONIC stops."""
_LOOK_SECONDS: Final = 1.0
"""Seconds between two reads of that clock. Timeouts of the system stop while the machine sleeps."""


def harden() -> None:
    """Disable core dumps. On Linux, also hide the memory from other processes, and end with the parent."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def serve(connection: socket.socket) -> None:
    """Unlock the key of the first request, then answer requests until ``connection`` closes.

    Raise TimeoutError after the idle timeout of the first request.
    """
    request = receive_object(connection)
    if request is None:
        return
    try:
        signer = open_key_file(request["path"], request["passphrase"])
    except WatchroomError as error:
        reason = str(error.values.get("reason", error.message()))
        send_object(connection, {"error": error.code, "reason": reason})
        return
    idle = float(request["idle"])
    deadline = time.clock_gettime(_CLOCK) + idle
    send_object(connection, {"key": signer.key.line})
    while (request := _receive_until(deadline, connection)) is not None:
        message = base64.b64decode(request["message"])
        signature = signer.sign(message, request["namespace"])
        deadline = time.clock_gettime(_CLOCK) + idle
        send_object(connection, {"signature": signature})


def _receive_until(deadline: float, connection: socket.socket) -> dict[str, str] | None:
    """Return the next request, None if the connection was closed. Raise TimeoutError at ``deadline``, also if
    the machine slept in the meantime."""
    waiting = select.poll()
    waiting.register(connection, select.POLLIN)
    while (left := deadline - time.clock_gettime(_CLOCK)) > 0:
        if waiting.poll(min(left, _LOOK_SECONDS) * 1000):
            connection.settimeout(left)
            request = receive_object(connection)
            if time.clock_gettime(_CLOCK) < deadline:
                return request
    raise TimeoutError


if __name__ == "__main__":
    harden()
    with socket.socket(fileno=int(sys.argv[1])) as given:
        try:
            serve(given)
        except TimeoutError:
            # The idle timeout locks the key.
            sys.exit(0)
