"""Two people resolve one conflict at once, each in a process: one wins, the other is told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from processes import resolve_once
from projections.folding import PLAN, folded, shared_path, stale_write, write
from watchroom import Workspace


@pytest.mark.parametrize("attempt", range(3))
def test_of_two_people_who_resolve_at_once_exactly_one_wins(root: Path, attempt: int) -> None:
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        write(workspace.tools("alice"), "one", 0)
        conflict = stale_write(workspace.tools("bob"), 0)
    people = ("dana", "erin")
    processes = [
        subprocess.Popen(
            [sys.executable, resolve_once.__file__, str(root), person, PLAN, "1", str(conflict)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for person in people
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        results = [json.loads(process.communicate()[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    (winner,) = (person for person, result in zip(people, results, strict=True) if result["success"])
    (told,) = (result for result in results if not result["success"])
    assert (told["error"], told["current_version"]) == ("version_conflict", 2)
    assert (told["current_author"], told["current_message"]) == (f"human:{winner}", f"decided by {winner}")
    assert "-one" in told["missed_changes"]
    assert f"+as {winner} says" in told["missed_changes"]
    with Workspace.open(root) as workspace:
        assert shared_path(root).read_text(encoding="utf-8") == f"as {winner} says"
        assert folded(workspace.journal).conflicts == ()
        kept = workspace.journal.content(told["conflict_id"])
        assert kept == told["your_content"] != f"as {winner} says"
        assert workspace.verify() == []
