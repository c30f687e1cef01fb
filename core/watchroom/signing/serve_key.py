"""``python -m watchroom.signing.serve_key FD``: holds one key, and signs what it is asked to by the
socket FD."""

from __future__ import annotations

import base64
import ctypes
import resource
import signal
import socket
import sys
from typing import Final

from watchroom.errors import WatchroomError
from watchroom.signing.frames import receive_object, send_object
from watchroom.signing.key_file import open_key_file

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4


def harden() -> None:
    """Have no other process of this user read this one's memory, and no core be written; end with whoever
    began it (Linux)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def serve(connection: socket.socket) -> None:
    """Unlock the key that is asked for first, then sign until nobody asks for the time that was given, or the
    other side ends."""
    asked = receive_object(connection)
    if asked is None:
        return
    try:
        signer = open_key_file(asked["path"], asked["passphrase"])
    except WatchroomError as error:
        reason = str(error.values.get("reason", error.message()))
        send_object(connection, {"error": error.code, "reason": reason})
        return
    connection.settimeout(float(asked["idle"]))
    send_object(connection, {"key": signer.key.line})
    while (asked := receive_object(connection)) is not None:
        message = base64.b64decode(asked["message"])
        send_object(connection, {"signature": signer.sign(message, asked["namespace"])})


if __name__ == "__main__":
    harden()
    with socket.socket(fileno=int(sys.argv[1])) as given:
        try:
            serve(given)
        except TimeoutError:
            # Nobody asked for as long as it may stay unlocked.
            sys.exit(0)
