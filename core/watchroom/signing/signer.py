"""What signs for a person, wherever the key is."""

from __future__ import annotations

from typing import Protocol

from watchroom.sshsig import PublicKey


class Signer(Protocol):
    """Signs with one key. May be used from any thread."""

    @property
    def key(self) -> PublicKey:
        """The public key by which its signatures are checked."""
        ...

    def lock(self) -> None:
        """Sign no more. May be called again."""
        ...

    def sign(self, message: bytes, namespace: str) -> str:
        """The signature of ``message`` in ``namespace``, as text. Raises `SignerLocked`, `SignerFailed`."""
        ...
