"""Messages to the agents of a tree about its landing. Pure."""

from __future__ import annotations

from typing import Final

from watchroom.features.trees.landing import LandingRecord
from watchroom.texts import Catalogue

MAX_LINES: Final = 40
"""Maximum number of lines of the check's output in a message."""
MAX_LINE: Final = 300
_MAX_PATHS: Final = 20


def say_landing(record: LandingRecord, source: str, texts: Catalogue) -> str:
    """Return the message about ``record`` for the agents of the tree, empty if the outcome does not concern
    them.

    ``source``: the tree's branch, or its commit.
    """
    if record.state not in ("landed", "conflict", "check_failed", "moved"):
        return ""
    paths = texts("tree.separator").join(record.paths[:_MAX_PATHS])
    said = texts(
        f"tree.landing_{record.state}",
        tree=source,
        into=record.into,
        paths=paths if len(record.paths) <= _MAX_PATHS else f"{paths}, …",
        check=record.command[-1] if record.command else "",
        status=texts("tree.timeout") if record.status is None else record.status,
    )
    lines = record.output.rstrip().split("\n") if record.state == "check_failed" else [""]
    shown = [line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…" for line in lines[-MAX_LINES:]]
    return "\n".join([said, *shown]) if any(shown) else said
