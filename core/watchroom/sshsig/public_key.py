"""Public keys as OpenSSH writes them, in one line."""

from __future__ import annotations

import base64
import hashlib
from typing import Final, NamedTuple

from watchroom.sshsig.errors import InvalidPublicKey
from watchroom.sshsig.wire import Damaged, WireReader, strings

ED25519: Final = "ssh-ed25519"
FIDO_ED25519: Final = "sk-ssh-ed25519@openssh.com"
FIDO_ECDSA: Final = "sk-ecdsa-sha2-nistp256@openssh.com"
_KINDS: Final = (ED25519, FIDO_ED25519, FIDO_ECDSA)
_CURVE: Final = b"nistp256"
_LONGEST_LINE: Final = 2_000
_ED25519_BYTES: Final = 32
_POINT_BYTES: Final = 65


class PublicKey(NamedTuple):
    """A public key: its ``kind`` as OpenSSH calls it, the key itself (32 bytes, or a point of the curve), and
    the ``application`` of one that is in a FIDO2 device, empty of any other."""

    kind: str
    data: bytes
    application: str = ""

    @property
    def is_touched(self) -> bool:
        """Whether it signs only when somebody touches its device."""
        return bool(self.application)

    @property
    def blob(self) -> bytes:
        """As SSH transmits it."""
        parts = [self.kind.encode()]
        if self.kind == FIDO_ECDSA:
            parts.append(_CURVE)
        parts.append(self.data)
        if self.is_touched:
            parts.append(self.application.encode())
        return strings(*parts)

    @property
    def line(self) -> str:
        """As in a file of public keys, without a comment."""
        return f"{self.kind} {base64.b64encode(self.blob).decode()}"

    @property
    def fingerprint(self) -> str:
        """As ``ssh-keygen -l`` prints it: ``SHA256:…``."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode()
        return f"SHA256:{digest.rstrip('=')}"


def parse_key(line: str) -> PublicKey:
    """The key in ``line``: its kind, its blob in base64, and perhaps a comment. Raises `InvalidPublicKey`."""
    if len(line) > _LONGEST_LINE:
        raise InvalidPublicKey(rule="public_key_length")
    fields = line.split()
    if len(fields) < 2 or fields[0] not in _KINDS:
        raise InvalidPublicKey(rule="public_key_kind")
    try:
        key = parse_blob(base64.b64decode(fields[1], validate=True))
    except ValueError as error:
        raise InvalidPublicKey(rule="public_key_damaged") from error
    if key.kind != fields[0]:
        raise InvalidPublicKey(rule="public_key_damaged")
    return key


def parse_blob(blob: bytes) -> PublicKey:
    """The key that SSH transmits as ``blob``. Raises `Damaged`, UnicodeDecodeError."""
    reader = WireReader(blob)
    kind = reader.string().decode("ascii")
    if kind not in _KINDS or (kind == FIDO_ECDSA and reader.string() != _CURVE):
        raise Damaged
    data = reader.string()
    application = "" if kind == ED25519 else reader.string().decode()
    reader.end()
    if len(data) != (_POINT_BYTES if kind == FIDO_ECDSA else _ED25519_BYTES):
        raise Damaged
    if kind != ED25519 and not application:
        raise Damaged
    return PublicKey(kind, data, application)
