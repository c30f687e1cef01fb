"""Signatures as OpenSSH makes them (PROTOCOL.sshsig): of key files, and of FIDO2 keys. Pure.

``ssh-keygen -Y verify`` accepts what is signed here, and what it signs is accepted here; but that a FIDO2 key
was touched is looked at only here.
"""

from watchroom.sshsig.errors import InvalidPublicKey, InvalidSignature, SigningNotInstalled
from watchroom.sshsig.public_key import PublicKey, parse_key
from watchroom.sshsig.signature import armour, signed_bytes, verify

__all__ = [
    "InvalidPublicKey",
    "InvalidSignature",
    "PublicKey",
    "SigningNotInstalled",
    "armour",
    "parse_key",
    "signed_bytes",
    "verify",
]
