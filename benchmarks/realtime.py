"""The edits of a recorded paper, in Watchroom's text and in bare Loro."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from loro import ExportMode, LoroDoc
from watchroom import Json
from watchroom.algorithms.crdt import Document, FieldType
from watchroom.algorithms.crdt.checkpoint import Checkpoint, parse_checkpoint, render_checkpoint

TRACE: Final = Path(__file__).parent.parent / "tests" / "traces" / "automerge-paper.json.gz"
SCHEMA: Final[Mapping[str, FieldType]] = {"body": "rga"}
REPLICA: Final = "author#a1"
BATCH: Final = 1000
"""Edits per piece of work."""


class Edit(NamedTuple):
    position: int
    deleted: int
    inserted: str


T = TypeVar("T")


def read_trace() -> list[Edit]:
    trace = json.loads(gzip.decompress(TRACE.read_bytes()))
    return [Edit(*patch) for transaction in trace["txns"] for patch in transaction["patches"]]


class WatchroomText:
    """A document with one text."""

    def __init__(self, checkpoint: bytes | None = None) -> None:
        self._document = Document(SCHEMA) if checkpoint is None else parse_checkpoint(checkpoint).document
        self.deltas: list[object] = []

    def edit(self, edit: Edit) -> None:
        position, deleted, inserted = edit
        text = self._document.text("body")
        self.deltas.append(text.replace(position, position + deleted, inserted, REPLICA).delta)

    def tail(self, line: str) -> None:
        self._document.merge(json.loads(line))

    def text(self) -> str:
        return self._document.text("body").value

    def values(self) -> Mapping[str, Json]:
        return self._document.values()

    def checkpoint(self) -> bytes:
        return render_checkpoint(
            Checkpoint("paper", 1, frozenset({REPLICA}), self._document), "2026-01-01T00:00Z", "a"
        )


class BareText:
    """A Loro document that returns its updates as they are made."""

    def __init__(self, snapshot: bytes | None = None) -> None:
        self._document = LoroDoc()  # type: ignore[no-untyped-call]
        if snapshot is not None:
            self._document.import_(snapshot)
        self._text = self._document.get_text("text")
        self.updates: list[bytes] = []
        self._subscription = self._document.subscribe_local_update(self._keep)

    def _keep(self, update: bytes) -> bool:
        self.updates.append(update)
        return True

    def edit(self, edit: Edit) -> None:
        position, deleted, inserted = edit
        if deleted:
            self._text.delete(position, deleted)
        if inserted:
            self._text.insert(position, inserted)
        self._document.commit()

    def tail(self, update: bytes) -> None:
        self._document.import_(update)

    def text(self) -> str:
        return self._text.to_string()

    def checkpoint(self) -> bytes:
        return self._document.export(ExportMode.Snapshot())


def apply_batch(act: Callable[[T], None], pieces: Sequence[T], batch: int) -> None:
    for piece in pieces[batch * BATCH : (batch + 1) * BATCH]:
        act(piece)
