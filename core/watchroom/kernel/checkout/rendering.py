"""The bytes of a row's files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from watchroom import validation
from watchroom.errors import JournalError, JournalUnreachable
from watchroom.kernel.checkout.layout import (
    VERSIONED,
    meta_place,
    meta_text,
    oldest_kept,
    place,
    version_place,
)
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.file_versions import is_executable
from watchroom.kernel.zones import ZONES
from watchroom.model import Row
from watchroom.platform.disk import Parts


def verified_content(journal: Journal, row: Row) -> bytes | None:
    """The content of ``row`` from ``journal`` in UTF-8. None if it is lost or differs from its checksum.

    Raise `JournalUnreachable`, because the content may not be lost.
    """
    try:
        content = journal.content(row.seq)
    except JournalUnreachable:
        raise
    except JournalError:
        return None
    return verify_content(row, content)


def verify_content(row: Row, content: str | None) -> bytes | None:
    """The ``content`` of ``row`` in UTF-8. None if there is none, or if it differs from the checksum."""
    data = None if content is None else content.encode()
    return data if data is not None and validation.sha256(data) == row.sha256 else None


class RenderedFile(NamedTuple):
    """A file by its ``parts`` from the root, and whether it is ``executable``."""

    parts: Parts
    data: bytes
    executable: bool = False


def files_of(journal: Journal, head: Row) -> Iterator[RenderedFile]:
    """Yield every file of the path of ``head``, its current version, except its history. Files with damaged
    content in ``journal`` are skipped."""
    current = None if head.deleted else verified_content(journal, head)
    if current is not None:
        yield RenderedFile(place(head.zone, head.path), current, is_executable(head))
    if ZONES[head.zone].has_metadata and not head.deleted:
        yield RenderedFile(meta_place(head.zone, head.path), meta_text(head))
    if head.zone in VERSIONED:
        gone = oldest_kept(head) - 1
        for row in journal.history(
            head.zone, head.path, after_version=gone, limit=(head.version or 0) - gone
        ):
            data = b"" if row.deleted else verified_content(journal, row)
            if data is not None:
                yield RenderedFile(version_place(row), data)
