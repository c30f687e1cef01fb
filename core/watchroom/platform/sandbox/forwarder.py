"""Connects a command in a sandbox to the proxy. Run as ``forwarder.py SOCKET PORT ARGV…``.

It listens on PORT of the sandbox's own network, forwards connections to SOCKET, and executes the command. It
imports nothing else from this package, because the sandbox does not contain the package.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading


def main(path: str, port: int, argv: list[str]) -> None:
    """Forward connections on ``port`` to the socket at ``path``, and execute ``argv``."""
    listener = socket.create_server(("127.0.0.1", port), backlog=64)
    if not os.fork():
        # Fork a second time, so that the command does not find this process among its children.
        if not os.fork():
            _serve(listener, path)
        os._exit(0)
    os.wait()
    listener.close()
    os.execv(argv[0], argv)  # noqa: S606  # a shell, with the command


def _serve(listener: socket.socket, path: str) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    while True:
        client, _ = listener.accept()
        upstream = socket.socket(socket.AF_UNIX)
        try:
            upstream.connect(path)
        except OSError:
            client.close()
            continue
        for source, target in ((client, upstream), (upstream, client)):
            threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
