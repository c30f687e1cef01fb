"""How much property tests, crash tests and those of many writers do."""

from __future__ import annotations

import os

IS_HUNTING = "WATCHROOM_HUNT" in os.environ
"""Whether faults are looked for that no one knows yet: with other examples than always, and more of them."""


def rounds(usual: int, hunting: int) -> int:
    """How often to try: ``usual`` in the suite, whose examples are the same each time, ``hunting`` where
    WATCHROOM_HUNT is set."""
    return hunting if IS_HUNTING else usual
