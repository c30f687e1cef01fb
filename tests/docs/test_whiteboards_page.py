"""The page on whiteboards, tried as it is written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/whiteboards.md").read_text(encoding="utf-8")
TEAM, MEANING = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def printed(example: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_team_does_what_the_page_says(tmp_path: Path) -> None:
    out = printed(TEAM, tmp_path)
    assert "## Milestones" in out
    assert out.splitlines()[-1].startswith("Not allowed on the whiteboard 'global'")
    board = (tmp_path / "team/global-whiteboard.md").read_text(encoding="utf-8")
    assert "- [x] Outline agreed" in board
    assert "**Author**: anna" in board
    assert "60%" in (tmp_path / "team/whiteboards/bottom-layer-ada.md").read_text(encoding="utf-8")


def test_what_a_board_says_is_what_the_page_says(tmp_path: Path) -> None:
    said = re.findall(r"# (\[.*\])$", MEANING, flags=re.MULTILINE)
    assert printed(MEANING, tmp_path).splitlines() == said


@pytest.mark.parametrize("board", ["global", "top-layer", "mid-layer-ROLE", "bottom-layer-AGENT"])
def test_every_kind_of_board_stands_in_the_table(board: str) -> None:
    assert re.search(rf"^\| `{board}` \|", PAGE, flags=re.MULTILINE)
