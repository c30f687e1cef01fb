"""FIDO2 devices, used through ssh-agent (draft-ietf-sshm-ssh-agent).

Other keys of ssh-agent are not used, because any process of this user can sign with them unnoticed.
"""

from __future__ import annotations

import os
import socket
from typing import Final

from watchroom.algorithms.sshsig import (
    DamagedError,
    PublicKey,
    WireReader,
    armour,
    encode_strings,
    parse_blob,
    signed_bytes,
)
from watchroom.errors import SignerFailed

_REQUEST_IDENTITIES: Final = 11
_IDENTITIES_ANSWER: Final = 12
_SIGN_REQUEST: Final = 13
_SIGN_RESPONSE: Final = 14
_MAX_ANSWER: Final = 256 * 1024
"""Maximum bytes of an answer."""
_MAX_KEYS: Final = 256
_LIST_SECONDS: Final = 5.0
_TOUCH_SECONDS: Final = 60.0
"""Timeout in seconds for touching the device."""


class DeviceSigner:
    """A `Signer` for the ``key`` of a FIDO2 device. Somebody must touch the device for each signature.

    Raises `SignerFailed` for other keys.
    """

    def __init__(self, key: PublicKey) -> None:
        if not key.is_touched:
            raise SignerFailed(reason="a plain key in ssh-agent signs for any process, unnoticed")
        self._key = key

    @property
    def key(self) -> PublicKey:
        return self._key

    def lock(self) -> None:
        """Do nothing, because the device requires a touch for each signature."""

    def sign(self, message: bytes, namespace: str) -> str:
        flags = (0).to_bytes(4, "big")
        data = encode_strings(self._key.blob, signed_bytes(message, namespace))
        answer = WireReader(_request(bytes([_SIGN_REQUEST]) + data + flags, _TOUCH_SECONDS))
        try:
            if answer.take(1)[0] != _SIGN_RESPONSE:
                raise SignerFailed(reason="ssh-agent refused, or nobody touched the device")
            signature = answer.string()
            answer.end()
        except DamagedError as error:
            raise SignerFailed(reason="the answer of ssh-agent is malformed") from error
        return armour(self._key, namespace, signature)


def list_device_keys() -> list[PublicKey]:
    """Return the keys of FIDO2 devices in ssh-agent; empty if no agent is running.

    Raise `SignerFailed` if the agent does not answer.
    """
    if not os.environ.get("SSH_AUTH_SOCK"):
        return []
    answer = WireReader(_request(bytes([_REQUEST_IDENTITIES]), _LIST_SECONDS))
    found: list[PublicKey] = []
    try:
        if answer.take(1)[0] != _IDENTITIES_ANSWER:
            return []
        for _ in range(min(answer.number(), _MAX_KEYS)):
            blob, _ = answer.string(), answer.string()
            try:
                key = parse_blob(blob)
            except ValueError:
                # The key is of an unsupported kind.
                continue
            if key.is_touched:
                found.append(key)
    except DamagedError as error:
        raise SignerFailed(reason="the answer of ssh-agent is malformed") from error
    return found


def _request(request: bytes, timeout: float) -> bytes:
    """Send ``request`` to ssh-agent, and return the answer.

    Raise `SignerFailed` after ``timeout`` seconds.
    """
    path = os.environ.get("SSH_AUTH_SOCK", "")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout)
            connection.connect(path)
            connection.sendall(encode_strings(request))
            size = int.from_bytes(_receive(connection, 4), "big")
            if not 0 < size <= _MAX_ANSWER:
                raise SignerFailed(reason="the answer of ssh-agent is too long")
            return _receive(connection, size)
    except OSError as error:
        raise SignerFailed(reason=f"ssh-agent: {error}") from error


def _receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise SignerFailed(reason="ssh-agent closed the connection")
        data += piece
    return data
