"""The global board in tests: its file, its lock, and a way to write it whole."""

from __future__ import annotations

from pathlib import Path

from calls import ok
from watchroom import Toolbox

GLOBAL = "global"


def lock_file(root: Path) -> Path:
    return root / "whiteboards/.locks/global-whiteboard.lock"


def text_of(root: Path) -> str:
    return (root / "global-whiteboard.md").read_text(encoding="utf-8")


def write(tools: Toolbox, text: str) -> None:
    ok(tools, "whiteboard_write", board=GLOBAL, content=text, message="m", expected_version=-1)
