"""What a tool call that waits for approval would change, as things stand: the text before and after."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from watchroom import validation
from watchroom.errors import InvalidName, JournalDamaged
from watchroom.journal import Journal
from watchroom.model import UNCHECKED, Json, Row, Zone
from watchroom.registry import Registry
from watchroom.rules.buffers import ZONE, parse_record
from watchroom.rules.proposals import proposed_write
from watchroom.sandbox.task_folder import normalize_task_path


class Proposal(NamedTuple):
    """A text that a call would put at ``path``. ``head`` is the version that stands there, None if none
    does. ``before`` is empty where none does, ``after`` where the call deletes. ``expected`` is the version
    that the call starts from, None if it did not say."""

    zone: Zone
    path: str
    head: Row | None
    before: str
    after: str
    expected: int | None = None

    @property
    def text(self) -> bytes:
        """The text after the call, in UTF-8."""
        return self.after.encode("utf-8", "surrogatepass")

    @property
    def checksum(self) -> str:
        """The same for two calls only if they would put the same text in place of the same version."""
        head = self.head
        replaced = [head.version, head.sha256] if head else None
        facts = [self.zone, self.path, replaced, validation.sha256(self.text)]
        return validation.sha256(json.dumps(facts).encode())

    @property
    def is_stale(self) -> bool:
        """Whether the call would be refused: it starts from another version than the current one."""
        current = (self.head.version or 0) if self.head else 0
        return self.expected is not None and self.expected not in (UNCHECKED, current)


def proposal(journal: Journal, agent: str, tool: str, arguments: Mapping[str, Json]) -> Proposal | None:
    """What a call of ``tool`` by ``agent`` would write as ``journal`` stands, None where it writes nothing or
    its ``arguments`` are not understood. Raises `JournalError`."""
    write = proposed_write(agent, tool, arguments)
    if write is None:
        return None
    if write.zone == "buffer":
        return _flushed(journal, write.path)
    zone, path, content = write.zone, write.path, write.content
    if zone == "file":
        known = Registry(journal).current().agents.get(agent)
        try:
            path = f"{known.task}/{normalize_task_path(path)}" if known is not None and known.task else ""
        except InvalidName:
            return None
        if not path:
            return None
    if write.restored is not None:
        row = journal.version(zone, path, write.restored)
        if row is None:
            return None
        try:
            content = journal.content(row.seq) or ""
        except JournalDamaged:
            return None
    return _against_head(journal, zone, path, content, write.expected)


def _flushed(journal: Journal, path: str) -> Proposal | None:
    row = journal.head(ZONE, path)
    try:
        record = parse_record(row) if row else None
        if row is None or record is None:
            return None
        # It loads the editor and pydantic with it, which most requests do without.
        from watchroom.zones.buffers.buffer_text import read_text

        return _against_head(journal, record.zone, record.path, read_text(journal, row), record.base)
    except JournalDamaged:
        # The flush is refused, as every call that needs the buffer.
        return None


def _against_head(journal: Journal, zone: Zone, path: str, content: str, expected: int | None) -> Proposal:
    head = journal.head(zone, path)
    before = (journal.content(head.seq) or "") if head else ""
    return Proposal(zone, path, head, before, content, expected)
