"""One row for each edit and read in a working tree. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from watchroom.features.sessions.rows import client_call
from watchroom.features.trees.rows import BASELINE, READ, REPO
from watchroom.model import Row

NEAR: Final = 20
"""Maximum number of rows between the call of a client's own tool and the row of its file."""


def without_repeats(rows: Sequence[Row]) -> list[Row]:
    """Return ``rows``, newest first, without the rows that only repeat an edit or a read.

    Two kinds of rows are left out: git's text before the first change of a file, and calls of clients' own
    tools if the files of the call have rows of their own. Those rows are versions after the call, refused
    writes before it, or reads after it.
    """
    return [row for at, row in enumerate(rows) if row.tool != BASELINE and not _is_repeat(rows, at)]


def find_reported_read(row: Row, before: Iterable[Row]) -> Row | None:
    """Return the call of a client that read the file of ``row``, None if there is no such call.

    ``before``: the rows before it, newest first.
    """
    if row.tool != READ:
        return None
    name = row.path.partition("/")[2]
    for other in islice(before, NEAR):
        if other.actor != row.actor:
            continue
        if other.tool == READ and other.path == row.path:
            return None
        call = client_call(other)
        is_read = call is not None and call.kind == "read" and call.outcome == "ok"
        if call is not None and is_read and _is_same(name, call.about):
            return other
    return None


def _is_repeat(rows: Sequence[Row], at: int) -> bool:
    call = client_call(rows[at])
    if call is None or call.left_out or call.outcome == "failed":
        return False
    newer, older = rows[max(0, at - NEAR) : at], rows[at + 1 : at + 1 + NEAR]
    if call.outcome == "denied":
        near = (row for row in older if row.outcome == "conflict")
    elif call.kind == "edit":
        near = (row for row in newer if row.version is not None)
    elif call.kind == "read":
        near = (row for row in newer if row.tool == READ)
    else:
        return False
    actor, paths = rows[at].actor, call.paths or (call.about,)
    names = [row.path.partition("/")[2] for row in near if row.zone == REPO and row.actor == actor]
    return all(any(_is_same(name, path) for name in names) for path in paths)


def _is_same(name: str, path: str) -> bool:
    """Return whether a client's ``path`` names the file ``name``. The path can be absolute, or relative to a
    folder in the tree."""
    return f"/{path}".endswith(f"/{name}") or f"/{name}".endswith(f"/{path}")
