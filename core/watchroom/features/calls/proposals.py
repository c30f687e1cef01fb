"""Computes the text that a tool call would write now, and binds an approval to exactly that text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from watchroom import validation
from watchroom.errors import ApprovalOutdated, InvalidName, JournalDamaged
from watchroom.features.buffers.rows import ZONE, parse_record
from watchroom.features.buffers.rows import ZONE as BUFFER
from watchroom.features.config.registry import Registry
from watchroom.features.requests.rows import parse_arguments
from watchroom.features.requests.rules import proposed_write
from watchroom.features.tasks.folder import normalize_task_path
from watchroom.kernel.call_context import CallContext, PathConditions
from watchroom.kernel.journal import Journal
from watchroom.model import CALL, UNCHECKED, Condition, Json, Row, Zone


class Proposal(NamedTuple):
    """A text that a call would write to ``path``.

    - ``head``: the current version, None for none.
    - ``before``: the current text, empty for none.
    - ``after``: the text after the call, empty if the call deletes.
    - ``expected``: the version that the call expects, None if it gives none.
    """

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
        """A checksum of the new text and the version that it replaces."""
        head = self.head
        replaced = [head.version, head.sha256] if head else None
        facts = [self.zone, self.path, replaced, validation.sha256(self.text)]
        return validation.sha256(json.dumps(facts).encode())

    @property
    def is_stale(self) -> bool:
        """Whether the call would be refused, because it expects a version that is not the current version."""
        current = (self.head.version or 0) if self.head else 0
        return self.expected is not None and self.expected not in (UNCHECKED, current)


def proposal(journal: Journal, agent: str, tool: str, arguments: Mapping[str, Json]) -> Proposal | None:
    """Return the text that a call of ``tool`` by ``agent`` would write now.

    None if it writes nothing or its ``arguments`` are invalid. Raise `JournalError`.
    """
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
        # The import loads the editor and pydantic, which most requests do not need.
        from watchroom.features.buffers.reads import read_text

        return _against_head(journal, record.zone, record.path, read_text(journal, row), record.base)
    except JournalDamaged:
        # Every call that needs a damaged buffer is refused.
        return None


def _against_head(journal: Journal, zone: Zone, path: str, content: str, expected: int | None) -> Proposal:
    head = journal.head(zone, path)
    before = (journal.content(head.seq) or "") if head else ""
    return Proposal(zone, path, head, before, content, expected)


def approval_checksum(journal: Journal, actor: str, tool: str, arguments: Mapping[str, Json]) -> str:
    """Return a checksum (SHA-256, hexadecimal) of a call by ``actor`` and of the text that it would write
    now.

    It covers the ``tool``, the ``arguments``, the new text, and the version that the text would replace.
    """
    return _checksum(tool, arguments, _proposal(journal, actor, tool, arguments))


def approval_conditions(
    journal: Journal, call: CallContext, arguments: Mapping[str, Json], approved: str, *, again: bool
) -> PathConditions | None:
    """Return the conditions under which ``call`` with ``arguments`` writes exactly the text that a person
    approved.

    - ``approved``: the checksum of the call as the person approved it (`approval_checksum`).
    - ``again``: whether the call may have run before.

    None if the call needs no conditions. Raise `ApprovalOutdated` if the call would now write another text,
    and `JournalError`.
    """
    actor, tool = call.actor, call.tool
    change = _proposal(journal, actor, tool, arguments)
    holds = _checksum(tool, arguments, change) == approved
    if change is None:
        if not holds:
            raise ApprovalOutdated(tool=validation.escape_unstorable(tool, 100))
        return None
    if again and _is_written(change, call.id):
        return None
    if not holds and not change.is_stale:
        raise ApprovalOutdated(tool=tool)
    # A stale call gets a condition that no version meets. So it is refused as a conflict, from which its
    # caller can recover.
    replaced = change.head.seq if change.head else 0
    conditions = [Condition(change.zone, change.path, replaced if holds else -1)]
    # The editor needs pydantic, which is slow to load.
    from watchroom.algorithms.editing import parse_tool_name

    buffer, kind = parse_tool_name(tool) or ("", "")
    if kind == "flush":
        head = journal.head(BUFFER, f"{actor}/{buffer}")
        conditions.append(Condition(BUFFER, f"{actor}/{buffer}", head.seq if head else 0))
    return PathConditions(change.zone, change.path, tuple(conditions))


def _proposal(journal: Journal, actor: str, tool: str, arguments: Mapping[str, Json]) -> Proposal | None:
    # Arguments that cannot be stored must not fail here. They are refused later, when the call runs.
    return proposal(journal, actor, tool, parse_arguments(json.dumps(arguments)))


def _checksum(tool: str, arguments: Mapping[str, Json], change: Proposal | None) -> str:
    facts = [tool, arguments, change.checksum if change else None]
    return validation.sha256(json.dumps(facts, sort_keys=True).encode())


def _is_written(change: Proposal, call: str) -> bool:
    """Whether ``call`` wrote ``change`` before it was interrupted."""
    head, written = change.head, validation.sha256(change.text)
    return head is not None and head.detail.get(CALL) == call and head.sha256 == written
