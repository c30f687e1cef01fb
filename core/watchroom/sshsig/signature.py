"""What is signed, and whether it was (PROTOCOL.sshsig, PROTOCOL.u2f of OpenSSH)."""

from __future__ import annotations

import base64
import hashlib
from typing import Final, NamedTuple

from watchroom.sshsig import ed25519
from watchroom.sshsig.errors import InvalidSignature, SigningNotInstalled
from watchroom.sshsig.public_key import ED25519, FIDO_ECDSA, PublicKey, parse_blob
from watchroom.sshsig.wire import Damaged, WireReader, strings

_MAGIC: Final = b"SSHSIG"
_VERSION: Final = 1
_HASH: Final = b"sha512"
_BEGIN: Final = "-----BEGIN SSH SIGNATURE-----"
_END: Final = "-----END SSH SIGNATURE-----"
_LINE: Final = 70
"""Characters of base64 in a line."""
_LONGEST: Final = 4_000
"""Characters of an armoured signature."""
_TOUCHED: Final = 0x01
"""The flag of a FIDO2 device that somebody touched (user presence)."""


class _Parsed(NamedTuple):
    key: PublicKey
    namespace: bytes
    hash: bytes
    kind: str
    raw: bytes
    flags: int
    counter: bytes


def signed_bytes(message: bytes, namespace: str) -> bytes:
    """What a key signs so that it signs ``message`` in ``namespace``."""
    return _MAGIC + strings(namespace.encode(), b"", _HASH, hashlib.sha512(message).digest())


def armour(key: PublicKey, namespace: str, signature: bytes) -> str:
    """The signature of ``key`` in ``namespace``, as text. ``signature`` is what SSH transmits: its kind, the
    signature, and what a FIDO2 device adds."""
    parts = strings(key.blob, namespace.encode(), b"", _HASH, signature)
    text = base64.b64encode(_MAGIC + _VERSION.to_bytes(4, "big") + parts).decode()
    lines = [text[start : start + _LINE] for start in range(0, len(text), _LINE)]
    return "\n".join([_BEGIN, *lines, _END, ""])


def verify(signature: str, message: bytes, namespace: str, key: PublicKey) -> None:
    """See that the text ``signature`` is one by ``key`` of ``message`` in ``namespace``, and that a FIDO2 key
    was touched. Raises `InvalidSignature`, `SigningNotInstalled`."""
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
    if not _is_by(key, parsed.raw, data):
        raise InvalidSignature(rule="signature_wrong")


def key_of(signature: str) -> PublicKey:
    """The key by which ``signature`` says that it is. Raises `InvalidSignature`."""
    try:
        return _parse(signature).key
    except ValueError as error:
        raise InvalidSignature(rule="signature_damaged") from error


def _parse(signature: str) -> _Parsed:
    lines = signature.split("\n") if len(signature) <= _LONGEST else []
    if len(lines) < 3 or lines[0] != _BEGIN or lines[-2:] != [_END, ""]:
        raise Damaged
    text = "".join(lines[1:-2])
    blob = base64.b64decode(text, validate=True)
    if base64.b64encode(blob).decode() != text:
        raise Damaged
    reader = WireReader(blob)
    if reader.take(len(_MAGIC)) != _MAGIC or reader.number() != _VERSION:
        raise Damaged
    key, namespace, _ = parse_blob(reader.string()), reader.string(), reader.string()
    hashed, inner = reader.string(), WireReader(reader.string())
    reader.end()
    kind, raw, flags, counter = inner.string().decode("ascii"), inner.string(), 0, b""
    if key.is_touched:
        flags, counter = inner.take(1)[0], inner.take(4)
    inner.end()
    return _Parsed(key, namespace, hashed, kind, raw, flags, counter)


def _is_by(key: PublicKey, raw: bytes, data: bytes) -> bool:
    if key.kind != FIDO_ECDSA:
        return ed25519.is_valid_signature(data, raw, key.data)
    # Of libsodium, which takes less memory, there is no ECDSA.
    try:
        from cryptography.exceptions import InvalidSignature as WrongSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, utils
    except ImportError as error:
        raise SigningNotInstalled from error
    try:
        reader = WireReader(raw)
        numbers = [int.from_bytes(reader.string(), "big", signed=True) for _ in range(2)]
        reader.end()
        point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key.data)
        point.verify(utils.encode_dss_signature(*numbers), data, ec.ECDSA(hashes.SHA256()))
    except (WrongSignature, ValueError):
        return False
    return True


def wire_signature(raw: bytes) -> bytes:
    """The signature ``raw`` of an Ed25519 key, as SSH transmits it."""
    return strings(ED25519.encode(), raw)
