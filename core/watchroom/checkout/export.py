"""The workspace as it stood at an earlier row, laid out elsewhere."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Final

from watchroom.checkout.layout import (
    CONTROL,
    ROOTS,
    checkpoint_place,
    document_place,
    history_line,
    history_place,
    history_text,
    place,
)
from watchroom.checkout.rendering import files_of
from watchroom.disk import Folder
from watchroom.errors import JournalDamaged
from watchroom.journal import Journal
from watchroom.model import Row, Zone
from watchroom.platforms import Platform
from watchroom.rules.row_files import find_row_flaw

_DOCUMENTS: Final[Zone] = "realtime"
_IN_THE_WAY: Final = frozenset(
    {errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ENAMETOOLONG}
)


def export(
    journal: Journal,
    as_of: int,
    target: str,
    platform: Platform | None = None,
    *,
    on_left_out: Callable[[Row], None] = lambda row: None,
) -> int:
    """Lay the files out under ``target`` as they stood at row ``as_of`` of ``journal``. ``platform`` is the
    operating system (default: this machine's). ``on_left_out`` is called with each current version that has
    no file: its text cannot be read, or it breaks the rules of its zone, which `verify` names.

    Returns how many files agents and people had then: versions, histories, metadata and the configuration are
    not counted. Raises OSError, `JournalError`.
    """
    folder = Folder(target, os.path.join(target, CONTROL, "tmp"), platform)
    count = 0
    try:
        for zone in (*ROOTS, _DOCUMENTS):
            write = _write_document if zone == _DOCUMENTS else _write_files
            for head in journal.heads(zone, as_of=as_of):
                if head.deleted and zone != _DOCUMENTS:
                    continue
                if find_row_flaw(head) is not None or not _is_written(write, journal, folder, head):
                    on_left_out(head)
                else:
                    count += zone != "config"
    finally:
        folder.close()
    return count


def _is_written(
    write: Callable[[Journal, Folder, Row], bool], journal: Journal, folder: Folder, head: Row
) -> bool:
    """Whether ``write`` could write the files of ``head``. Raise OSError if the disk refuses any file."""
    try:
        return write(journal, folder, head)
    except OSError as error:
        # Rows written past the tools can be at paths that are in each other's way.
        if error.errno not in _IN_THE_WAY:
            raise
        return False


def _write_files(journal: Journal, folder: Folder, head: Row) -> bool:
    """Write what belongs to the path of ``head``. Return whether its current text could be read."""
    is_there = False
    for file in files_of(journal, head):
        folder.write(file.parts, file.data, executable=file.executable)
        is_there = is_there or file.parts == place(head.zone, head.path)
    if head.zone == "collab":
        rows = journal.history("collab", head.path, limit=head.version)
        folder.write(history_place(head.path), history_text([history_line(row) for row in rows]))
    return is_there


def _write_document(journal: Journal, folder: Folder, head: Row) -> bool:
    """Write the files of the document of ``head``. Return whether it could be read."""
    # Documents need the engine, slow to load: an export of files alone does without.
    from watchroom.checkout.document_replica import DocumentReplica

    try:
        document = DocumentReplica(head.path, journal, until=head.version)
    except JournalDamaged:
        return False
    folder.write(checkpoint_place(head.path), document.checkpoint())
    folder.write(document_place(head.path), document.render_values())
    return True
