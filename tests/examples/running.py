"""Run the example teams, against a scripted model."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from examples.scripted_server import serve_script
from watchroom import Workspace

EXAMPLES: Final = {each.name: each for each in sorted((Path(__file__).parents[2] / "examples").glob("*.py"))}
_PATIENCE: Final = 120


def run_example(name: str, python: str, folder: Path) -> None:
    """Run an example in ``folder`` with the interpreter ``python``. Check what it prints, and its journal."""
    with serve_script(agents=2) as server:
        variables = {"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": "none", "MODEL": "scripted"}
        done = subprocess.run(
            [python, str(EXAMPLES[name])],
            cwd=folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    *finished, refused, title, first, second = done.stdout.split("\n")[:6]
    assert sorted(finished) == ["alice: done", "bob: done"]
    assert title == "# Harbour study"
    assert sorted((first, second)) == ["- the budget", "- the schedule"], "neither line was lost"
    with Workspace.open(folder / "team", create=False) as workspace:
        rows = [row for row in workspace.journal.rows(limit=1000) if row.tool == "collab_write"]
    assert [(row.version, row.outcome) for row in rows] == [
        (1, "ok"),
        (2, "ok"),
        (None, "conflict"),
        (3, "ok"),
    ]
    assert rows[2].actor == rows[3].actor != rows[1].actor
    assert refused == f"refused once: {rows[2].actor}"
