"""A progress bar on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress


@contextmanager
def progress_bar(text: str, total: int | None = None) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with ``text`` until the context ends. Yields a callback for the number of steps done and the
    total number."""
    console = Console(file=sys.__stderr__)
    if not console.is_terminal:
        # rich would print an empty line.
        yield lambda done, of: None
        return
    # The bar is drawn with escapes, which `OutputStream` would remove.
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(text, total=total)
        yield lambda done, of: bar.update(task_id=task, completed=done, total=of)
