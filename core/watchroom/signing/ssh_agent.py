"""FIDO2 devices, by way of ssh-agent (draft-ietf-sshm-ssh-agent). Its other keys are left alone: any process
of this user has them sign, and nobody would notice."""

from __future__ import annotations

import os
import socket
from typing import Final

from watchroom.signing.errors import SignerFailed
from watchroom.sshsig import PublicKey, armour, signed_bytes
from watchroom.sshsig.public_key import parse_blob
from watchroom.sshsig.wire import Damaged, WireReader, strings

_LIST: Final = 11
_LISTED: Final = 12
_SIGN: Final = 13
_SIGNED: Final = 14
_LARGEST: Final = 256 * 1024
_MOST_KEYS: Final = 256
_LIST_SECONDS: Final = 5.0
_TOUCH_SECONDS: Final = 60.0
"""So long somebody has to touch the device."""


class DeviceSigner:
    """`Signer` by the FIDO2 device with the ``key``, which is touched for each signature."""

    def __init__(self, key: PublicKey) -> None:
        if not key.is_touched:
            raise SignerFailed(reason="a plain key in ssh-agent signs for any process, unnoticed")
        self._key = key

    @property
    def key(self) -> PublicKey:
        return self._key

    def lock(self) -> None:
        """Nothing: the device asks for a touch each time."""

    def sign(self, message: bytes, namespace: str) -> str:
        flags = (0).to_bytes(4, "big")
        asked = bytes([_SIGN]) + strings(self._key.blob, signed_bytes(message, namespace)) + flags
        told = WireReader(_ask(asked, _TOUCH_SECONDS))
        try:
            if told.take(1)[0] != _SIGNED:
                raise SignerFailed(reason="ssh-agent refused, or nobody touched the device")
            signature = told.string()
            told.end()
        except Damaged as error:
            raise SignerFailed(reason="ssh-agent answered something else") from error
        return armour(self._key, namespace, signature)


def list_device_keys() -> list[PublicKey]:
    """The keys of FIDO2 devices that ssh-agent knows; none where there is no agent. Raises `SignerFailed`
    where it does not answer."""
    if not os.environ.get("SSH_AUTH_SOCK"):
        return []
    told = WireReader(_ask(bytes([_LIST]), _LIST_SECONDS))
    found: list[PublicKey] = []
    try:
        if told.take(1)[0] != _LISTED:
            return []
        for _ in range(min(told.number(), _MOST_KEYS)):
            blob, _ = told.string(), told.string()
            try:
                key = parse_blob(blob)
            except (Damaged, UnicodeDecodeError):
                # Of another kind.
                continue
            if key.is_touched:
                found.append(key)
    except Damaged as error:
        raise SignerFailed(reason="ssh-agent answered something else") from error
    return found


def _ask(asked: bytes, seconds: float) -> bytes:
    """What ssh-agent answers. Raises `SignerFailed`."""
    path = os.environ.get("SSH_AUTH_SOCK", "")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds)
            connection.connect(path)
            connection.sendall(strings(asked))
            size = int.from_bytes(_receive(connection, 4), "big")
            if not 0 < size <= _LARGEST:
                raise SignerFailed(reason="ssh-agent answered too much")
            return _receive(connection, size)
    except OSError as error:
        raise SignerFailed(reason=f"ssh-agent: {error}") from error


def _receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise SignerFailed(reason="ssh-agent ended")
        data += piece
    return data
