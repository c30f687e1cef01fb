"""Host names, and patterns for hosts that commands can reach."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_MAX_LENGTH: Final = 253
_LABEL: Final = "[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?"
_PATTERN: Final = re.compile(rf"(\*\.)?({_LABEL}\.)*{_LABEL}")


def is_pattern(text: str) -> bool:
    """Return whether ``text`` is a host name, or ``*.`` and a host name, which matches all subdomains."""
    return len(text) <= _MAX_LENGTH and _PATTERN.fullmatch(text) is not None


def is_allowed(host: str, patterns: Sequence[str]) -> bool:
    """Return whether one of ``patterns`` matches ``host``, a result of `normalize_host`."""
    return any(host.endswith(each[1:]) if each.startswith("*.") else host == each for each in patterns)


def normalize_host(name: str) -> str:
    """Return ``name`` in lower case and without a final dot. Raise ValueError if it is not a host name."""
    host = name.lower().removesuffix(".")
    if host.startswith("*") or not is_pattern(host):
        raise ValueError(name)
    return host
