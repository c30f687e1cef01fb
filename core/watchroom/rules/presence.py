"""Which process has to go on with what rows tell of. Pure."""

from __future__ import annotations

from typing import Final

from watchroom.model import CONTINUE, PRESENCE, Row

UNSUPERVISED: Final = "unsupervised"
"""In the detail of a step: the client does something of which no hook tells."""
_UNSUPERVISED_MARK: Final = f'"{UNSUPERVISED}": true'
_MARK: Final = f'"{PRESENCE}": "'
_OPEN: Final = tuple(
    f'"status": "{each}"' for each in ("idle", "running", "waiting_for_human_input", "paused")
)
"""In the detail of a step after which the session goes on. Looked for as text: there are many steps."""


def presence_of(row: Row) -> str:
    """The lease of the process that ``row`` names as the one that runs what it tells of, empty where it names
    none. Looked for as text: there are many steps."""
    detail = row.detail_json
    start = detail.find(_MARK)
    if start < 0:
        return ""
    start += len(_MARK)
    return detail[start : detail.find('"', start)]


def takes_over(row: Row) -> bool:
    """Whether ``row``, one of a session, is a note that another process goes on with it. Of one that is a
    version, what says so is its lease, as of every step."""
    return row.version is None and row.tool == CONTINUE


def is_unfinished(step: Row) -> bool:
    """Whether a process has to go on with the session whose newest step is ``step``: a paused one, too, for
    only a process can resume it."""
    return any(status in step.detail_json for status in _OPEN)


def is_unsupervised(step: Row) -> bool:
    """Whether ``step``, the newest of its session, says that its client does something of which no hook
    tells. Looked for as text: there are many steps."""
    return _UNSUPERVISED_MARK in step.detail_json
