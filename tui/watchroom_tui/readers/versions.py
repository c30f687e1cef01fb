"""Read the versions of a shared file or board. To be called in threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.errors import JournalError
from watchroom.journal import Journal
from watchroom.merge import split_lines
from watchroom.model import Row

from watchroom_tui.blame import MOST_VERSIONS

if TYPE_CHECKING:
    from watchroom import Workspace
    from watchroom.verify import BrokenVersion

VERSIONS_SHOWN: Final = 500
"""The timeline shows the newest so many versions."""


class UnreadableVersionError(Exception):
    """The journal cannot give the content of a row, or it carries none."""

    def __init__(self, row: Row) -> None:
        super().__init__(row.seq)
        self.row = row


class VersionPair(NamedTuple):
    """What is compared: nothing at all with the first version, else the older with the newer."""

    old: Row | None
    new: Row


class VersionTexts(NamedTuple):
    old: str
    new: str
    old_lines: Sequence[str]
    new_lines: Sequence[str]


def read_timeline(journal: Journal, head: Row, as_of: int) -> list[Row]:
    """The newest versions up to ``head``, and what was refused meanwhile, newest first."""
    newest = head.version or 0
    rows = journal.history(head.zone, head.path, after_version=max(0, newest - VERSIONS_SHOWN))
    refused = journal.refused(head.zone, head.path, before=as_of + 1, limit=VERSIONS_SHOWN)
    oldest = rows[0].seq if rows else 0
    both = [*(row for row in rows if row.seq <= as_of), *(row for row in refused if row.seq > oldest)]
    return sorted(both, key=lambda row: -row.seq)


def read_pair(journal: Journal, row: Row, other: Row | None) -> VersionPair:
    """``row`` with ``other``, or with the version that it started from. What was refused comes last."""
    if other is not None:
        old, new = sorted((row, other), key=lambda each: (each.version is None, each.seq))
        return VersionPair(old, new)
    base = row.version - 1 if row.version is not None else max(0, row.base or 0)
    return VersionPair(journal.version(row.zone, row.path, base) if base else None, row)


def find_equal_versions(timeline: Iterable[Row]) -> dict[int, int]:
    """The refused rows of a timeline, newest first, whose very text a version has: by their numbers, the
    newest such version that they met or that came after them."""
    newest: dict[str, int] = {}
    found: dict[int, int] = {}
    waiting: list[Row] = []
    for row in timeline:
        if row.version is None:
            waiting.append(row)
        elif row.sha256 is not None:
            newest.setdefault(row.sha256, row.version)
    for row in waiting:
        version = newest.get(row.sha256 or "", 0)
        met = row.detail.get("current", row.base)
        if version and isinstance(met, int) and version >= met:
            found[row.seq] = version
    return found


def read_version_texts(journal: Journal, pair: VersionPair) -> VersionTexts:
    """The texts of both, whole and as lines. Raises `UnreadableVersionError`."""
    old = read_version_text(journal, pair.old) if pair.old is not None else ""
    new = read_version_text(journal, pair.new)
    return VersionTexts(old, new, split_lines(old), split_lines(new))


def read_version_text(journal: Journal, row: Row) -> str:
    """The text that a row carries; a deletion's is empty. Raises `UnreadableVersionError`."""
    if row.deleted or (row.error == "outside_edit" and row.sha256 is None):
        return ""
    try:
        content = journal.content(row.seq)
    except JournalError as error:
        raise UnreadableVersionError(row) from error
    if content is None:
        raise UnreadableVersionError(row)
    return content


def read_version_line(journal: Journal, row: Row) -> list[Row]:
    """The versions that lead to ``row``, and the row itself, oldest first: as many as blame looks at."""
    last = row.version if row.version is not None else max(0, row.base or 0)
    rows = journal.history(
        row.zone, row.path, after_version=max(0, last - MOST_VERSIONS), limit=MOST_VERSIONS
    )
    found = [each for each in rows if (each.version or 0) <= last]
    return found if row.version is not None else [*found, row]


def find_broken_versions(
    journal: Journal, workspace: Workspace | None, rows: Iterable[Row]
) -> list[BrokenVersion]:
    """What is wrong with these versions: without a workspace only their contents can be looked at."""
    from watchroom.verify import contents_broken

    return workspace.broken_versions(rows) if workspace is not None else contents_broken(journal, rows)
