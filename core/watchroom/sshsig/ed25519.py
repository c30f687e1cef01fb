"""Ed25519 (RFC 8032) by libsodium, which takes a quarter of the memory that OpenSSL takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchroom.sshsig.errors import SigningNotInstalled

if TYPE_CHECKING:
    from nacl.signing import SigningKey


def generate_seed() -> bytes:
    """A new private key, of 32 bytes. Raises `SigningNotInstalled`."""
    return bytes(_load().generate())


def load_private_key(seed: bytes) -> SigningKey:
    """What signs with the private key of 32 bytes ``seed``. Raises `SigningNotInstalled`."""
    return _load()(seed)


def is_valid_signature(data: bytes, signature: bytes, public: bytes) -> bool:
    """Whether ``signature`` is one of ``data`` by the key whose public half is ``public``, bytes of whatever
    length. Raises `SigningNotInstalled`."""
    _load()
    from nacl.exceptions import BadSignatureError
    from nacl.exceptions import ValueError as WrongLength
    from nacl.signing import VerifyKey

    try:
        VerifyKey(public).verify(data, signature)
    except (BadSignatureError, WrongLength):
        return False
    return True


def _load() -> type[SigningKey]:
    """Slow to load, and may not be installed."""
    try:
        from nacl.signing import SigningKey
    except ImportError as error:
        raise SigningNotInstalled from error
    return SigningKey
