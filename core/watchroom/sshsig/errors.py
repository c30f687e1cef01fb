"""What is wrong with a key or a signature."""

from __future__ import annotations

from watchroom.errors import DeniedError, WatchroomError


class InvalidPublicKey(DeniedError):
    """A text is no public key that can be used here. Values: rule."""

    code = "invalid_public_key"


class InvalidSignature(DeniedError):
    """A signature is none, or not one of this key over this text. Values: rule."""

    code = "invalid_signature"


class SigningNotInstalled(WatchroomError):
    """What makes and checks signatures is not installed."""

    code = "signing_not_installed"
