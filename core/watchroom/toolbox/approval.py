"""What an approval of a call is bound to, and the guard that lets an approved call write nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping

from watchroom import validation
from watchroom.call_context import CALL, Guard
from watchroom.editing import parse_tool_name
from watchroom.errors import ApprovalOutdated
from watchroom.journal import Journal
from watchroom.model import UNCHECKED, Draft, Json, Write
from watchroom.projections.proposals import Proposal, proposal
from watchroom.rules.requests import parse_arguments
from watchroom.zones.buffers.record import ZONE as BUFFER


def approval_checksum(journal: Journal, actor: str, tool: str, arguments: Mapping[str, Json]) -> str:
    """A checksum of a call and of what it would write, as things stand: the tool, the arguments, the text
    that it would put somewhere, and the version that it would replace. Hexadecimal."""
    return _checksum(tool, arguments, _proposal(journal, actor, tool, arguments))


def approval_guard(
    journal: Journal, actor: str, tool: str, arguments: Mapping[str, Json], approved: str, repeated: str = ""
) -> Guard | None:
    """The guard of a call that was approved with the checksum ``approved``; ``repeated`` is its key where it
    may have been made before. Raises `ApprovalOutdated` where it would write something else by now."""
    would = _proposal(journal, actor, tool, arguments)
    holds = _checksum(tool, arguments, would) == approved
    if would is None:
        if not holds:
            raise ApprovalOutdated(tool=validation.escape_unstorable(tool, 100))
        return None
    if repeated and _wrote(would, repeated):
        return None
    buffer = _buffer_version(journal, actor, tool)
    replaced = would.head.seq if would.head else 0

    def guard(draft: Draft) -> None:
        if not isinstance(draft, Write) or (draft.zone, draft.path) != (would.zone, would.path):
            return
        head = journal.head(would.zone, would.path)
        if draft.expected not in (UNCHECKED, (head.version or 0) if head else 0):
            # It is refused as a conflict, from which the caller can recover.
            return
        is_same = (head.seq if head else 0) == replaced and _buffer_version(journal, actor, tool) == buffer
        if not (holds and is_same):
            raise ApprovalOutdated(tool=tool)

    if not holds and not would.is_stale:
        raise ApprovalOutdated(tool=tool)
    return guard


def _proposal(journal: Journal, actor: str, tool: str, arguments: Mapping[str, Json]) -> Proposal | None:
    # Arguments that cannot be stored are refused when the call is made; looking for them must not fail.
    return proposal(journal, actor, tool, parse_arguments(json.dumps(arguments)))


def _checksum(tool: str, arguments: Mapping[str, Json], would: Proposal | None) -> str:
    facts = [tool, arguments, would.checksum if would else None]
    return validation.sha256(json.dumps(facts, sort_keys=True).encode())


def _wrote(would: Proposal, call: str) -> bool:
    """Whether the call has written all that it would write, before it was cut off."""
    head = would.head
    return head is not None and head.detail.get(CALL) == call and head.sha256 == validation.sha256(would.text)


def _buffer_version(journal: Journal, actor: str, tool: str) -> int:
    """The row of the buffer that a flush writes; 0 of any other tool."""
    buffer, which = parse_tool_name(tool) or ("", "")
    head = journal.head(BUFFER, f"{actor}/{buffer}") if which == "flush" else None
    return head.seq if head else 0
