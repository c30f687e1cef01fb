"""Why somebody is not enrolled, or may not decide."""

from __future__ import annotations

from watchroom.errors import DeniedError


class PersonRefused(DeniedError):
    """Somebody cannot be enrolled or revoked so. Values: person, rule."""

    code = "person_refused"


class SignatureRequired(DeniedError):
    """The workspace is closed: a decision counts only when it is signed. Values: tool."""

    code = "signature_required"


class SettingsUnsigned(DeniedError):
    """The config file says something else than the settings that were signed, which hold. Values: fields."""

    code = "settings_unsigned"


class KeysNotTyped(DeniedError):
    """A decision came by keys that a program sent to the terminal. Values: tool."""

    code = "keys_not_typed"


class MayNotDecide(DeniedError):
    """Somebody's decision would not count. Values: person, tool, rule."""

    code = "may_not_decide"
