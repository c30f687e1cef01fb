"""The error for wrong usage. It ends a command with status 2."""

from __future__ import annotations


class WrongUsage(Exception):
    """Error: the arguments are wrong. The text is the reason."""
