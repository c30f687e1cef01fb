"""What an approval of a call is bound to, and the conditions under which an approved call may write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from watchroom import validation
from watchroom.call_context import CALL, conditional_on
from watchroom.editing import parse_tool_name
from watchroom.errors import ApprovalOutdated
from watchroom.journal import Journal
from watchroom.model import Condition, Json
from watchroom.projections.proposals import Proposal, proposal
from watchroom.rules.buffers import ZONE as BUFFER
from watchroom.rules.requests import parse_arguments


def approval_checksum(journal: Journal, actor: str, tool: str, arguments: Mapping[str, Json]) -> str:
    """Return a checksum (SHA-256, hexadecimal) of a call by ``actor`` and of what it would write, as things
    stand in ``journal``: the ``tool``, the ``arguments``, the text, and the version that it would replace."""
    return _checksum(tool, arguments, _proposal(journal, actor, tool, arguments))


def approval_scope(
    journal: Journal, actor: str, tool: str, arguments: Mapping[str, Json], approved: str, repeated: str = ""
) -> AbstractContextManager[None]:
    """Return the context in which to run a call of ``tool`` by ``actor`` with ``arguments`` that was approved
    with the checksum ``approved``: within it, the call can write only what was approved, in place of what
    stood in ``journal`` then. ``repeated`` is its key where it may have been made before. Raises
    `ApprovalOutdated` if it would write something else by now, and `JournalError`."""
    change = _proposal(journal, actor, tool, arguments)
    holds = _checksum(tool, arguments, change) == approved
    if change is None:
        if not holds:
            raise ApprovalOutdated(tool=validation.escape_unstorable(tool, 100))
        return nullcontext()
    if repeated and _is_written(change, repeated):
        return nullcontext()
    if not holds and not change.is_stale:
        raise ApprovalOutdated(tool=tool)
    # A stale call is refused as a conflict, from which its caller can recover, or else not made.
    replaced = change.head.seq if change.head else 0
    conditions = [Condition(change.zone, change.path, replaced if holds else -1)]
    buffer, kind = parse_tool_name(tool) or ("", "")
    if kind == "flush":
        head = journal.head(BUFFER, f"{actor}/{buffer}")
        conditions.append(Condition(BUFFER, f"{actor}/{buffer}", head.seq if head else 0))
    return conditional_on(change.zone, change.path, tuple(conditions))


def _proposal(journal: Journal, actor: str, tool: str, arguments: Mapping[str, Json]) -> Proposal | None:
    # Arguments that cannot be stored are refused when the call is made; looking for them must not fail.
    return proposal(journal, actor, tool, parse_arguments(json.dumps(arguments)))


def _checksum(tool: str, arguments: Mapping[str, Json], change: Proposal | None) -> str:
    facts = [tool, arguments, change.checksum if change else None]
    return validation.sha256(json.dumps(facts, sort_keys=True).encode())


def _is_written(change: Proposal, call: str) -> bool:
    """Whether the call has written all that it would write, before it was cut off."""
    head, written = change.head, validation.sha256(change.text)
    return head is not None and head.detail.get(CALL) == call and head.sha256 == written
