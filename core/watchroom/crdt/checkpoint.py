"""The readable file of a document: every field's value in plain JSON, beside the states that merge."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from watchroom.crdt import checks
from watchroom.crdt.document import Document
from watchroom.errors import InvalidSchema, InvalidState
from watchroom.model import Json

HEADER_BYTES: Final = 1024
"""The version stands within so many bytes from the start."""
_VERSION: Final = re.compile(rb'^"version": (\d{1,15}),$', re.MULTILINE)
_CHECKSUM: Final = re.compile(rb'\{\n"checksum": "([0-9a-f]{64})",\n')
_KEYS: Final = frozenset(
    {"checksum", "document", "version", "updated", "by", "schema", "replicas", "values", "fields"}
)


class Checkpoint(NamedTuple):
    """A document as its version ``version`` left it; ``replicas``: those that wrote here, not elsewhere."""

    name: str
    version: int
    replicas: frozenset[str]
    document: Document


def render(checkpoint: Checkpoint, updated: str, by: str) -> bytes:
    """The checkpoint as a file: one JSON object, a line for each of its parts. ``updated`` (ISO 8601) and
    ``by`` tell of its newest version."""
    return encode(capture(checkpoint, updated, by))


def capture(checkpoint: Checkpoint, updated: str, by: str) -> Mapping[str, Json]:
    """What `encode` makes a file of: it holds nothing of the document that a later edit changes."""
    return {
        "document": checkpoint.name,
        "version": checkpoint.version,
        "updated": updated,
        "by": by,
        "replicas": sorted(checkpoint.replicas),
        **checkpoint.document.state(),
    }


def encode(state: Mapping[str, Json]) -> bytes:
    """The file of what was captured."""
    head = {key: state[key] for key in ("document", "version", "updated", "by", "schema", "replicas")}
    lines = [f'"{key}": {_line(value)}' for key, value in head.items()]
    lines.append('"values": ' + json.dumps(state["values"], ensure_ascii=False, indent=1))
    lines.append(f'"fields": {_line(state["fields"])}')
    body = (",\n".join(lines) + "\n}\n").encode()
    return b'{\n"checksum": "' + hashlib.sha256(body).hexdigest().encode() + b'",\n' + body


def _line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def parse(data: bytes) -> Checkpoint:
    """The checkpoint in a file of ours. Raises `InvalidState` for any other bytes."""
    if not is_whole(data):
        raise checks.refuse("checkpoint")
    try:
        found = json.loads(data)
        parts = checks.fields(found, "checkpoint", _KEYS, frozenset())
        name, version = parts["document"], checks.natural(parts["version"], "checkpoint")
        if not isinstance(name, str):
            raise checks.refuse("checkpoint")
        replicas = frozenset(map(checks.replica_name, checks.sequence(parts["replicas"], "checkpoint")))
        state = {key: parts[key] for key in ("schema", "values", "fields")}
        return Checkpoint(name, version, replicas, Document.from_state(state))
    except (ValueError, RecursionError, InvalidSchema, InvalidState) as error:
        raise checks.refuse("checkpoint") from error


def is_whole(data: bytes) -> bool:
    """Whether a file begins as one of ours and its checksum matches."""
    start = _CHECKSUM.match(data)
    return start is not None and hashlib.sha256(data[start.end() :]).hexdigest().encode() == start[1]


def is_of(data: bytes, name: str) -> bool:
    """Whether a file is a whole checkpoint of the document ``name``: quicker than to `parse` it."""
    return f'\n"document": {_line(name)},\n'.encode() in data[:HEADER_BYTES] and is_whole(data)


def version_of(start: bytes) -> int:
    """The version that a file says it holds, from its first `HEADER_BYTES`; 0 where it does not say."""
    found = _VERSION.search(start)
    return int(found[1]) if found else 0
