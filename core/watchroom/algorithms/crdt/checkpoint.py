"""The checkpoint file of a document: readable values in plain JSON, and mergeable states."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from watchroom.algorithms.crdt.document import Document
from watchroom.algorithms.crdt.state_checks import (
    check_fields,
    check_natural,
    check_replica_name,
    check_sequence,
    invalid_state,
)
from watchroom.errors import InvalidSchema, InvalidState
from watchroom.model import Json

HEADER_BYTES: Final = 1024
"""Bytes at the start of the file that contain the version."""
_VERSION: Final = re.compile(rb'^"version": (\d{1,15}),$', re.MULTILINE)
_CHECKSUM: Final = re.compile(rb'\{\n"checksum": "([0-9a-f]{64})",\n')
_KEYS: Final = frozenset(
    {"checksum", "document", "version", "updated", "by", "schema", "replicas", "values", "fields"}
)


class Checkpoint(NamedTuple):
    """A document at one version.

    - ``name``: the id of the document.
    - ``version``: the version of its state.
    - ``replicas``: the replicas that wrote to it in this workspace.
    - ``document``: the state.
    """

    name: str
    version: int
    replicas: frozenset[str]
    document: Document


def render_checkpoint(checkpoint: Checkpoint, updated: str, by: str) -> bytes:
    """Return the file of ``checkpoint`` in UTF-8: one JSON object with one line per part.

    ``updated``, ``by``: the time (ISO 8601) and the actor of the newest version.
    """
    return encode_checkpoint(capture_state(checkpoint, updated, by))


def capture_state(checkpoint: Checkpoint, updated: str, by: str) -> Mapping[str, Json]:
    """Return the state of ``checkpoint`` for `encode_checkpoint`. Later edits do not change it.

    ``updated``, ``by``: the time (ISO 8601) and the actor of the newest version.
    """
    return {
        "document": checkpoint.name,
        "version": checkpoint.version,
        "updated": updated,
        "by": by,
        "replicas": sorted(checkpoint.replicas),
        **checkpoint.document.state(),
    }


def encode_checkpoint(state: Mapping[str, Json]) -> bytes:
    """Return the bytes of the file for ``state``, a result of `capture_state`. The checksum comes first."""
    head = {key: state[key] for key in ("document", "version", "updated", "by", "schema", "replicas")}
    lines = [f'"{key}": {_to_json(value)}' for key, value in head.items()]
    lines.append('"values": ' + json.dumps(state["values"], ensure_ascii=False, indent=1))
    lines.append(f'"fields": {_to_json(state["fields"])}')
    body = (",\n".join(lines) + "\n}\n").encode()
    return b'{\n"checksum": "' + hashlib.sha256(body).hexdigest().encode() + b'",\n' + body


def _to_json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def parse_checkpoint(data: bytes) -> Checkpoint:
    """Parse ``data``, the bytes of a file. Raise `InvalidState` if `encode_checkpoint` did not write it."""
    if not is_valid_checkpoint(data):
        raise invalid_state("checkpoint")
    try:
        found = json.loads(data)
        parts = check_fields(found, "checkpoint", _KEYS, frozenset())
        name, version = parts["document"], check_natural(parts["version"], "checkpoint")
        if not isinstance(name, str):
            raise invalid_state("checkpoint")
        replicas = frozenset(map(check_replica_name, check_sequence(parts["replicas"], "checkpoint")))
        state = {key: parts[key] for key in ("schema", "values", "fields")}
        return Checkpoint(name, version, replicas, Document.from_state(state))
    except (ValueError, RecursionError, InvalidSchema, InvalidState) as error:
        raise invalid_state("checkpoint") from error


def is_valid_checkpoint(data: bytes) -> bool:
    """Return whether ``data`` begins like a checkpoint and its checksum matches."""
    start = _CHECKSUM.match(data)
    return start is not None and hashlib.sha256(data[start.end() :]).hexdigest().encode() == start[1]


def is_checkpoint_of(data: bytes, name: str) -> bool:
    """Return whether ``data`` is a valid checkpoint of the document ``name``.

    This is faster than `parse_checkpoint`.
    """
    return f'\n"document": {_to_json(name)},\n'.encode() in data[:HEADER_BYTES] and is_valid_checkpoint(data)


def parse_version(start: bytes) -> int:
    """Return the version in ``start``, the first `HEADER_BYTES` of a file; 0 if it has none."""
    found = _VERSION.search(start)
    return int(found[1]) if found else 0
