"""JSON objects over a socket, each after its length of four bytes."""

from __future__ import annotations

import json
import socket
from typing import Final

_LARGEST: Final = 1_000_000


def send_object(connection: socket.socket, fields: dict[str, str]) -> None:
    """Send ``fields``. Raises OSError."""
    data = json.dumps(fields).encode()
    connection.sendall(len(data).to_bytes(4, "big") + data)


def receive_object(connection: socket.socket) -> dict[str, str] | None:
    """The next object, None where the other side has ended. Raises OSError, ValueError."""
    head = _receive(connection, 4)
    if head is None:
        return None
    size = int.from_bytes(head, "big")
    if size > _LARGEST:
        raise ValueError(size)
    data = _receive(connection, size)
    fields = json.loads(data) if data is not None else None
    if fields is None:
        return None
    if not isinstance(fields, dict) or not all(isinstance(each, str) for each in fields.values()):
        raise TypeError(type(fields))
    return fields


def _receive(connection: socket.socket, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            return None
        data += piece
    return data
