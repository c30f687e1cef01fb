"""Host names, and patterns of those that commands may reach."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_MAX_LENGTH: Final = 253
_LABEL: Final = "[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?"
_PATTERN: Final = re.compile(rf"(\*\.)?({_LABEL}\.)*{_LABEL}")


def is_pattern(text: str) -> bool:
    """Whether ``text`` is a host's name, or ``*.`` and one, which stands for all beneath it."""
    return len(text) <= _MAX_LENGTH and _PATTERN.fullmatch(text) is not None


def is_allowed(host: str, patterns: Sequence[str]) -> bool:
    """Whether ``host``, as `normalize_host` returns it, is matched by one of ``patterns``."""
    return any(host.endswith(each[1:]) if each.startswith("*.") else host == each for each in patterns)


def normalize_host(name: str) -> str:
    """``name`` in lower case and without a final dot, as patterns have it. Raises ValueError where it is no
    host's name."""
    host = name.lower().removesuffix(".")
    if host.startswith("*") or not is_pattern(host):
        raise ValueError(name)
    return host
