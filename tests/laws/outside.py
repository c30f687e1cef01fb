"""What the tests of edits made by hand look at."""

from __future__ import annotations

from watchroom import Row


def described(rows: list[Row]) -> list[tuple[str, str, str, str]]:
    return [(row.tool, row.path, row.outcome, row.error) for row in rows]
