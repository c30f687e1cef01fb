"""Which process has to go on with what rows tell of. Pure."""

from __future__ import annotations

from typing import Final

from watchroom.model import PRESENCE, Row

_MARK: Final = f'"{PRESENCE}": "'
_NEEDS_A_PROCESS: Final = ('"status": "running"', '"status": "waiting_for_human_input"')


def presence_behind(step: Row) -> str:
    """The lease of the process that has to go on with the session whose newest step is ``step``; empty where
    the session waits for no process, or the row does not say for which. Looked for as text: there are many
    steps."""
    detail = step.detail_json
    start = detail.find(_MARK)
    if start < 0 or not any(status in detail for status in _NEEDS_A_PROCESS):
        return ""
    start += len(_MARK)
    return detail[start : detail.find('"', start)]
