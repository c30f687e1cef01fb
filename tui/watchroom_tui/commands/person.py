"""The name of the person at this machine."""

from __future__ import annotations

import getpass


def name_of_this_person() -> str:
    """The name under which a person acts who gave none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "supervisor"
