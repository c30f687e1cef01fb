"""Platforms by name."""

from __future__ import annotations

from typing import Final

from watchroom.platform import Platform, detect_platform

PLATFORM_NAMES: Final = ("detected", "posix")
_POSIX: Final = Platform()
"""One for all: it runs a program to learn when the machine began."""


def choose_platform(name: str) -> Platform:
    """``detected`` is that of this machine, ``posix`` has no more of its system than POSIX."""
    return _POSIX if name == "posix" else detect_platform()
