"""The version and author of each line of a text, and their gutter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from watchroom.algorithms.merge import LineChange
from watchroom.features.overview.reads import read_texts, update_blame
from watchroom.kernel.journal import Journal
from watchroom.model import Row

from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.drawing import MEASURED, Cell, Drawing
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.worker.process import WorkerProcess

AT_ONCE: Final = 4_000_000
"""Maximum number of characters to compare at once, before other tasks run."""

_NAME: Final = 10


async def blame_lines(
    journal: Journal, versions: Sequence[Row], process: WorkerProcess
) -> tuple[str, list[Row]]:
    """Return the text of the last of ``versions``, and the version of each of its lines.

    Read ``journal`` in a thread. The function can be cancelled. Raise `UnreadableVersionError` and
    `JournalError`.
    """
    found: list[Row] = []
    text = ""
    done = 0
    while done < len(versions):

        def next_texts(start: int = done) -> list[str]:
            return list(_up_to(AT_ONCE, read_texts(journal, versions[start:])))

        texts = await asyncio.to_thread(next_texts)
        steps = await process.changes_of([text, *texts])
        found = await asyncio.to_thread(_updated_blame, found, steps, versions[done : done + len(texts)])
        text = texts[-1]
        done += len(texts)
    return text, found


def _updated_blame(
    found: list[Row], steps: Sequence[Sequence[LineChange]], versions: Sequence[Row]
) -> list[Row]:
    for row, changed in zip(versions, steps, strict=True):
        found = update_blame(found, changed, row)
    return found


def _up_to(max_characters: int, texts: Iterator[str]) -> Iterator[str]:
    """Yield texts until they have at least ``max_characters`` characters together."""
    total = 0
    for text in texts:
        yield text
        total += len(text)
        if total >= max_characters:
            return


class BlameGutter(Drawing):
    """A text with a gutter: the author and version of each line.

    - ``foot``: function that returns the foot for a version.
    - ``oldest``: the oldest compared version, if the file is older. Its lines can be older too.
    """

    def __init__(
        self, lines: Sequence[str], found: Sequence[Row], foot: Callable[[Row], str], *, oldest: Row | None
    ) -> None:
        self._lines = lines
        self._found = found
        self._foot = foot
        self._oldest = oldest
        self._digits = len(str(max(len(lines), 1)))
        names = [_version_name(row, oldest) for row in {id(row): row for row in found}.values()]
        self._version_width = max((len(name) for name in names), default=2)

    def __len__(self) -> int:
        return len(self._lines)

    def gutter(self, index: int) -> int:
        return self._version_width + _NAME + self._digits + 6

    def longest(self) -> int:
        return max(
            (len(line) if line.isascii() else 2 * len(line) for line in self._lines[:MEASURED]), default=0
        )

    def foot(self, index: int) -> str:
        return self._foot(self._found[index])

    def cell_texts(self, index: int) -> Sequence[str]:
        return [sanitize(self._line(index))]

    def row(self, index: int, reach: int, *, is_top: bool) -> Sequence[Cell]:
        row = self._found[index]
        style = agent_class(row.actor)
        version, name = "", ""
        if is_top or index == 0 or self._found[index - 1] is not row:
            version, name = _version_name(row, self._oldest), sanitize(row.actor)
        line = self._line(index)
        who = self._version_width + 1 + _NAME
        gutter = [
            Span("▍", style),
            Span(fit(version, self._version_width, "right") + " ", "dim"),
            Span(fit(name, _NAME), style),
            Span(f" {index + 1:>{self._digits}} │ ", "number"),
        ]
        more = [Span("▍", style), Span(" " * (who + self._digits + 2) + "│ ", "number")]
        return [
            Cell(gutter, [Span(sanitize(line if len(line) <= 4 * reach else line[: 4 * reach]))], "", more)
        ]

    def _line(self, index: int) -> str:
        return self._lines[index].removesuffix("\n").removesuffix("\r")


def _version_name(row: Row, oldest: Row | None) -> str:
    if row.version is None:
        return "✗"
    return f"≤v{row.version}" if row is oldest else f"v{row.version}"
