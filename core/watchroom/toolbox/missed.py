"""What an agent missed: how a shared file changed between the version it knew and the current one."""

from __future__ import annotations

from typing import Final

from watchroom.errors import Conflict
from watchroom.journal import Journal
from watchroom.texts import Catalogue

LONGEST: Final = 20_000
"""So many characters of a diff are given; the current text is in the result anyway."""


def missed_changes(journal: Journal, conflict: Conflict, texts: Catalogue) -> str | None:
    """A unified diff from the refused write's base to the current version, empty if both are one text.

    None where the write started from nothing that stands in the journal, or nothing is current.
    """
    row, current = conflict.row, conflict.current
    base = journal.version(row.zone, row.path, row.base) if row.base and row.base > 0 else None
    if base is None or current is None:
        return None
    hunks = unified(journal.content(base.seq) or "", conflict.current_content or "")
    if not hunks:
        return ""
    title = "".join(
        f"{mark} {each.path} (v{each.version}, {each.actor})\n"
        for mark, each in (("---", base), ("+++", current))
    )
    return cut(title + hunks, texts)


def unified(old: str, new: str) -> str:
    """The hunks of a unified diff, empty if both are one text."""
    import pygit2

    # The patch points into these two, so they have to outlive it.
    before, after = old.encode(), new.encode()
    patch = pygit2.Patch.create_from(before, after, flag=pygit2.enums.DiffOption.FORCE_TEXT)
    data: bytes = patch.data
    start = data.find(b"\n@@ ") + 1
    return data[start:].decode() if start else ""


def cut(diff: str, texts: Catalogue, said: str = "conflict.cut") -> str:
    """The diff as far as it is given, and how much is not, in the words of ``said``."""
    if len(diff) <= LONGEST:
        return diff
    kept = diff[: diff.rfind("\n", 0, LONGEST) + 1] or diff[:LONGEST] + "\n"
    return kept + texts(said, count=len(diff) - len(kept))
