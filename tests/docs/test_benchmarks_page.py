"""docs/benchmarks.md names every benchmark, and says why wherever Watchroom is behind."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/benchmarks.md").read_text("utf-8")
NAMES = re.findall(r'^    "(\w+)": ', (ROOT / "benchmarks/run.py").read_text("utf-8"), re.MULTILINE)


def test_it_names_every_benchmark() -> None:
    others = PAGE.split("## What else can be measured\n")[1]
    assert re.findall(r"^\| `(\w+)` \|", others, re.MULTILINE) == NAMES


def test_every_benchmark_backs_a_claim_elsewhere() -> None:
    """A benchmark that no page rests on is deleted."""
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    texts = "".join(page.read_text("utf-8") for page in pages if page.name != "benchmarks.md")
    commands = re.findall(r"python -m benchmarks ([\w ]+)", texts)
    assert set(NAMES) - {name for command in commands for name in command.split()} == set()


def test_it_says_why_wherever_we_are_behind() -> None:
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 9 and re.fullmatch(r"\**[\d.,]+\**", ratio := cells[5]):
            is_behind = float(ratio.strip("*").replace(",", "")) < 1
            assert is_behind == ratio.startswith("**") == ("We are behind: " in line), line
    assert "not known why" not in PAGE
