"""Writes the files of a workspace as they were at an earlier row to another folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Final

from watchroom.errors import JournalDamaged
from watchroom.kernel.checkout.layout import (
    CONTROL,
    ROOTS,
    checkpoint_place,
    document_place,
    history_line,
    history_place,
    history_text,
    place,
)
from watchroom.kernel.checkout.rendering import files_of
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.row_files import find_row_flaw
from watchroom.kernel.zones import DOCUMENTS, ZONES
from watchroom.model import Row
from watchroom.platform import Platform
from watchroom.platform.disk import Folder

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
    """Write the files to ``target`` as they were at row ``as_of``. Return their number.

    - ``platform``: the operating system, default this machine's.
    - ``on_left_out``: called with each current version that is left out, because its text cannot be read or
      it breaks the rules of its zone.

    Version files, histories, metadata and the configuration are not included in the number. Raise OSError,
    `JournalError`.
    """
    folder = Folder(target, os.path.join(target, CONTROL, "tmp"), platform)
    count = 0
    try:
        for zone in (*ROOTS, *DOCUMENTS):
            write = _write_document if zone in DOCUMENTS else _write_files
            for head in journal.heads(zone, as_of=as_of):
                if head.deleted and zone not in DOCUMENTS:
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
        if error.errno not in _IN_THE_WAY:
            raise
        return False


def _write_files(journal: Journal, folder: Folder, head: Row) -> bool:
    """Write the files of the path of ``head``. Return whether its current text could be read."""
    is_there = False
    for file in files_of(journal, head):
        folder.write(file.parts, file.data, executable=file.executable)
        is_there = is_there or file.parts == place(head.zone, head.path)
    if ZONES[head.zone].has_history:
        rows = journal.history(head.zone, head.path, limit=head.version)
        folder.write(history_place(head.zone, head.path), history_text([history_line(row) for row in rows]))
    return is_there


def _write_document(journal: Journal, folder: Folder, head: Row) -> bool:
    """Write the files of the document of ``head``. Return whether it could be read."""
    from watchroom.features.documents.replica import DocumentReplica

    try:
        document = DocumentReplica(head.path, journal, until=head.version)
    except JournalDamaged:
        return False
    folder.write(checkpoint_place(head.zone, head.path), document.checkpoint())
    folder.write(document_place(head.zone, head.path), document.render_values())
    return True
