"""What the worker process does: it answers questions on its standard input until that ends.

Apart from `worker`, so that the process starts without asyncio.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.merge import diff_lines
from watchroom.texts import Language

DiffKind: TypeAlias = Literal["same", "added", "removed", "hunk"]


class DiffLine(NamedTuple):
    """A line of a diff. Numbers count from 1; 0 where the line is not on that side."""

    kind: DiffKind
    old: int
    new: int
    text: str


def diff(old: str, new: str, context: int = 3) -> list[DiffLine]:
    """The changed lines from ``old`` to ``new`` with ``context`` lines around them."""
    import pygit2

    # The patch points into these two, so they have to outlive it.
    before, after = old.encode(), new.encode()
    patch = pygit2.Patch.create_from(before, after, context_lines=context, interhunk_lines=1)
    lines: list[DiffLine] = []
    kinds: dict[str, DiffKind] = {" ": "same", "+": "added", "-": "removed"}
    for hunk in patch.hunks:
        lines.append(DiffLine("hunk", hunk.old_start, hunk.new_start, hunk.header.strip()))
        for line in hunk.lines:
            kind = kinds.get(line.origin)
            if kind:
                text = line.raw_content.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
                lines.append(DiffLine(kind, max(0, line.old_lineno), max(0, line.new_lineno), text))
    return lines


def changes_of(*texts: str) -> list[tuple[int, int, int, int, int]]:
    """What changed from each text to the next: which of the steps, counted from 0, and the change."""
    return [
        (step, *change) for step, (old, new) in enumerate(pairwise(texts)) for change in diff_lines(old, new)
    ]


def summary_of(board: str, language: Language) -> Sequence[tuple[str | int, ...]]:
    """See `watchroom_tui.board_summary`, which is loaded with the first board."""
    from watchroom_tui import board_summary

    return board_summary.summary_of(board, language)


FUNCTIONS: Final[Mapping[str, Callable[..., Sequence[tuple[str | int, ...]]]]] = {
    "diff": diff,
    "changes": diff_lines,
    "changes_of": changes_of,
    "summary_of": summary_of,
}
"""What the process can do."""


def _serve() -> None:
    while line := sys.stdin.buffer.readline():
        number, function, *lengths = json.loads(line)
        arguments = [sys.stdin.buffer.read(length).decode() for length in lengths]
        sys.stdout.write(json.dumps([number, FUNCTIONS[function](*arguments)]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
