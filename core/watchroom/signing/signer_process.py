"""A process that holds an unlocked key, so that the dashboard's own memory never has it.

Neither the memory of the process nor a core of it can be read by another process of this user (Linux:
PR_SET_DUMPABLE). It ends when it was not asked for a while, and with the process that began it: locking is
that process's end.
"""

from __future__ import annotations

import base64
import socket
import subprocess
import sys
from contextlib import suppress
from threading import Lock
from typing import Final, Self

from watchroom.signing.errors import KeyFileUnusable, SignerFailed, SignerLocked, WrongPassphrase
from watchroom.signing.frames import receive_object, send_object
from watchroom.signing.key_file import read_public_key
from watchroom.sshsig import PublicKey

IDLE_SECONDS: Final = 15 * 60
"""A key that was not used for so long is locked."""
_UNLOCK_SECONDS: Final = 30.0
_SIGN_SECONDS: Final = 5.0
_FAILURES: Final = {"wrong_passphrase": WrongPassphrase, "key_file_unusable": KeyFileUnusable}


class SignerProcess:
    """`Signer` by a process of its own; made by `unlock`."""

    def __init__(self, key: PublicKey, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self._key = key
        self._process = process
        self._connection = connection
        self._lock = Lock()

    @classmethod
    def unlock(cls, path: str, passphrase: str, *, idle_seconds: float = IDLE_SECONDS) -> Self:
        """Unlock the key file at ``path`` until it was not used for ``idle_seconds``. Raises
        `KeyFileUnusable`, `WrongPassphrase`, `SignerFailed`."""
        key = read_public_key(path)
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", "watchroom.signing.serve_key", str(theirs.fileno())]
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        signer = cls(key, process, ours)
        try:
            asked = {"path": path, "passphrase": passphrase, "idle": str(idle_seconds)}
            told = signer._ask(asked, _UNLOCK_SECONDS)
        except SignerLocked as error:
            raise SignerFailed(reason="the process that holds the key could not be started") from error
        if told.get("key") != key.line:
            signer.lock()
            failure = _FAILURES.get(told.get("error", ""), SignerFailed)
            raise failure(path=path, reason=told.get("reason", "-"))
        return signer

    @property
    def key(self) -> PublicKey:
        return self._key

    @property
    def is_locked(self) -> bool:
        """Whether it signs no more."""
        return self._process.poll() is not None

    def sign(self, message: bytes, namespace: str) -> str:
        asked = {"message": base64.b64encode(message).decode(), "namespace": namespace}
        told = self._ask(asked, _SIGN_SECONDS)
        if "signature" not in told:
            raise SignerFailed(reason=told.get("reason", "-"))
        return told["signature"]

    def lock(self) -> None:
        """End the process. May be called again."""
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _ask(self, asked: dict[str, str], seconds: float) -> dict[str, str]:
        with self._lock:
            try:
                self._connection.settimeout(seconds)
                send_object(self._connection, asked)
                told = receive_object(self._connection)
            except (OSError, ValueError, TypeError) as error:
                self.lock()
                raise SignerLocked from error
        if told is None:
            self.lock()
            raise SignerLocked
        return told

    def __del__(self) -> None:
        with suppress(OSError):
            self._connection.close()
