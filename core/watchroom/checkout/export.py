"""The workspace as it stood at an earlier row, laid out elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable

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
from watchroom.model import Row
from watchroom.platforms import Platform
from watchroom.rules.row_files import find_row_flaw


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
    # Documents need the engine, slow to load: whoever lays out only files does without.
    from watchroom.checkout.document_replica import ZONE, DocumentReplica, unreadable_version

    folder = Folder(target, os.path.join(target, CONTROL, "tmp"), platform)
    count = 0
    try:
        for zone in ROOTS:
            for head in journal.heads(zone, as_of=as_of):
                if head.deleted:
                    continue
                if find_row_flaw(head) is not None:
                    on_left_out(head)
                    continue
                is_there = False
                for parts, data in files_of(journal, head):
                    folder.write(parts, data)
                    is_there = is_there or parts == place(zone, head.path)
                count += is_there and zone != "config"
                if not is_there:
                    on_left_out(head)
                if zone == "collab":
                    rows = journal.history("collab", head.path, limit=head.version)
                    folder.write(history_place(head.path), history_text([history_line(row) for row in rows]))
        for head in journal.heads(ZONE, as_of=as_of):
            try:
                if find_row_flaw(head) is not None:
                    raise unreadable_version(head)
                document = DocumentReplica(head.path, journal, until=head.version)
            except JournalDamaged:
                on_left_out(head)
                continue
            folder.write(checkpoint_place(head.path), document.checkpoint())
            folder.write(document_place(head.path), document.render_values())
            count += 1
    finally:
        folder.close()
    return count
