"""Drawing the same Markdown with Textual's widget, rich and ours, each in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Final

from boards import board
from measure import scratch

from peers.comparison import Contender, Group, Row, RunContext
from peers.peer import Library

_TEXTUAL: Final = Library("Textual's Markdown", "textual", "`pip install textual`")
_RICH: Final = Library("rich's Markdown", "rich", "`pip install rich`")
_RENDERERS: Final = [sys.executable, "-m", "peers.renderers"]
_SIZES: Final = {"10 KB": (10_000, 5), "50 KB": (50_000, 3)}
"""Bytes and rounds, by name."""


def _measure(context: RunContext) -> list[Row]:
    rows: list[Row] = []
    with scratch() as folder:
        surroundings = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[1]),
            # Installed programs have bytecode, so the comparison would be unfair without it.
            "PYTHONPYCACHEPREFIX": os.path.join(folder, "bytecode"),
            "PYTHONDONTWRITEBYTECODE": "",
        }

        def render(which: str, path: str, n: int) -> float:
            done = subprocess.run(
                [*_RENDERERS, which, path], capture_output=True, text=True, check=True, env=surroundings
            )
            return float(json.loads(done.stdout))

        for name, (size, rounds) in _SIZES.items():
            path = os.path.join(folder, f"{size}.md")
            Path(path).write_bytes(board(size))
            rows += context.compare(
                f"the first screen of {name}",
                partial(render, "ours", path),
                [
                    Contender(
                        _TEXTUAL,
                        partial(render, "textual", path),
                        remark="a widget for each block, all of them before the first screen",
                    )
                ],
                rounds=rounds,
            )
            rows += context.compare(
                f"all lines of {name}",
                partial(render, "ours whole", path),
                [Contender(_RICH, partial(render, "rich", path), remark="has no first screen: draws all")],
                rounds=rounds,
                warm=1,
            )
    return rows


GROUP: Final = Group(
    "markdown",
    "Markdown",
    "A whiteboard as agents write them (headings, lists, tables, code, Chinese), on 120×40 cells, from "
    "having the text to the screen; each time in a fresh process, whose start does not count.",
    (_TEXTUAL, _RICH),
    _measure,
)
