"""The dashboard painted by Textual's compositor: after partial updates a terminal shows what a full repaint shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from calls import ok, refused
from pty_driver import Cell, Terminal
from real.programs import installed
from tui.recorded import at_work
from watchroom import Workspace

pytestmark = pytest.mark.real

SIZES: Final = ((80, 24), (120, 40), (200, 60))
PATIENCE: Final = 60
UP, DOWN, PAGE_UP, PAGE_DOWN, ESC, TAB = "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~", "\x1b[27u", "\t"
"""Keys. Escape is that of the kitty protocol: after a bare one Textual waits 100 ms for what may follow."""
AGE: Final = re.compile(r" *(\d+ (ms|s|m|h|d)\b|\d\d:\d\d(:\d\d)?|[▁-█ ]+\d+ operations/min *)")
"""Ages, times of day and the recent rate, which change between two pictures of a screen."""
WORK: Final = re.compile(r"[●○] .* [▁-█]+.*")
"""The row of an agent from its mark on, with the bars of its work, which move at other moments than the ages."""
ACTIVE: Final = re.compile(r"[●○]|[▁-█]+")
"""What changes with an age: the mark of an agent that worked in the last half minute, and the bars of its work."""
MAX_PICTURES: Final = 8
"""Pictures until the blinking cursor is in the same phase in both."""

Act = Callable[[Terminal, Workspace], None]


class Step(NamedTuple):
    """An interaction: keys, or something that happens while the dashboard is open."""

    name: str
    act: Act


def typed(name: str, *keys: str) -> Step:
    def act(terminal: Terminal, workspace: Workspace) -> None:
        for key in keys:
            since = terminal.mark()
            terminal.send(key)
            terminal.wait_for_output(since, timeout=1)

    return Step(name, act)


def _write(terminal: Terminal, workspace: Workspace) -> None:
    text = "".join(f"{n}. 港口 line 📦 {n}\n" for n in range(60))
    ok(workspace.tools("editor"), "collab_write", filepath="新/list.md", content=text, message="long 列表")


def _collide(terminal: Terminal, workspace: Workspace) -> None:
    stale = {"filepath": "新/list.md", "content": "1. mine\n", "message": "late", "expected_version": 0}
    refused(workspace.tools("analyst"), "collab_write", **stale)


def _deliver(terminal: Terminal, workspace: Workspace) -> None:
    given = {"filename": "更多.md", "content": "more\n", "message": "看这里"}
    ok(workspace.tools("writer"), "handoff_file", to_agent="editor", **given)


def _click(terminal: Terminal, workspace: Workspace) -> None:
    terminal.send("\x1b[<0;10;8M\x1b[<0;10;8m")


def _scroll(terminal: Terminal, workspace: Workspace) -> None:
    terminal.send("\x1b[<65;10;8M" * 3)


def _resize(terminal: Terminal, workspace: Workspace) -> None:
    columns, rows = terminal._screen.columns, terminal._screen.lines
    terminal.resize(columns + 7, rows + 3)
    terminal.wait_until_idle()
    terminal.resize(columns, rows)


STEPS: Final[Sequence[Step]] = (
    typed("move down the overview", DOWN, DOWN),
    Step("a file is written", _write),
    Step("a write is refused", _collide),
    typed("open the merge of the conflict", "!"),
    typed("take the incoming side", "i"),
    typed("leave the merge", ESC),
    typed("open the agents", "2"),
    typed("move down the agents", DOWN, DOWN),
    typed("go to the next pane", TAB),
    typed("open the handoffs", "3"),
    Step("a handoff is delivered", _deliver),
    typed("open the files", "4"),
    typed("move down the files", DOWN, DOWN),
    typed("go to the versions", TAB, DOWN),
    typed("page down a text", TAB, PAGE_DOWN),
    typed("page up a text", PAGE_UP),
    typed("open the documents", "5"),
    typed("open the boards", "6"),
    typed("open the requests", "7"),
    typed("open the activity", "8"),
    typed("go to the last row", "G"),
    typed("go to the first row", "g"),
    Step("click on a row", _click),
    Step("turn the wheel", _scroll),
    typed("open a row", "\r"),
    typed("close the row", ESC),
    typed("filter the rows", "/", "p", "l", "a", "n"),
    typed("keep the filter", "\r"),
    typed("clear the filter", ESC),
    typed("open the time line", "T"),
    typed("go back in time", ",", ",", "["),
    typed("return to the present", ESC),
    typed("show the keys", "?"),
    typed("close the keys", ESC),
    typed("open the palette", ":", "t", "h"),
    typed("close the palette", ESC),
    typed("search everything", "\x06", "h", "a", "r"),
    typed("close the search", ESC),
    typed("open the usage", "0"),
    typed("open the tasks", "9"),
    Step("change the size and back", _resize),
    typed("return to the overview", "1"),
)
LAST_SCREEN: Final = "Needs you"
"""On the screen after the last step."""


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def terminal(request: pytest.FixtureRequest, root: Path) -> Iterator[Terminal]:
    at_work(root)
    with Terminal([installed("watchroom"), "open", str(root), "--as", "dana"], *request.param) as opened:
        opened.wait_for_text("Needs you", timeout=PATIENCE)
        opened.wait_until_idle()
        yield opened


def test_partial_updates_leave_what_a_full_repaint_draws(terminal: Terminal, root: Path) -> None:
    wrong = []
    with Workspace.open(root, create=False) as workspace:
        for step in STEPS:
            step.act(terminal, workspace)
            terminal.wait_until_idle()
            if found := differences(terminal):
                wrong.append(f"{step.name}:\n" + "\n".join(found))
    assert wrong == [], "\n\n".join(wrong)
    terminal.wait_for_text(LAST_SCREEN, timeout=PATIENCE)
    terminal.send("q")
    # The merge that was begun is not saved.
    terminal.wait_for_text("Quit and discard", timeout=PATIENCE)
    terminal.send("\r")
    assert terminal.wait(PATIENCE) == 0


def differences(terminal: Terminal) -> Sequence[str]:
    """Return the lines of the screen that a full repaint draws otherwise, as drawn partially and in full.

    If only the style of one cell differs it is compared again, because the cursor of an input blinks.
    """
    found: list[tuple[int, Sequence[Cell], Sequence[Cell]]] = []
    for _ in range(MAX_PICTURES):
        partial, whole = terminal.cells(), terminal.repainted()
        rows = enumerate(zip(partial, whole, strict=True), 1)
        found = [(number, one, other) for number, (one, other) in rows if not is_same(one, other)]
        cells = [
            pair for _, one, other in found for pair in zip(one, other, strict=True) if pair[0] != pair[1]
        ]
        if len(cells) != 1 or cells[0][0].text != cells[0][1].text:
            break
    return [described(*each) for each in found]


def is_same(one: Sequence[Cell], other: Sequence[Cell]) -> bool:
    """Whether two rows are the same, or have the same text but for ages, which move what is behind them, and,
    if time has passed between them, for what depends on it."""
    if one == other or line(one) == line(other):
        return one == other
    is_older = any(each.findall(line(one)) != each.findall(line(other)) for each in (AGE, WORK))
    first, second = (timeless(cells, ACTIVE) if is_older else timeless(cells) for cells in (one, other))
    return first == second


def timeless(cells: Sequence[Cell], *others: re.Pattern[str]) -> str:
    text = line(cells)
    for each in (AGE, *others):
        text = each.sub(" ", text)
    return " ".join(text.split())


def described(number: int, partial: Sequence[Cell], whole: Sequence[Cell]) -> str:
    if line(partial) != line(whole):
        return f"  row {number}, partial: {line(partial)!r}\n  row {number}, whole:   {line(whole)!r}"
    columns = [at for at, pair in enumerate(zip(partial, whole, strict=True)) if pair[0] != pair[1]]
    at = columns[0]
    return f"  row {number}, {len(columns)} cells from column {at}: {partial[at]} and {whole[at]}"


def line(cells: Sequence[Cell]) -> str:
    return "".join(cell.text for cell in cells)


def test_a_repaint_is_drawn_in_full_from_an_empty_screen(terminal: Terminal) -> None:
    """The yardstick of the test above would be worthless if it drew parts of the screen alone."""
    whole = [line(row) for row in terminal.repainted()]
    assert any("Needs you" in row for row in whole)
    assert sum(bool(row.strip()) for row in whole) > len(whole) / 2
