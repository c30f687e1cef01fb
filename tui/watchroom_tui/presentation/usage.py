"""The error of wrong usage, which ends a command with status 2."""

from __future__ import annotations


class WrongUsage(Exception):
    """The arguments are wrong. The text gives the reason."""
