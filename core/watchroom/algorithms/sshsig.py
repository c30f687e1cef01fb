"""Signatures in the format of OpenSSH (PROTOCOL.sshsig), by key files and by FIDO2 keys. Pure.

The signatures are compatible with ``ssh-keygen -Y``. Unlike ssh-keygen, `verify` also requires that a FIDO2
key was touched.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.errors import InvalidPublicKey, InvalidSignature

if TYPE_CHECKING:
    from nacl.signing import SigningKey

ED25519: Final = "ssh-ed25519"
FIDO_ED25519: Final = "sk-ssh-ed25519@openssh.com"
FIDO_ECDSA: Final = "sk-ecdsa-sha2-nistp256@openssh.com"
_KINDS: Final = (ED25519, FIDO_ED25519, FIDO_ECDSA)
_CURVE: Final = b"nistp256"
_MAX_KEY_LINE: Final = 2_000
"""Maximum characters of a public key."""
_ED25519_BYTES: Final = 32
_POINT_BYTES: Final = 65
_MAGIC: Final = b"SSHSIG"
_VERSION: Final = 1
_HASH: Final = b"sha512"
_BEGIN: Final = "-----BEGIN SSH SIGNATURE-----"
_END: Final = "-----END SSH SIGNATURE-----"
_LINE: Final = 70
"""Number of base64 characters per line."""
_MAX_SIGNATURE: Final = 4_000
"""Maximum characters of an armoured signature."""
_TOUCHED: Final = 0x01
"""The flag of a FIDO2 device that was touched (user presence)."""


class DamagedError(ValueError):
    """Binary data is malformed, too short or too long."""


class WireReader:
    """A reader of the binary format of SSH (RFC 4251, section 5).

    A string has a length of four bytes, then its bytes. All methods raise `DamagedError` if the data is too
    short.
    """

    def __init__(self, data: bytes) -> None:
        self._rest = memoryview(data)

    def take(self, count: int) -> bytes:
        """Read ``count`` bytes."""
        if len(self._rest) < count:
            raise DamagedError
        taken, self._rest = bytes(self._rest[:count]), self._rest[count:]
        return taken

    def number(self) -> int:
        """Read a number of four bytes."""
        return int.from_bytes(self.take(4), "big")

    def string(self) -> bytes:
        """Read a string."""
        return self.take(self.number())

    def end(self) -> None:
        """Raise `DamagedError` if any data is left."""
        if self._rest:
            raise DamagedError


def encode_strings(*parts: bytes) -> bytes:
    """Encode ``parts`` as strings of SSH; see `WireReader`."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


class PublicKey(NamedTuple):
    """A public key.

    - ``kind``: the key type of OpenSSH, such as ``ssh-ed25519``.
    - ``data``: the key: 32 bytes, or a point of the curve.
    - ``application``: the application of a key in a FIDO2 device; empty for other keys.
    """

    kind: str
    data: bytes
    application: str = ""

    @property
    def is_touched(self) -> bool:
        """Whether the key is in a FIDO2 device, which must be touched for each signature."""
        return bool(self.application)

    @property
    def blob(self) -> bytes:
        """The key in the binary format of SSH."""
        parts = [self.kind.encode()]
        if self.kind == FIDO_ECDSA:
            parts.append(_CURVE)
        parts.append(self.data)
        if self.is_touched:
            parts.append(self.application.encode())
        return encode_strings(*parts)

    @property
    def line(self) -> str:
        """The key as a line of a ``.pub`` file, without a comment."""
        return f"{self.kind} {base64.b64encode(self.blob).decode()}"

    @property
    def fingerprint(self) -> str:
        """The fingerprint in the format of ``ssh-keygen -l``: ``SHA256:…``."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode()
        return f"SHA256:{digest.rstrip('=')}"


def parse_key(line: str) -> PublicKey:
    """Parse a line of a ``.pub`` file, which may have a comment.

    Raise `InvalidPublicKey` if it is malformed, or of an unsupported kind.
    """
    if len(line) > _MAX_KEY_LINE:
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
    """Parse a key in the binary format of SSH. Raise ValueError if it is malformed."""
    reader = WireReader(blob)
    kind = reader.string().decode("ascii")
    if kind not in _KINDS or (kind == FIDO_ECDSA and reader.string() != _CURVE):
        raise DamagedError
    data = reader.string()
    application = "" if kind == ED25519 else reader.string().decode()
    reader.end()
    if len(data) != (_POINT_BYTES if kind == FIDO_ECDSA else _ED25519_BYTES):
        raise DamagedError
    if kind != ED25519 and not application:
        raise DamagedError
    return PublicKey(kind, data, application)


class _Parsed(NamedTuple):
    key: PublicKey
    namespace: bytes
    hash: bytes
    kind: str
    raw: bytes
    flags: int
    counter: bytes


def signed_bytes(message: bytes, namespace: str) -> bytes:
    """Return the bytes that a key signs for ``message`` in ``namespace``."""
    return _MAGIC + encode_strings(namespace.encode(), b"", _HASH, hashlib.sha512(message).digest())


def armour(key: PublicKey, namespace: str, signature: bytes) -> str:
    """Return an armoured signature.

    ``signature``: in the binary format of SSH: the kind, the raw signature, and the data of a FIDO2 device.
    """
    parts = encode_strings(key.blob, namespace.encode(), b"", _HASH, signature)
    text = base64.b64encode(_MAGIC + _VERSION.to_bytes(4, "big") + parts).decode()
    lines = [text[start : start + _LINE] for start in range(0, len(text), _LINE)]
    return "\n".join([_BEGIN, *lines, _END, ""])


def verify(signature: str, message: bytes, namespace: str, key: PublicKey) -> None:
    """Verify that ``signature`` is by ``key``, over ``message``, in ``namespace``.

    A FIDO2 key must have been touched. Raise `InvalidSignature` with the broken rule otherwise.
    """
    try:
        parsed = _parse(signature)
    except ValueError as error:
        raise InvalidSignature(rule="signature_damaged") from error
    if parsed.namespace != namespace.encode():
        raise InvalidSignature(rule="signature_namespace")
    if parsed.key != key or parsed.kind != key.kind:
        raise InvalidSignature(rule="signature_key")
    if parsed.hash != _HASH:
        raise InvalidSignature(rule="signature_hash")
    data = signed_bytes(message, namespace)
    if key.is_touched:
        if not parsed.flags & _TOUCHED:
            raise InvalidSignature(rule="signature_untouched")
        application = hashlib.sha256(key.application.encode()).digest()
        data = application + bytes([parsed.flags]) + parsed.counter + hashlib.sha256(data).digest()
    if not _is_signed_by(key, parsed.raw, data):
        raise InvalidSignature(rule="signature_wrong")


def parse_signing_key(signature: str) -> PublicKey:
    """Return the key in ``signature``, without verifying the signature.

    Raise `InvalidSignature` if it is malformed.
    """
    try:
        return _parse(signature).key
    except ValueError as error:
        raise InvalidSignature(rule="signature_damaged") from error


def _parse(signature: str) -> _Parsed:
    lines = signature.split("\n") if len(signature) <= _MAX_SIGNATURE else []
    if len(lines) < 3 or lines[0] != _BEGIN or lines[-2:] != [_END, ""]:
        raise DamagedError
    text = "".join(lines[1:-2])
    blob = base64.b64decode(text, validate=True)
    if base64.b64encode(blob).decode() != text:
        raise DamagedError
    reader = WireReader(blob)
    if reader.take(len(_MAGIC)) != _MAGIC or reader.number() != _VERSION:
        raise DamagedError
    key, namespace, _ = parse_blob(reader.string()), reader.string(), reader.string()
    hashed, inner = reader.string(), WireReader(reader.string())
    reader.end()
    kind, raw, flags, counter = inner.string().decode("ascii"), inner.string(), 0, b""
    if key.is_touched:
        flags, counter = inner.take(1)[0], inner.take(4)
    inner.end()
    return _Parsed(key, namespace, hashed, kind, raw, flags, counter)


def _is_signed_by(key: PublicKey, raw: bytes, data: bytes) -> bool:
    if key.kind != FIDO_ECDSA:
        return _is_valid_ed25519(data, raw, key.data)
    # libsodium, which needs less memory, does not support ECDSA.
    from cryptography.exceptions import InvalidSignature as WrongSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    try:
        reader = WireReader(raw)
        numbers = [int.from_bytes(reader.string(), "big", signed=True) for _ in range(2)]
        reader.end()
        point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key.data)
        point.verify(utils.encode_dss_signature(*numbers), data, ec.ECDSA(hashes.SHA256()))
    except (WrongSignature, ValueError):
        return False
    return True


def encode_ed25519_signature(raw: bytes) -> bytes:
    """Return the signature ``raw`` of an Ed25519 key in the binary format of SSH."""
    return encode_strings(ED25519.encode(), raw)


def generate_seed() -> bytes:
    """Return a new private Ed25519 key of 32 bytes."""
    from nacl.signing import SigningKey

    return bytes(SigningKey.generate())


def load_private_key(seed: bytes) -> SigningKey:
    """Return the private Ed25519 key ``seed`` (32 bytes) in a form that can sign.

    libsodium needs a quarter of the memory of OpenSSL.
    """
    from nacl.signing import SigningKey

    return SigningKey(seed)


def _is_valid_ed25519(data: bytes, signature: bytes, public: bytes) -> bool:
    from nacl.exceptions import BadSignatureError
    from nacl.exceptions import ValueError as WrongLength
    from nacl.signing import VerifyKey

    try:
        VerifyKey(public).verify(data, signature)
    except (BadSignatureError, WrongLength):
        return False
    return True
