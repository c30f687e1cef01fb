"""The key by which a machine's user signs checkpoints while no person's key is unlocked.

It has no passphrase, so whatever runs as this user may use it. It tells whose machine made a checkpoint to
those who have read its public key before.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from watchroom.signing import KeySigner, Signer
from watchroom.sshsig import SigningNotInstalled

_NAME: Final = "machine.key"
_BYTES: Final = 32


def machine_signer(state: str) -> Signer | None:
    """What signs with the key in the folder ``state``, made where there is none; None where nothing can
    sign because the extra ``sign`` is not installed. Raises OSError."""
    path = os.path.join(state, _NAME)
    os.makedirs(state, mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "wb") as file:
            file.write(os.urandom(_BYTES))
    with open(path, "rb") as file:
        private = file.read(_BYTES + 1)
    if len(private) != _BYTES:
        # Another process makes it just now: the next checkpoint is signed.
        return None
    try:
        return KeySigner(private)
    except SigningNotInstalled:
        return None
