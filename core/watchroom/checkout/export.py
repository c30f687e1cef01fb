"""The workspace as it stood at an earlier row, laid out elsewhere."""

from __future__ import annotations

import os

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
from watchroom.journal import Journal
from watchroom.platforms import Platform
from watchroom.rules.row_files import find_row_flaw


def export(journal: Journal, as_of: int, target: str, platform: Platform | None = None) -> int:
    """Lay the files out under ``target`` as they stood at row ``as_of`` of ``journal``. ``platform`` is the
    operating system (default: this machine's).

    Returns how many files agents and people had then: versions, histories, metadata and the configuration are
    not counted. Rows that break the rules of their zone are left out: `verify` names them. Raises OSError,
    `JournalError`.
    """
    # Documents need the engine, slow to load: whoever lays out only files does without.
    from watchroom.checkout.document_replica import ZONE, DocumentReplica

    folder = Folder(target, os.path.join(target, CONTROL, "tmp"), platform)
    count = 0
    try:
        for zone in ROOTS:
            for head in journal.heads(zone, as_of=as_of):
                if head.deleted or find_row_flaw(head) is not None:
                    continue
                for parts, data in files_of(journal, head):
                    folder.write(parts, data)
                    count += zone != "config" and parts == place(zone, head.path)
                if zone == "collab":
                    rows = journal.history("collab", head.path, limit=head.version)
                    folder.write(history_place(head.path), history_text([history_line(row) for row in rows]))
        for head in journal.heads(ZONE, as_of=as_of):
            if find_row_flaw(head) is not None:
                continue
            document = DocumentReplica(head.path, journal, until=head.version)
            folder.write(checkpoint_place(head.path), document.checkpoint())
            folder.write(document_place(head.path), document.render_values())
            count += 1
    finally:
        folder.close()
    return count
