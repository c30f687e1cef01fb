"""Histories with a good checksum and nonsense inside, as remote states: they break Loro in every way there is.

``forged_histories.json`` has one update for each way, base64; all were found by changing single bytes of a
good one and signing it anew.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from calls import ok, refused
from documents import create, edit, get
from loro import ExportMode, LoroDoc, VersionVector
from watchroom import Toolbox, Workspace

FORGED: dict[str, str] = json.loads((Path(__file__).parent / "forged_histories.json").read_text())
GOOD = FORGED.pop("good")
WRITERS = [f"zoe#{peer:x}" for peer in (0xA1, 0xB2)]


def state(blob: str) -> dict[str, Any]:
    packed = base64.b64encode(zlib.compress(base64.b64decode(blob))).decode()
    return {"schema": {"body": "rga"}, "fields": {"body": {"history": packed, "by": WRITERS}}}


def test_the_good_one_is_merged(alice: Toolbox) -> None:
    create(alice, body="rga")
    ok(alice, "realtime_merge_state", doc_id="doc1", state=state(GOOD))
    assert get(alice, "body")


@pytest.mark.parametrize("way", FORGED)
def test_a_forged_history_breaks_nothing(
    workspace: Workspace, alice: Toolbox, way: str, capfd: pytest.CaptureFixture[str]
) -> None:
    create(alice, body="rga")
    edit(alice, "insert", position=0, text="ours")
    result = refused(alice, "realtime_merge_state", doc_id="doc1", state=state(FORGED[way]))
    assert result["error"] == "invalid_state"
    assert get(alice, "body") == "ours"
    edit(alice, "insert", position=4, text=" still")
    assert get(workspace.tools("bob"), "body") == "ours still"
    assert workspace.verify() == []
    assert capfd.readouterr() == ("", ""), "what the engine prints would stand across the dashboard"


def test_a_history_that_takes_too_long_to_merge_is_refused(
    workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(alice, body="rga")
    one, other = LoroDoc(), LoroDoc()  # type: ignore[no-untyped-call]
    one.peer_id, other.peer_id = 0xA1, 0xB2
    # From left to right, and beside what it does not build on: Loro needs the square of its length.
    one.get_text("text").insert(0, "endless " * 200_000)
    other.get_text("text").insert(0, "beside")
    other.commit()
    other.detach()
    other.import_(one.export(ExportMode.Updates(other.oplog_vv)))
    first = VersionVector()  # type: ignore[no-untyped-call]
    history = base64.b64encode(other.export(ExportMode.Updates(first))).decode()
    monkeypatch.setattr("watchroom.features.documents.replica_check._CPU_SECONDS", 1)
    result = refused(alice, "realtime_merge_state", doc_id="doc1", state=state(history))
    assert "merging it takes too long" in result["message"]
    assert get(alice, "body") == ""
