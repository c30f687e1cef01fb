"""Names of hosts, and which of them are allowed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_LONGEST: Final = 253
_PART: Final = "[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?"
_NAME: Final = re.compile(rf"(\*\.)?({_PART}\.)*{_PART}")


def is_pattern(text: str) -> bool:
    """Whether that is a host's name, or ``*.`` and one, for all beneath it."""
    return len(text) <= _LONGEST and _NAME.fullmatch(text) is not None


def is_allowed(host: str, patterns: Sequence[str]) -> bool:
    return any(host.endswith(each[1:]) if each.startswith("*.") else host == each for each in patterns)


def host_name(given: str) -> str:
    """``given`` as patterns have it. Raises ValueError for what is no host's name."""
    name = given.lower().removesuffix(".")
    if name.startswith("*") or not is_pattern(name):
        raise ValueError(given)
    return name
