"""The diff in the result of a refused write: from the version that the writer knew to the current version."""

from __future__ import annotations

from typing import Final

from watchroom.algorithms.merge import diff_apart_from_style
from watchroom.errors import VersionConflict
from watchroom.kernel.journal import Journal
from watchroom.texts import Catalogue

MAX_DIFF_CHARACTERS: Final = 20_000
"""Maximum characters of a diff. A longer diff is cut, because the result contains the current text anyway."""


def diff_missed_changes(journal: Journal, conflict: VersionConflict, texts: Catalogue) -> str | None:
    """Return a unified diff from the base version of a refused write to the current version.

    The diff is empty if both have the same text, and cut if it is long. A change of all line ends or of the
    byte order mark is a line above the diff, and not part of it. Return None if the base is not in
    ``journal`` or there is no current version.

    - ``conflict``: the refusal.
    - ``texts``: the reader's language.
    """
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
    """Return ``diff``, cut after `MAX_DIFF_CHARACTERS`. The last line then gives the size of the rest.
    ``key``: the key of that line in ``texts``."""
    if len(diff) <= MAX_DIFF_CHARACTERS:
        return diff
    kept = diff[: diff.rfind("\n", 0, MAX_DIFF_CHARACTERS) + 1] or diff[:MAX_DIFF_CHARACTERS] + "\n"
    return kept + texts(key, count=len(diff) - len(kept))
