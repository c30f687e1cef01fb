"""Real editing traces, each edit made as a model would make it: by the text that it stands in. The final text
is the recorded one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from watchroom.editing import TextEditor, TextEditStatus

TRACES = Path(__file__).parents[1] / "traces"
_FIRST_CONTEXT = 12


def recorded(name: str) -> dict[str, Any]:
    with gzip.open(TRACES / f"{name}.json.gz") as file:
        trace: dict[str, Any] = json.load(file)
    return trace


def edit(editor: TextEditor, position: int, deleted: int, inserted: str) -> None:
    """One edit, by as much of the text around it as tells the place from others; where even much does not,
    by a choice among those that are offered."""
    text = editor.snapshot()
    if not text:
        assert editor.append(inserted).status is TextEditStatus.SUCCESS
        return
    around = _FIRST_CONTEXT
    while True:
        start, end = max(0, position - around), min(len(text), position + deleted + around)
        old = text[start:end]
        new = text[start:position] + inserted + text[position + deleted : end]
        if old == new:
            return
        response = editor.replace(old, new)
        if response.status is TextEditStatus.SUCCESS:
            return
        assert response.status is TextEditStatus.MULTI_MATCH
        starts = editor.selections.starts if editor.selections else ()
        if start in starts:
            chosen = editor.replace_selection(starts.index(start) + 1)
            assert chosen.status is TextEditStatus.SUCCESS
            return
        around *= 4


@pytest.mark.parametrize("name", ["automerge-paper", "sveltecomponent"])
def test_a_text_is_written_by_replacing(name: str) -> None:
    trace = recorded(name)
    editor = TextEditor(trace.get("startContent", ""))
    for transaction in trace["txns"]:
        for position, deleted, inserted in transaction["patches"]:
            edit(editor, position, deleted, inserted)
    assert editor.snapshot() == trace["endContent"]
