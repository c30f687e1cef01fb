"""Signing with people's keys: key files, a process that holds an unlocked key, FIDO2 devices."""

from watchroom.errors import KeyFileUnusable, SignerFailed, SignerLocked, WrongPassphrase
from watchroom.platform.signing.key_file import KeySigner, create_key_file, open_key_file, read_public_key
from watchroom.platform.signing.signer import Signer
from watchroom.platform.signing.signer_process import SignerProcess
from watchroom.platform.signing.ssh_agent import DeviceSigner, list_device_keys

__all__ = [
    "DeviceSigner",
    "KeyFileUnusable",
    "KeySigner",
    "Signer",
    "SignerFailed",
    "SignerLocked",
    "SignerProcess",
    "WrongPassphrase",
    "create_key_file",
    "list_device_keys",
    "open_key_file",
    "read_public_key",
]
