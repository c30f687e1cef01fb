"""Rows as a journal would have them, for rules that only read rows."""

from __future__ import annotations

import json
from typing import Any

from watchroom.model import Row

_ROW = Row(7, 0, "alice", "t", "collab", "a", None, None, "ok", "", "", None, None, "")


def row(detail: Any = None, **fields: Any) -> Row:
    """A row with these ``fields``, and with ``detail`` as its JSON."""
    return _ROW._replace(detail_json="" if detail is None else json.dumps(detail), **fields)
