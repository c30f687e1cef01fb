"""Platforms by name."""

from __future__ import annotations

from typing import Final

from watchroom.platforms import Platform, detect_platform
from watchroom.platforms.posix import PosixPlatform

PLATFORM_NAMES: Final = ("detected", "posix")
_POSIX: Final = PosixPlatform()
"""One for all: it runs a program to learn when the machine began."""


def choose_platform(name: str) -> Platform:
    """``detected`` is that of this machine, ``posix`` has no more of its system than POSIX."""
    return _POSIX if name == "posix" else detect_platform()
