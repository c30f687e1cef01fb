"""Programs that the real tests start as their own processes."""

from __future__ import annotations

import os
import sys


def installed(name: str) -> str:
    """Return the path of a program that is installed beside this interpreter."""
    return os.path.join(os.path.dirname(sys.executable), name)
