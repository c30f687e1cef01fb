"""A process that holds an unlocked key, so that the key is never in the memory of the dashboard.

On Linux, other processes of this user cannot read its memory or a core dump (PR_SET_DUMPABLE). The process
ends after an idle timeout, and with its parent process. Locking the key ends the process.
"""

from __future__ import annotations

import base64
import json
import socket
import subprocess
from contextlib import suppress
from threading import Lock
from typing import Final, Self

from watchroom.algorithms.sshsig import PublicKey
from watchroom.errors import KeyFileUnusable, SignerFailed, SignerLocked, WrongPassphrase
from watchroom.platform.child_process import module_command
from watchroom.platform.signing.key_file import read_public_key

IDLE_SECONDS: Final = 15 * 60
"""Default idle timeout in seconds, after which a key is locked."""
_UNLOCK_SECONDS: Final = 30.0
_SIGN_SECONDS: Final = 5.0
_MAX_MESSAGE: Final = 1_000_000
"""Maximum bytes of one message between the processes."""
_FAILURES: Final = {"wrong_passphrase": WrongPassphrase, "key_file_unusable": KeyFileUnusable}


class SignerProcess:
    """A `Signer` whose key is in a separate process. Create it with `unlock`."""

    def __init__(self, key: PublicKey, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self._key = key
        self._process = process
        self._connection = connection
        self._lock = Lock()

    @classmethod
    def unlock(cls, path: str, passphrase: str, *, idle_seconds: float = IDLE_SECONDS) -> Self:
        """Start a process that unlocks the key file at ``path``.

        It locks the key after ``idle_seconds`` without a signature, default 15 minutes. Raise
        `KeyFileUnusable`, `WrongPassphrase` and `SignerFailed`.
        """
        key = read_public_key(path)
        ours, theirs = socket.socketpair()
        with theirs:
            command = module_command("watchroom.platform.signing.serve_key", str(theirs.fileno()))
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        signer = cls(key, process, ours)
        try:
            request = {"path": path, "passphrase": passphrase, "idle": str(idle_seconds)}
            answer = signer._request(request, _UNLOCK_SECONDS)
        except SignerLocked as error:
            raise SignerFailed(reason="the process that holds the key could not be started") from error
        if answer.get("key") != key.line:
            signer.lock()
            failure = _FAILURES.get(answer.get("error", ""), SignerFailed)
            raise failure(path=path, reason=answer.get("reason", "-"))
        return signer

    @property
    def key(self) -> PublicKey:
        return self._key

    @property
    def is_locked(self) -> bool:
        """Whether the key is locked."""
        return self._process.poll() is not None

    def sign(self, message: bytes, namespace: str) -> str:
        request = {"message": base64.b64encode(message).decode(), "namespace": namespace}
        answer = self._request(request, _SIGN_SECONDS)
        if "signature" not in answer:
            raise SignerFailed(reason=answer.get("reason", "-"))
        return answer["signature"]

    def lock(self) -> None:
        """End the process. May be called repeatedly."""
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _request(self, request: dict[str, str], timeout: float) -> dict[str, str]:
        """Send ``request``, and return the answer. Lock the key if this fails or exceeds ``timeout``
        (seconds)."""
        with self._lock:
            try:
                self._connection.settimeout(timeout)
                send_object(self._connection, request)
                answer = receive_object(self._connection)
            except (OSError, ValueError, TypeError) as error:
                self.lock()
                raise SignerLocked from error
        if answer is None:
            self.lock()
            raise SignerLocked
        return answer

    def __del__(self) -> None:
        with suppress(OSError):
            self._connection.close()


def send_object(connection: socket.socket, fields: dict[str, str]) -> None:
    """Send ``fields`` as JSON, preceded by its length in four bytes. Raise OSError if the connection
    fails."""
    data = json.dumps(fields).encode()
    connection.sendall(len(data).to_bytes(4, "big") + data)


def receive_object(connection: socket.socket) -> dict[str, str] | None:
    """Receive a message sent by `send_object`; None if the other side has closed the connection.

    Raise OSError if the connection fails, and ValueError or TypeError if the message is malformed.
    """
    head = _receive(connection, 4)
    if head is None:
        return None
    size = int.from_bytes(head, "big")
    if size > _MAX_MESSAGE:
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
