"""The diff in the result of a conflict: from the version that the writer knew to the current one."""

from __future__ import annotations

from typing import Final

from watchroom.errors import VersionConflict
from watchroom.journal import Journal
from watchroom.merge import diff_apart_from_style
from watchroom.texts import Catalogue

MAX_DIFF_CHARACTERS: Final = 20_000
"""A longer diff is cut: the current text is in the result anyway."""


def conflict_diff(journal: Journal, conflict: VersionConflict, texts: Catalogue) -> str | None:
    """Return a unified diff from the base of the write that ``conflict`` refused to the current version,
    empty if both are the same text, cut in the words of ``texts`` if it is long. If all line ends or the
    byte order mark changed, a line above it says so in place of the diff. None if the base is not in
    ``journal``, or nothing is current."""
    row, current, number = conflict.row, conflict.current, conflict.row.base or 0
    if number <= 0 or current is None:
        return None
    found = journal.versions(row.zone, row.path, after=number - 1, until=number)
    if not found:
        return None
    base, text = found[0]
    before, after = text or "", conflict.current_content or ""
    names = (f"{each.path} (v{each.version}, {each.actor})" for each in (base, current))
    diff, styles = diff_apart_from_style(before, after, *names)
    if styles is not None:
        old, new = (each.describe(texts) for each in styles)
        diff = f"{texts('style.changed', before=old, after=new)}\n{diff}"
    return truncate_diff(diff, texts)


def truncate_diff(diff: str, texts: Catalogue, key: str = "conflict.cut") -> str:
    """Return the start of ``diff`` if it is long, with a line that says how much is left out, from ``texts``
    under ``key``."""
    if len(diff) <= MAX_DIFF_CHARACTERS:
        return diff
    kept = diff[: diff.rfind("\n", 0, MAX_DIFF_CHARACTERS) + 1] or diff[:MAX_DIFF_CHARACTERS] + "\n"
    return kept + texts(key, count=len(diff) - len(kept))
