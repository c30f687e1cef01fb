"""Why nothing can be signed just now."""

from __future__ import annotations

from watchroom.errors import DeniedError, WatchroomError


class KeyFileUnusable(WatchroomError):
    """A key file is missing, none, or stands there already. Values: path, reason."""

    code = "key_file_unusable"


class WrongPassphrase(DeniedError):
    """The passphrase does not open the key file. Values: path."""

    code = "wrong_passphrase"


class SignerLocked(WatchroomError):
    """The key is locked: it was not used for a while, or its process has ended."""

    code = "signer_locked"


class SignerFailed(WatchroomError):
    """The key could not sign. Values: reason."""

    code = "signer_failed"
