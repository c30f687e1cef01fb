"""The component class that colours an actor. Apart from the themes, so that commands do without Textual."""

from __future__ import annotations

import zlib
from typing import Final

AGENT_COLOURS: Final = 12
"""So many colours of agents does each theme have."""


def agent_class(actor: str) -> str:
    """The component class that colours an actor: the same for the same id, in every run."""
    if actor.startswith("human:"):
        return "human"
    if actor in ("outside", "system"):
        return actor
    return f"agent-{zlib.crc32(actor.encode()) % AGENT_COLOURS}"
