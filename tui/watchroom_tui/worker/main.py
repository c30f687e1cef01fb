"""The worker process. It answers questions on standard input until the input ends.

Separate from `process`, so that the process starts without importing asyncio.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.algorithms.merge import diff_lines
from watchroom.texts import Language

DiffKind: TypeAlias = Literal["same", "added", "removed", "hunk"]


class DiffLine(NamedTuple):
    """A line of a difference. Line numbers count from 1, and are 0 on a side without the line."""

    kind: DiffKind
    old: int
    new: int
    text: str


def diff(old: str, new: str, context: int = 3) -> list[DiffLine]:
    """Return the changed lines from ``old`` to ``new``, with ``context`` lines around them."""
    import pygit2

    # The patch points into both buffers, so they must outlive it.
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
    """Return the changes from each text to the next. Each change starts with the number of its step (from
    0)."""
    return [
        (step, *change) for step, (old, new) in enumerate(pairwise(texts)) for change in diff_lines(old, new)
    ]


def summary_of(board: str, language: Language) -> Sequence[tuple[str | int, ...]]:
    """See `watchroom_tui.formatters.board_summary`, which is imported with the first board."""
    from watchroom_tui.formatters import board_summary

    return board_summary.summary_of(board, language)


FUNCTIONS: Final[Mapping[str, Callable[..., Sequence[tuple[str | int, ...]]]]] = {
    "diff": diff,
    "changes": diff_lines,
    "changes_of": changes_of,
    "summary_of": summary_of,
}
"""The functions that questions can call, by name."""


CHUNK: Final = 256
"""Maximum number of tuples in one line of an answer."""

CHUNK_CHARACTERS: Final = 64 * 1024
"""Number of characters after which a line of an answer ends, because keys are handled between two lines."""


def chunks(answer: Sequence[tuple[str | int, ...]]) -> Iterator[tuple[Sequence[tuple[str | int, ...]], bool]]:
    """Yield the parts of the answer, and whether each part is the last. An empty answer has one empty
    part."""
    start, characters = 0, 0
    for index, item in enumerate(answer):
        characters += sum(len(each) for each in item if isinstance(each, str))
        if index + 1 - start == CHUNK or characters > CHUNK_CHARACTERS:
            yield answer[start : index + 1], index + 1 == len(answer)
            start, characters = index + 1, 0
    if start < len(answer) or not answer:
        yield answer[start:], True


def _serve() -> None:
    while line := sys.stdin.buffer.readline():
        number, function, *lengths = json.loads(line)
        arguments = [sys.stdin.buffer.read(length).decode() for length in lengths]
        for part, is_last in chunks(FUNCTIONS[function](*arguments)):
            sys.stdout.write(json.dumps([number, is_last, part]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
