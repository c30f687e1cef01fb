"""A process that is killed while it edits a document: no acknowledged edit is lost, none is half done."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from calls import ok
from crash.document_writer import AGENTS, CHARACTERS, DEAD, Told
from effort import rounds
from marked import DOC_ID, FIELD, SCHEMA, Edit, Editor, disordered, remains
from watchroom import Workspace

KILLS = rounds(8, 20)
MOST_BEFORE_DEATH = 60
SEED = int(os.environ.get("WATCHROOM_SEED", "5"))
TESTS = Path(__file__).parents[1]
BEFORE = len(AGENTS)
"""The number of who wrote to the document before all others."""


class Writers:
    """Starts processes, one at a time, and kills them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin
        assert process.stdout
        self._orders: IO[str] = process.stdin
        self._lines: IO[str] = process.stdout

    def run_and_kill(self, seed: int, after: int) -> list[Told]:
        """Kill a new process when it has told so much; returns all that it told."""
        self._orders.write(f"{seed}\n")
        self._orders.flush()
        child = int(self._lines.readline())
        told: list[Told] = [json.loads(self._lines.readline()) for _ in range(after)]
        os.kill(child, signal.SIGKILL)
        *whole, _torn = iter(self._lines.readline, f"{DEAD}\n")
        return told + [json.loads(line) for line in whole]


@contextmanager
def writers(root: Path) -> Iterator[Writers]:
    command = [sys.executable, "-m", "crash.document_writer", str(root)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=TESTS)
    try:
        yield Writers(process)
    finally:
        process.communicate()


@pytest.mark.parametrize("start", [0, 20_000], ids=["checkpoint with each edit", "checkpoint behind"])
def test_killed_while_it_edits_a_document_nothing_acknowledged_is_lost(root: Path, start: int) -> None:
    print(f"WATCHROOM_SEED={SEED}")
    chance = random.Random(SEED)
    edits: list[Edit] = []
    with Workspace.open(root, agents=[*AGENTS, "charlie"]) as workspace:
        charlie = workspace.tools("charlie")
        ok(charlie, "realtime_create_document", doc_id=DOC_ID, schema=SCHEMA)
        editor = Editor(charlie, BEFORE, SEED)
        while len(remains(edits)) < start:
            edits.append(editor.insert(500))
    with writers(root) as nursery:
        for seed in range(KILLS):
            told = nursery.run_and_kill(seed, after=chance.randint(0, MOST_BEFORE_DEATH))
            with Workspace.open(root) as workspace:
                edits += committed(workspace, edits, told)
                text = ok(workspace.tools("charlie"), "realtime_get_field", doc_id=DOC_ID, field_name=FIELD)
                assert sorted(text["value"]) == sorted(remains(edits))
                assert disordered(text["value"], edits) == []
                assert text["version"] == checkpoint(root)["version"] == len(edits) + 1
                assert checkpoint(root)["values"] == {FIELD: text["value"]}
                assert workspace.verify() == []
    assert len(edits) > KILLS
    with Workspace.open(root) as workspace:
        editor = Editor(workspace.tools("alice"), 0, SEED, first=KILLS * CHARACTERS)
        edits.append(editor.insert(10))
        assert sorted(editor.read()) == sorted(remains(edits))


def committed(workspace: Workspace, before: list[Edit], told: list[Told]) -> list[Edit]:
    """The edits that became versions after those of ``before``: all that were acknowledged, and of each agent
    at most the one that it was at.

    Where others had deleted all that an edit was to delete, there is no version of it: it is told the newest."""
    acknowledged = [each for each in told if each["version"]]
    under_way = {each["actor"]: each for each in told}
    edits = []
    for row, _ in workspace.journal.versions("realtime", DOC_ID, after=len(before) + 1, limit=1_000_000):
        version = row.version or 0
        size = (row.detail["removed"], row.detail["added"])
        own = [each for each in acknowledged if (each["actor"], each["version"]) == (row.actor, version)]
        each = next((each for each in own if size_of(each) == size), None)
        if each:
            acknowledged.remove(each)
        else:
            each = under_way.pop(row.actor)
            assert (each["version"], size_of(each)) == (0, size)
        edits.append(Edit(version, each["deleted"], each["inserted"]))
    for each in acknowledged:
        gone = {
            mark for edit in [*before, *edits] if edit.version <= each["version"] for mark in edit.deleted
        }
        assert each["inserted"] == ""
        assert gone.issuperset(each["deleted"])
    return edits


def size_of(each: Told) -> tuple[int, int]:
    """How many characters an edit deletes and inserts."""
    return len(each["deleted"]), len(each["inserted"])


def checkpoint(root: Path) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((root / f"realtime/.crdt_state/{DOC_ID}.crdt.json").read_text())
    return kept
