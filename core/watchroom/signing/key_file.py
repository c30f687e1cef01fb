"""Key files: an Ed25519 key, sealed by ChaCha20-Poly1305 (RFC 8439) under a passphrase (scrypt, RFC 7914)."""

from __future__ import annotations

import base64
import json
import os
from typing import Any, Final

from watchroom.signing.errors import KeyFileUnusable, WrongPassphrase
from watchroom.sshsig import PublicKey, SigningNotInstalled, armour, parse_key, signed_bytes
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
        self._private = _ed25519().Ed25519PrivateKey.from_private_bytes(private)
        self._key = PublicKey(ED25519, self._private.public_key().public_bytes_raw())

    @property
    def key(self) -> PublicKey:
        return self._key

    def lock(self) -> None:
        """Nothing: the key lives as long as this does."""

    def sign(self, message: bytes, namespace: str) -> str:
        return armour(
            self._key, namespace, wire_signature(self._private.sign(signed_bytes(message, namespace)))
        )


def create_key_file(path: str, passphrase: str, *, cost: int = COST) -> PublicKey:
    """Make a new key in a file at ``path``, for its owner alone, sealed with ``passphrase``; ``cost`` is
    scrypt's n. Returns the public key. Raises `KeyFileUnusable` where something stands there,
    `SigningNotInstalled`."""
    private = _ed25519().Ed25519PrivateKey.generate().private_bytes_raw()
    key = KeySigner(private).key
    salt, nonce = os.urandom(16), os.urandom(12)
    sealed = _cipher(passphrase, salt, cost).encrypt(nonce, private, key.line.encode())
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
    from cryptography.exceptions import InvalidTag

    try:
        private = _cipher(passphrase, salt, fields["cost"]).decrypt(nonce, sealed, fields["key"].encode())
    except InvalidTag as error:
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


def _cipher(passphrase: str, salt: bytes, cost: int) -> Any:
    _ed25519()
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    given = passphrase[:_LONGEST_PASSPHRASE].encode()
    return ChaCha20Poly1305(Scrypt(salt=salt, length=32, n=cost, r=_BLOCK, p=1).derive(given))


def _ed25519() -> Any:
    """The module that makes keys, which is slow to load, and may not be installed."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise SigningNotInstalled from error
    return ed25519
