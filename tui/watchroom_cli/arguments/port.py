"""Open the port of a command that serves."""

from __future__ import annotations

import errno
import socket

from watchroom.texts import Catalogue
from watchroom_tui.presentation.usage import WrongUsage


def listen(host: str, port: int, texts: Catalogue) -> socket.socket:
    """Return a socket bound to ``port`` of ``host``. Raise `WrongUsage` if the port is out of range, in use,
    or not permitted."""
    if not 0 < port < 65_536:
        raise WrongUsage(texts("cli.port.range"))
    try:
        return socket.create_server((host, port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise WrongUsage(texts("cli.port.in_use", port=port)) from error
        raise WrongUsage(texts("cli.port.refused", port=port, reason=error.strerror)) from error
