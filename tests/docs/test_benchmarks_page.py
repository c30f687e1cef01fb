"""docs/benchmarks.md names every benchmark and every peer, and says why wherever we are behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from peers.comparison import Comparison, Contender, Group, RunContext, Unmeasured
from peers.groups import GROUPS
from peers.peer import Library, NodeProgram, PythonProgram, SystemProgram
from peers.tables import render_markdown
from rich.progress import Progress

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/benchmarks.md").read_text("utf-8")
NAMES = re.findall(r'^    "(\w+)": ', (ROOT / "benchmarks/run.py").read_text("utf-8"), re.MULTILINE)
GOOD = Library("good", "good")
BAD = Library("bad", "bad")


def _context(*peers: Library) -> RunContext:
    return RunContext(Path(), {peer.name: "1.0" for peer in peers}, Progress(disable=True))


def test_it_names_every_benchmark() -> None:
    others = PAGE.split("## What else can be measured\n")[1]
    assert re.findall(r"^\| `(\w+)` \|", others, re.MULTILINE) == NAMES


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_it_names_every_peer_with_its_version_or_why_there_is_no_figure(group: Group) -> None:
    section = PAGE.split(f"## {group.title}\n")[1].split("\n## ")[0]
    assert group.introduction in section
    for peer in group.peers:
        figures = re.search(
            rf"^\| [^|]+ \| {re.escape(peer.name)}(, \w+)? \d[\w.]* \|", section, re.MULTILINE
        )
        assert figures or f"\n{peer.name}: " in section, peer.name


def test_it_says_why_wherever_we_are_behind() -> None:
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 9 and re.fullmatch(r"\**[\d.,]+\**", ratio := cells[5]):
            is_behind = float(ratio.strip("*").replace(",", "")) < 1
            assert is_behind == ratio.startswith("**") == ("We are behind: " in line), line
    assert "not known why" not in PAGE


def test_a_peer_that_breaks_has_no_figure_and_does_not_end_the_run() -> None:
    def breaks(n: int) -> float:
        raise OSError("no such thing")

    rows = _context(GOOD, BAD).compare(
        "a task", lambda n: 2.0, [Contender(BAD, breaks), Contender(GOOD, lambda n: 1.0)], rounds=3
    )
    broken, good = rows
    assert broken == Unmeasured("bad", "it failed: no such thing")
    assert isinstance(good, Comparison)
    assert (good.theirs, good.ours, good.ratios, good.is_behind) == (1.0, 2.0, (0.5, 0.5, 0.5), True)


def test_the_table_has_ratios_with_their_spread_and_names_what_is_not_installed() -> None:
    taken = iter((2.0, 3.0, 4.0))
    rows = _context(GOOD).compare(
        "a task", lambda n: 1.0, [Contender(GOOD, lambda n: next(taken), remark="it does less")], rounds=3
    )
    rows.append(Unmeasured("bad", "not installed"))
    text = render_markdown({Group("some", "Some", "What they do.", (GOOD, BAD), lambda context: []): rows})
    assert "| a task | good 1.0 | 3 s | 1 s | 3 | 2 to 4 | It does less |" in text
    assert "\nbad: not installed." in text


def test_what_is_not_installed_has_no_version_and_says_how(tmp_path: Path) -> None:
    for peer in (
        Library("one", "no-such-distribution"),
        SystemProgram("two", "no-such-program", "no-such-package"),
        PythonProgram("three", "no-such-distribution", ("no-such-distribution",)),
        NodeProgram("four", "no-such-package"),
    ):
        assert peer.version(tmp_path) is None
        assert "install" in peer.how
