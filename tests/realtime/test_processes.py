"""Several processes edit one text concurrently: no edit is lost, and all end with the same text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from calls import ok
from effort import rounds
from marked import DOC_ID, FIELD, SCHEMA, Edit, disordered, remains
from watchroom import Workspace
from watchroom.algorithms.crdt import Document

PROCESSES = 4
EDITS_EACH = int(os.environ.get("WATCHROOM_EDITS", rounds(150, 400)))
"""Edits of each process. The 3,000 of the benchmark take half a minute."""
SEED = int(os.environ.get("WATCHROOM_SEED", "7"))
TESTS = Path(__file__).parents[1]


def test_processes_edit_one_text_without_losing_a_character(root: Path) -> None:
    print(f"WATCHROOM_SEED={SEED}")
    agents = [f"agent{n}" for n in range(PROCESSES)]
    with Workspace.open(root, agents=agents) as workspace:
        ok(workspace.tools(agents[0]), "realtime_create_document", doc_id=DOC_ID, schema=SCHEMA)
    command = [sys.executable, "-m", "realtime.edit_many", str(root)]
    processes = [
        subprocess.Popen(
            [*command, agent, str(number), str(SEED), str(EDITS_EACH)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=TESTS,
        )
        for number, agent in enumerate(agents)
    ]
    try:
        assert _lines(processes) == ["ready\n"] * PROCESSES
        _go(processes)
        edits = [Edit(*each) for line in _lines(processes) for each in json.loads(line)]
        _go(processes)
        texts = [json.loads(line) for line in _lines(processes)]
        for process in processes:
            process.communicate()
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert [process.returncode for process in processes] == [0] * PROCESSES
    (text,) = set(texts)
    # An edit whose text others had already deleted makes no version, and returns the newest version.
    newest = max(edit.version for edit in edits)
    assert {edit.version for edit in edits} == set(range(2, newest + 1))
    told = Counter(edit.version for edit in edits if edit.inserted)
    assert set(told.values()) == {1}
    assert len(edits) == PROCESSES * EDITS_EACH
    assert sorted(text) == sorted(remains(edits))
    assert disordered(text, edits) == []
    kept: dict[str, Any] = json.loads((root / f"realtime/.crdt_state/{DOC_ID}.crdt.json").read_text())
    assert (kept["version"], kept["values"]) == (newest, {FIELD: text})
    with Workspace.open(root) as workspace:
        fresh = ok(workspace.tools(agents[0]), "realtime_get_field", doc_id=DOC_ID, field_name=FIELD)
        assert fresh["value"] == text
        assert _folded(workspace) == text
        assert workspace.verify() == []


def _lines(processes: list[subprocess.Popen[str]]) -> list[str]:
    return [process.stdout.readline() for process in processes if process.stdout]


def _go(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()


def _folded(workspace: Workspace) -> str:
    """Return the text that follows from the rows of the journal, merged in random order."""
    deltas = [
        json.loads(content or "")
        for _, content in workspace.journal.versions("realtime", DOC_ID, after=1, limit=1_000_000)
    ]
    Random(SEED).shuffle(deltas)
    replica = Document({FIELD: "rga"})
    for delta in deltas:
        replica.merge(delta)
    return replica.text(FIELD).value
