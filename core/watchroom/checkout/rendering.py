"""Which bytes stand in the files of a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from watchroom import validation
from watchroom.checkout.layout import VERSIONED, meta_place, meta_text, oldest_kept, place, version_place
from watchroom.disk import Parts
from watchroom.errors import JournalError
from watchroom.journal import Journal
from watchroom.journal.errors import JournalUnreachable
from watchroom.model import Row
from watchroom.rules.task_versions import is_executable


def verified_content(journal: Journal, row: Row) -> bytes | None:
    """The content of ``row`` from ``journal`` in UTF-8; None where the journal has lost it, or it is not what
    its checksum says. Raises `JournalUnreachable`: what cannot be asked for now is not lost."""
    try:
        content = journal.content(row.seq)
    except JournalUnreachable:
        raise
    except JournalError:
        return None
    return verify_content(row, content)


def verify_content(row: Row, content: str | None) -> bytes | None:
    """``content``, which the journal has of ``row``, in UTF-8; None where there is none, or its checksum is
    another one."""
    data = None if content is None else content.encode()
    return data if data is not None and validation.sha256(data) == row.sha256 else None


class RenderedFile(NamedTuple):
    """A file by its ``parts`` from the root, and whether it is ``executable``."""

    parts: Parts
    data: bytes
    executable: bool = False


def files_of(journal: Journal, head: Row) -> Iterator[RenderedFile]:
    """Every file that belongs to the path of ``head``, its current version, but its history; those whose
    content is broken in ``journal`` are left out."""
    current = None if head.deleted else verified_content(journal, head)
    if current is not None:
        yield RenderedFile(place(head.zone, head.path), current, is_executable(head))
    if head.zone == "handoff" and not head.deleted:
        yield RenderedFile(meta_place(head.path), meta_text(head))
    if head.zone in VERSIONED:
        gone = oldest_kept(head) - 1
        for row in journal.history(
            head.zone, head.path, after_version=gone, limit=(head.version or 0) - gone
        ):
            data = b"" if row.deleted else verified_content(journal, row)
            if data is not None:
                yield RenderedFile(version_place(row), data)
