"""Key files: Ed25519 keys, encrypted by ChaCha20-Poly1305 (RFC 8439) with a passphrase (scrypt, RFC 7914)."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from typing import Any, Final

from watchroom.algorithms.sshsig import (
    ED25519,
    PublicKey,
    armour,
    encode_ed25519_signature,
    generate_seed,
    load_private_key,
    parse_key,
    signed_bytes,
)
from watchroom.errors import InvalidPublicKey, KeyFileUnusable, WrongPassphrase

FORMAT: Final = "watchroom-key/1"
COST: Final = 2**17
"""The cost n of scrypt. With r = 8, deriving a key takes 128 MB and about 0.3 s."""
_MAX_COST: Final = 2**20
"""The largest accepted cost, which takes 1 GB."""
_BLOCK: Final = 8
"""The block size r of scrypt."""
_MAX_FILE_BYTES: Final = 4_000
_MAX_PASSPHRASE: Final = 1_000
"""Maximum characters of the passphrase that are used."""
_ENCODED: Final = ("salt", "nonce", "sealed")
"""The fields in base64."""


class KeySigner:
    """A `Signer` with the private Ed25519 key ``private`` (32 bytes) in this process."""

    def __init__(self, private: bytes) -> None:
        self._private = load_private_key(private)
        self._key = PublicKey(ED25519, bytes(self._private.verify_key))

    @property
    def key(self) -> PublicKey:
        return self._key

    def lock(self) -> None:
        """Do nothing, because the key stays in memory as long as this object."""

    def sign(self, message: bytes, namespace: str) -> str:
        signature = self._private.sign(signed_bytes(message, namespace)).signature
        return armour(self._key, namespace, encode_ed25519_signature(signature))


def create_key_file(path: str, passphrase: str, *, cost: int = COST) -> PublicKey:
    """Create a new key in a file at ``path`` that only its owner can read, and return the public key.

    - ``path``: must not exist. Raise `KeyFileUnusable` if it does or cannot be written.
    - ``passphrase``: encrypts the key.
    - ``cost``: the cost n of scrypt.
    """
    private = generate_seed()
    key = KeySigner(private).key
    from nacl.bindings import crypto_aead_chacha20poly1305_ietf_encrypt

    salt, nonce = os.urandom(16), os.urandom(12)
    sealed = crypto_aead_chacha20poly1305_ietf_encrypt(
        private, key.line.encode(), nonce, _derive_key(passphrase, salt, cost)
    )
    fields = {
        name: base64.b64encode(data).decode()
        for name, data in zip(_ENCODED, (salt, nonce, sealed), strict=True)
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
    """Return the public key of the key file at ``path``. Raise `KeyFileUnusable` if it cannot be read."""
    return parse_key(_read(path)["key"])


def open_key_file(path: str, passphrase: str) -> KeySigner:
    """Decrypt the key file at ``path``, and return a signer.

    Raise `KeyFileUnusable` and `WrongPassphrase`.
    """
    fields = _read(path)
    salt, nonce, sealed = (base64.b64decode(fields[name]) for name in _ENCODED)
    from nacl.bindings import crypto_aead_chacha20poly1305_ietf_decrypt
    from nacl.exceptions import CryptoError

    secret = _derive_key(passphrase, salt, fields["cost"])
    try:
        private = crypto_aead_chacha20poly1305_ietf_decrypt(sealed, fields["key"].encode(), nonce, secret)
    except CryptoError as error:
        raise WrongPassphrase(path=path) from error
    return KeySigner(private)


def _read(path: str) -> dict[str, Any]:
    """Return the validated fields of the key file at ``path``.

    Raise `KeyFileUnusable` if they are invalid.
    """
    try:
        with open(path, "rb") as file:
            fields = json.loads(file.read(_MAX_FILE_BYTES))
        cost = fields["cost"]
        is_cost = isinstance(cost, int) and 2 <= cost <= _MAX_COST and cost & (cost - 1) == 0
        sizes = [len(base64.b64decode(fields[name], validate=True)) for name in _ENCODED]
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
    given = passphrase[:_MAX_PASSPHRASE].encode()
    # OpenSSL refuses costs beyond 32 MB unless a limit above its needs is given.
    memory = 2 * 128 * cost * _BLOCK
    return hashlib.scrypt(given, salt=salt, n=cost, r=_BLOCK, p=1, maxmem=memory, dklen=32)
