"""Key files: an Ed25519 key, sealed by ChaCha20-Poly1305 (RFC 8439) under a passphrase (scrypt, RFC 7914)."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from typing import Any, Final

from watchroom.signing.errors import KeyFileUnusable, WrongPassphrase
from watchroom.sshsig import PublicKey, SigningNotInstalled, armour, ed25519, parse_key, signed_bytes
from watchroom.sshsig.errors import InvalidPublicKey
from watchroom.sshsig.public_key import ED25519
from watchroom.sshsig.signature import wire_signature

FORMAT: Final = "watchroom-key/1"
COST: Final = 2**17
"""The n of scrypt: with r = 8 it takes 128 MB, and some 0.3 s."""
_LARGEST_COST: Final = 2**20
"""A file that asks for more memory than 1 GB is no key of ours."""
_BLOCK: Final = 8
_MOST_BYTES: Final = 4_000
_LONGEST_PASSPHRASE: Final = 1_000


class KeySigner:
    """Signs with the Ed25519 key of 32 bytes ``private``, in this process."""

    def __init__(self, private: bytes) -> None:
        self._private = ed25519.load_private_key(private)
        self._key = PublicKey(ED25519, bytes(self._private.verify_key))

    @property
    def key(self) -> PublicKey:
        return self._key

    def lock(self) -> None:
        """Nothing: the key lives as long as this does."""

    def sign(self, message: bytes, namespace: str) -> str:
        signature = self._private.sign(signed_bytes(message, namespace)).signature
        return armour(self._key, namespace, wire_signature(signature))


def create_key_file(path: str, passphrase: str, *, cost: int = COST) -> PublicKey:
    """Make a new key in a file at ``path``, for its owner alone, sealed with ``passphrase``; ``cost`` is
    scrypt's n. Returns the public key. Raises `KeyFileUnusable` where something stands there,
    `SigningNotInstalled`."""
    private = ed25519.generate_seed()
    key = KeySigner(private).key
    from nacl.bindings import crypto_aead_chacha20poly1305_ietf_encrypt

    salt, nonce = os.urandom(16), os.urandom(12)
    sealed = crypto_aead_chacha20poly1305_ietf_encrypt(
        private, key.line.encode(), nonce, _derive_key(passphrase, salt, cost)
    )
    fields = {
        name: base64.b64encode(data).decode()
        for name, data in zip(_SEALED, (salt, nonce, sealed), strict=True)
    }
    text = json.dumps({"format": FORMAT, "key": key.line, "cost": cost, **fields}, indent=2) + "\n"
    try:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise KeyFileUnusable(path=path, reason=error.strerror) from error
    return key


def read_public_key(path: str) -> PublicKey:
    """The public key of the key file at ``path``. Raises `KeyFileUnusable`."""
    return parse_key(_read(path)["key"])


def open_key_file(path: str, passphrase: str) -> KeySigner:
    """What signs with the key in the file at ``path``. Raises `KeyFileUnusable`, `WrongPassphrase`,
    `SigningNotInstalled`."""
    fields = _read(path)
    salt, nonce, sealed = (base64.b64decode(fields[name]) for name in _SEALED)
    try:
        from nacl.bindings import crypto_aead_chacha20poly1305_ietf_decrypt
        from nacl.exceptions import CryptoError
    except ImportError as error:
        raise SigningNotInstalled from error

    secret = _derive_key(passphrase, salt, fields["cost"])
    try:
        private = crypto_aead_chacha20poly1305_ietf_decrypt(sealed, fields["key"].encode(), nonce, secret)
    except CryptoError as error:
        raise WrongPassphrase(path=path) from error
    return KeySigner(private)


_SEALED: Final = ("salt", "nonce", "sealed")


def _read(path: str) -> dict[str, Any]:
    """The fields of the key file at ``path``, each of its type and within its bounds."""
    try:
        with open(path, "rb") as file:
            fields = json.loads(file.read(_MOST_BYTES))
        cost = fields["cost"]
        is_cost = isinstance(cost, int) and 2 <= cost <= _LARGEST_COST and cost & (cost - 1) == 0
        sizes = [len(base64.b64decode(fields[name], validate=True)) for name in _SEALED]
        if fields["format"] != FORMAT or not is_cost or sizes != [16, 12, 48]:
            raise ValueError(FORMAT)
        parse_key(fields["key"])
    except OSError as error:
        raise KeyFileUnusable(path=path, reason=error.strerror) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidPublicKey) as error:
        raise KeyFileUnusable(path=path, reason=FORMAT) from error
    found: dict[str, Any] = fields
    return found


def _derive_key(passphrase: str, salt: bytes, cost: int) -> bytes:
    given = passphrase[:_LONGEST_PASSPHRASE].encode()
    # What OpenSSL takes, and some more; else it refuses what needs more than 32 MB.
    memory = 2 * 128 * cost * _BLOCK
    return hashlib.scrypt(given, salt=salt, n=cost, r=_BLOCK, p=1, maxmem=memory, dklen=32)
