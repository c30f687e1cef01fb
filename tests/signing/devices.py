"""FIDO2 devices in software, which sign with or without a touch."""

from __future__ import annotations

import hashlib
import itertools

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils
from watchroom.algorithms.sshsig import (
    FIDO_ECDSA,
    FIDO_ED25519,
    PublicKey,
    armour,
    encode_strings,
    signed_bytes,
)


class Device:
    """A device with a new key of the ``kind`` ed25519 or ecdsa."""

    def __init__(self, kind: str = "ed25519") -> None:
        self._counter = itertools.count(1)
        if kind == "ed25519":
            self._edwards = ed25519.Ed25519PrivateKey.generate()
            self._curve = None
            self.key = PublicKey(FIDO_ED25519, self._edwards.public_key().public_bytes_raw(), "ssh:")
        else:
            self._curve = ec.generate_private_key(ec.SECP256R1())
            point = self._curve.public_key().public_bytes(
                serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
            )
            self.key = PublicKey(FIDO_ECDSA, point, "ssh:")

    def sign(self, message: bytes, namespace: str, *, touched: bool = True) -> str:
        """Return an armoured signature of ``message``."""
        return armour(self.key, namespace, self.sign_data(signed_bytes(message, namespace), touched=touched))

    def sign_data(self, data: bytes, *, touched: bool = True) -> bytes:
        """Return the answer of ssh-agent to a request to sign ``data``."""
        flags, counter = bytes([touched]), next(self._counter).to_bytes(4, "big")
        application = hashlib.sha256(self.key.application.encode()).digest()
        signed = application + flags + counter + hashlib.sha256(data).digest()
        if self._curve is None:
            raw = self._edwards.sign(signed)
        else:
            numbers = utils.decode_dss_signature(self._curve.sign(signed, ec.ECDSA(hashes.SHA256())))
            raw = encode_strings(*(_mpint(each) for each in numbers))
        return encode_strings(self.key.kind.encode(), raw) + flags + counter


def _mpint(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big")
