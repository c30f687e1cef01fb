"""The versions of a path: its history, what stands beside what, and their texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.errors import JournalError
from watchroom.journal import Journal
from watchroom.model import SYSTEM, Row
from watchroom.queries.rows import find_content
from watchroom.rules.details import size_without_text

if TYPE_CHECKING:
    from watchroom.verify import BrokenVersion

MOST_VERSIONS: Final = 500
"""So many of a path's versions are given at most, the newest."""


class UnreadableVersionError(Exception):
    """The journal cannot give the text of ``row``, or the row carries none."""

    def __init__(self, row: Row) -> None:
        super().__init__(row.seq)
        self.row = row


class VersionPair(NamedTuple):
    """What is compared: ``old``, None where nothing stood there, with ``new``."""

    old: Row | None
    new: Row


class VersionTexts(NamedTuple):
    """The texts of a `VersionPair`."""

    old: str
    new: str


class Merge(NamedTuple):
    """The three sides of a conflict, and their texts: ``base`` and ``current`` are None, and their texts
    empty, where there is no such version. Of a conflict that a revert made, ``reverter`` is who reverted,
    else it is empty."""

    base: Row | None
    current: Row | None
    incoming: Row
    base_text: str
    current_text: str
    incoming_text: str
    reverter: str = ""


class Preview(NamedTuple):
    """A version's text, and that of the version before it, empty where there is none. ``text`` is None where
    the journal has none: the version deletes, or is no text, of which ``size`` is known (bytes)."""

    text: str | None
    before: str = ""
    size: int | None = None


def read_history(
    journal: Journal, head: Row, *, as_of: int | None = None, limit: int = MOST_VERSIONS
) -> tuple[Row, ...]:
    """The newest ``limit`` versions up to ``head`` in ``journal``, and what was refused meanwhile up to row
    ``as_of`` (None: to the newest), newest first. Raises `JournalError`."""
    last = journal.last_seq() if as_of is None else as_of
    rows = journal.history(head.zone, head.path, after_version=max(0, (head.version or 0) - limit))
    refused = journal.refused(head.zone, head.path, before=last + 1, limit=limit)
    oldest = rows[0].seq if rows else 0
    both = [*(row for row in rows if row.seq <= last), *(row for row in refused if row.seq > oldest)]
    return tuple(sorted(both, key=lambda row: -row.seq))


def read_lineage(journal: Journal, row: Row, *, limit: int = MOST_VERSIONS) -> tuple[Row, ...]:
    """The versions in ``journal`` that lead to ``row``, and the row itself, oldest first, at most ``limit``
    versions: what a blame of its text is made from. Raises `JournalError`."""
    last = row.version if row.version is not None else max(0, row.base or 0)
    rows = journal.history(row.zone, row.path, after_version=max(0, last - limit), limit=limit)
    found = tuple(each for each in rows if (each.version or 0) <= last)
    return found if row.version is not None else (*found, row)


def find_pair(journal: Journal, row: Row, other: Row | None = None) -> VersionPair:
    """``row`` beside ``other``, the older first and what was refused last; without ``other`` beside the
    version in ``journal`` that it started from. Raises `JournalError`."""
    if other is not None:
        old, new = sorted((row, other), key=lambda each: (each.version is None, each.seq))
        return VersionPair(old, new)
    base = row.version - 1 if row.version is not None else max(0, row.base or 0)
    return VersionPair(journal.version(row.zone, row.path, base) if base else None, row)


def read_text(journal: Journal, row: Row) -> str:
    """The text of the version or refused write ``row`` in ``journal``, empty where it deletes. Raises
    `UnreadableVersionError`."""
    if row.deleted or (row.error == "outside_edit" and row.sha256 is None):
        return ""
    try:
        content = journal.content(row.seq)
    except JournalError as error:
        raise UnreadableVersionError(row) from error
    if content is None:
        raise UnreadableVersionError(row)
    return content


def read_texts(journal: Journal, rows: Iterable[Row]) -> Iterator[str]:
    """The texts of ``rows`` in ``journal``, one after another, as they are asked for: texts may be large.
    Raises `UnreadableVersionError`."""
    return (read_text(journal, row) for row in rows)


def read_pair_texts(journal: Journal, pair: VersionPair) -> VersionTexts:
    """The texts of ``pair`` in ``journal``; that of nothing is empty. Raises `UnreadableVersionError`."""
    return VersionTexts(read_text(journal, pair.old) if pair.old else "", read_text(journal, pair.new))


def read_current(journal: Journal, like: Row) -> Row | None:
    """The current version in ``journal`` of the path of ``like``, None if there is none. Raises
    `JournalError`."""
    return journal.head(like.zone, like.path)


def read_merge(journal: Journal, incoming: Row) -> Merge:
    """What ``incoming``, a refused write or an edit made by hand, has to be merged with, as ``journal``
    stands. Raises `JournalError`."""
    current = read_current(journal, incoming)
    started = incoming.base is not None and incoming.base > 0
    base = journal.version(incoming.zone, incoming.path, incoming.base or 0) if started else None
    revert = incoming.detail.get("revert") if incoming.actor == SYSTEM else None
    begun = journal.version("revert", revert, 1) if isinstance(revert, str) else None
    texts = [find_content(journal, row) or "" for row in (base, current, incoming)]
    reverter = begun.actor if begun is not None else ""
    return Merge(base, current, incoming, texts[0], texts[1], texts[2], reverter)


def read_preview(journal: Journal, version: Row) -> Preview:
    """The text of ``version`` in ``journal`` with that of the version before. Raises `JournalError`."""
    size = size_without_text(version)
    if version.deleted or size is not None:
        return Preview(None, size=size)
    before = journal.version(version.zone, version.path, (version.version or 0) - 1)
    has_text = before is not None and not before.deleted and size_without_text(before) is None
    text = find_content(journal, version)
    return Preview(text, (find_content(journal, before) or "") if has_text else "")


def find_damaged(journal: Journal, rows: Iterable[Row]) -> tuple[BrokenVersion, ...]:
    """Those of ``rows`` whose text in ``journal`` is lost or is not what its checksum says; their files are
    not looked at (`Workspace.broken_versions`). Raises `JournalError`."""
    from watchroom.verify import contents_broken

    return tuple(contents_broken(journal, rows))
