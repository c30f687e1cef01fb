"""Loro's snapshots are no updates: one without its history would part the replicas for good."""

from __future__ import annotations

import base64
import zlib

import pytest
from loro import ExportMode, LoroDoc
from watchroom.algorithms.crdt import Text
from watchroom.errors import InvalidState

ALICE = "alice#a1"


def blobs() -> dict[str, bytes]:
    document = LoroDoc()  # type: ignore[no-untyped-call]
    document.peer_id = 0xA1
    document.get_text("text").insert(0, "theirs")
    document.commit()
    moment = document.oplog_frontiers
    modes = {
        "snapshot": ExportMode.Snapshot(),
        "shallow": ExportMode.ShallowSnapshot(moment),
        "state only": ExportMode.StateOnly(moment),
    }
    return {name: document.export(mode) for name, mode in modes.items()}


@pytest.mark.parametrize("kind", blobs())
def test_a_snapshot_is_refused_as_a_delta_and_as_a_history(kind: str) -> None:
    blob = blobs()[kind]
    encoded = base64.b64encode(blob).decode()
    packed = base64.b64encode(zlib.compress(blob)).decode()
    text = Text()
    text.insert(0, "ours", "bob#b2")
    before = text.state()
    for state in (
        {"ops": encoded, "by": ALICE},
        {"history": packed, "by": [ALICE]},
        {**before, "waiting": encoded},
    ):
        with pytest.raises(InvalidState):
            text.merge(state)
        with pytest.raises(InvalidState):
            Text().merge(state)
    assert text.state() == before
