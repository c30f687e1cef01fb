"""The file in which the dashboard remembers the last screen and filters of a workspace."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from platformdirs import user_state_path


def memory_path(place: str) -> Path:
    """Return the path of the file for the workspace at ``place``, its folder or its address on a server."""
    digest = hashlib.sha256(os.fsencode(place)).hexdigest()[:32]
    return user_state_path("watchroom", appauthor=False) / "dashboards" / f"{digest}.toml"
