"""The program between a command and our proxy, in the sandbox: ``forwarder.py SOCKET PORT ARGV…``.

It listens on this port of the sandbox's own network, passes on what comes to the socket, and becomes the
command. It imports nothing of ours.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading


def main(path: str, port: int, argv: list[str]) -> None:
    listening = socket.create_server(("127.0.0.1", port), backlog=64)
    if not os.fork():
        # Twice, so that it is no child of the command's, which might wait for its children.
        if not os.fork():
            _serve(listening, path)
        os._exit(0)
    os.wait()
    listening.close()
    os.execv(argv[0], argv)  # noqa: S606  # a shell, with the command


def _serve(listening: socket.socket, path: str) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nothing, fd)
    while True:
        here, _ = listening.accept()
        there = socket.socket(socket.AF_UNIX)
        try:
            there.connect(path)
        except OSError:
            here.close()
            continue
        for source, target in ((here, there), (there, here)):
            threading.Thread(target=_pass, args=(source, target), daemon=True).start()


def _pass(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
