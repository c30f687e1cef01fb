"""A text of many megabytes delays nobody: no reader, no other editor, no verification."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread

import pytest
from documents import create, edit, get
from watchroom import Json, Toolbox, Workspace
from watchroom.algorithms.crdt.checkpoint import encode_checkpoint

LINE = "a line of a long text, about as long as a line of text mostly is\n"


def bytes_read() -> int:
    """Return the number of bytes that this process has read."""
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what a process reads")
def test_a_large_text_is_read_once_and_not_for_every_edit(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    create(alice, body="rga")
    edit(alice, "insert", position=0, text=LINE * 40_000)
    get(bob, "body")
    for number in range(60):
        edit((alice, bob)[number % 2], "insert", position=number * 20_000, text=f"{number} ")
    wanted = get(alice, "body")
    workspace.close()
    (root / "realtime/.crdt_state/doc1.crdt.json").unlink()
    size = len(wanted)
    before = bytes_read()
    with Workspace.open(root) as again:
        assert get(again.tools("charlie"), "body") == wanted
        opened = bytes_read()
        assert again.verify() == []
        verified = bytes_read()
    assert opened - before < 8 * size
    assert verified - opened < 12 * size


def test_a_document_is_edited_while_its_large_file_is_made(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(alice, body="rga")
    get(bob, "body")
    was_edited, is_done = [], Event()

    def edited_meanwhile(state: Mapping[str, Json]) -> bytes:
        if len(str(state["values"])) > 1_000_000 and not is_done.is_set():
            editor = Thread(target=edit, args=(bob, "insert"), kwargs={"position": 0, "text": "meanwhile "})
            editor.start()
            editor.join(30)
            was_edited.append(not editor.is_alive())
            is_done.set()
        return encode_checkpoint(state)

    monkeypatch.setattr("watchroom.features.documents.checkpoints.encode_checkpoint", edited_meanwhile)
    edit(alice, "insert", position=0, text=LINE * 20_000)
    edit(alice, "insert", position=0, text="so that there is a large file to bring up ")
    assert is_done.wait(60)
    assert was_edited == [True]
    assert "meanwhile " in get(alice, "body")
    workspace.flush()
    assert workspace.verify() == []
