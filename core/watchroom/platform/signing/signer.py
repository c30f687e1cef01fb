"""The interface of all signers for a person, and its errors."""

from __future__ import annotations

from typing import Protocol

from watchroom.algorithms.sshsig import PublicKey


class Signer(Protocol):
    """Signs with one key. Thread-safe."""

    @property
    def key(self) -> PublicKey:
        """The public key that verifies its signatures."""
        ...

    def lock(self) -> None:
        """Stop signing. May be called repeatedly."""
        ...

    def sign(self, message: bytes, namespace: str) -> str:
        """Return an armoured signature of ``message`` in ``namespace``.

        Raise `SignerLocked` if the key is locked, and `SignerFailed` if signing fails.
        """
        ...
