"""Texts on a board cannot control the terminal, by the raw bytes that a real terminal gets."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import pytest
from pty_driver import Terminal
from tui.test_hostile_screen import FORBIDDEN, HOSTILE, POINTER_SHAPE, press

from tui import board_app

LAST: Final = "the-last-line"
KINDS: Final = (
    "{0}",
    "# {0}",
    "- [x] {0}",
    "> {0}",
    "**{0}** *{0}* ~~{0}~~",
    "`{0}`",
    "[{0}](<{0}> '{0}')",
    "![{0}]({0})",
    "<b>{0}</b>",
    "<div>{0}</div>",
    "```{0}\n{0}\n```",
    "```python\n'{0}' # {0}\n```",
    "    {0}",
    "| {0} | b |\n|---|---|\n| c | {0} |",
    "&#27;[31m &#x9b;31m &#7; &#8238; &#xfeff; &#8232;",
)
BOARD: Final = "\n\n".join(kind.format(text) for text in HOSTILE.values() for kind in KINDS) + f"\n\n{LAST}\n"
VISIBLE: Final = (
    "␛[31mRED",
    "‹RO+202E›reversed",
    "good␍EVIL",
    "ab␈␈cd",
    "‹ZWS+200B›",
    "[@click=app.quit]press me",
)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40)])
def test_no_hostile_sequence_on_a_board_reaches_the_terminal_and_its_picture_does(
    tmp_path: Path, columns: int, rows: int
) -> None:
    # A carriage return ends a line of Markdown, so it is escaped to be within one.
    path = tmp_path / "board.md"
    path.write_text(BOARD.replace("\r", "&#13;"), encoding="utf-8", newline="")
    paths = os.pathsep.join(sys.path)
    command = [sys.executable, board_app.__file__, str(path)]
    with Terminal(command, columns, rows, env={"PYTHONPATH": paths}) as terminal:
        terminal.wait_for_text("RED", timeout=30)
        terminal.settle()
        pages = 0
        while not any(LAST in line for line in terminal.screen()):
            press(terminal, "\x1b[6~")
            pages += 1
            assert pages < 300, "the end of the board never came"
        written = POINTER_SHAPE.sub(b"", terminal.raw())
    for name, sequence in FORBIDDEN.items():
        assert sequence.encode() not in written, name
    assert not any(byte in written for byte in (b"\x9b31m", b"\x9d0;C1")), "C1 as single bytes"
    text = written.decode("utf-8", "replace")
    assert [picture for picture in VISIBLE if picture not in text] == []
