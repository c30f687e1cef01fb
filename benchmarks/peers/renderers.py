"""The seconds that a renderer takes for a text: ``python benchmarks/renderers.py WHICH FILE``.

Each runs in its own process, with its modules imported beforehand.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

_SIZE = (120, 40)


def ours(data: bytes) -> float:
    """Measure our widget from the text to its first screen."""
    from board_app import BoardApp
    from watchroom_tui.markdown.board_drawing import BoardDrawing

    async def show() -> float:
        app = BoardApp(b"# nothing yet\n\ntext\n")
        async with app.run_test(size=_SIZE) as pilot:
            await pilot.pause()
            painted = asyncio.Event()
            began = time.perf_counter()
            app.board.show_drawing("another", BoardDrawing(data), title="another")
            app.board.call_after_refresh(painted.set)
            await painted.wait()
            taken = time.perf_counter() - began
            strips = app.screen._compositor.render_strips(app.screen.size)
            shown = "".join(segment.text for segment in strips[1])
            if data.split(b"\n")[0].lstrip(b"# ").decode() not in shown:
                raise RuntimeError(f"the text is not on the screen: {shown!r}")
            return taken

    return asyncio.run(show())


def ours_whole(data: bytes) -> float:
    """Measure drawing all lines, which our widget never does."""
    from watchroom_tui.markdown.board_drawing import BoardDrawing

    began = time.perf_counter()
    drawing = BoardDrawing(data)
    drawing.fit(_SIZE[0])
    drawing.settle(0, 0, sys.maxsize)
    return time.perf_counter() - began


def textual(data: bytes) -> float:
    """Measure Textual's widget, which creates a widget for every block."""
    from textual.app import App, ComposeResult
    from textual.containers import VerticalScroll
    from textual.widgets import Markdown

    class Shown(App[None]):
        def compose(self) -> ComposeResult:
            with VerticalScroll():
                yield Markdown("# nothing yet\n\ntext\n")

    async def show() -> float:
        app = Shown()
        async with app.run_test(size=_SIZE) as pilot:
            await pilot.pause()
            painted = asyncio.Event()
            widget = app.query_one(Markdown)
            began = time.perf_counter()
            await widget.update(data.decode())
            widget.call_after_refresh(painted.set)
            await painted.wait()
            return time.perf_counter() - began

    return asyncio.run(show())


def rich(data: bytes) -> float:
    """Measure rich, which can only draw the whole text."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(file=io.StringIO(), width=_SIZE[0], force_terminal=True)
    console.print(Markdown("# nothing yet\n\n```python\nx\n```\n"))
    began = time.perf_counter()
    console.print(Markdown(data.decode()))
    return time.perf_counter() - began


RENDERERS: dict[str, Callable[[bytes], float]] = {
    "ours": ours,
    "ours whole": ours_whole,
    "textual": textual,
    "rich": rich,
}

if __name__ == "__main__":
    print(json.dumps(RENDERERS[sys.argv[1]](Path(sys.argv[2]).read_bytes())))
