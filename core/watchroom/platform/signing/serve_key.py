"""The process of `SignerProcess`. It holds one key, and answers requests on a socket.

Started as ``python -m watchroom.platform.signing.serve_key FD``.
"""

from __future__ import annotations

import base64
import ctypes
import resource
import signal
import socket
import sys
from typing import Final

from watchroom.errors import WatchroomError
from watchroom.platform.signing.key_file import open_key_file
from watchroom.platform.signing.signer_process import receive_object, send_object

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4


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
    connection.settimeout(float(request["idle"]))
    send_object(connection, {"key": signer.key.line})
    while (request := receive_object(connection)) is not None:
        message = base64.b64decode(request["message"])
        send_object(connection, {"signature": signer.sign(message, request["namespace"])})


if __name__ == "__main__":
    harden()
    with socket.socket(fileno=int(sys.argv[1])) as given:
        try:
            serve(given)
        except TimeoutError:
            # The idle timeout locks the key.
            sys.exit(0)
