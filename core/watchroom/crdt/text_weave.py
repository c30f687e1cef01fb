"""The characters that were ever in a text since some version, each with what brought and removed it: the
interleaved delta of SCCS (Rochkind, 1975) by characters, which the engine tells apart by their operations.

So a text without some versions is told exactly, also where edits were concurrent: a character stands if its
bringer is not one of them and all that removed it are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby
from typing import NamedTuple, TypeAlias

from watchroom.crdt.text import Text
from watchroom.model import Json

Edit: TypeAlias = tuple[int, int, str]
"""At a position, so many characters are replaced by a text."""


class _Run(NamedTuple):
    """Characters that one peer wrote one after the other, its operations from ``start`` on. ``bringer`` is
    the version that brought them, 0 for what was there before; ``removers`` are those that removed them."""

    peer: int
    start: int
    text: str
    bringer: int
    removers: frozenset[int] = frozenset()

    def stands_without(self, off: Collection[int]) -> bool:
        return self.bringer not in off and all(version in off for version in self.removers)


class TextWeave:
    """The characters of ``text``, which is merged into from then on. Adding a version looks at all runs: some
    thousands of versions are a matter of seconds."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._runs = list(self._runs_at(0, len(text), 0))

    def add(self, version: int, delta: Json) -> None:
        """Add what ``version`` wrote: ``delta``, the text's delta or another replica's state. Raises
        `InvalidState`."""
        done = self._text.merge_observed(delta)
        for (peer, start), count in done.deleted:
            self._remove(version, peer, start, start + count)
        for position, count in done.inserted:
            at = self._index_of(position)
            self._runs[at:at] = self._runs_at(position, count, version)

    def _runs_at(self, position: int, count: int, version: int) -> Iterator[_Run]:
        value = self._text.value
        for (peer, start), length in self._text.operations_at(position, count):
            yield _Run(peer, start, value[position : position + length], version)
            position += length

    def _remove(self, version: int, peer: int, start: int, stop: int) -> None:
        runs: list[_Run] = []
        for run in self._runs:
            end = run.start + len(run.text)
            if run.peer != peer or run.start >= stop or end <= start:
                runs.append(run)
                continue
            left, right = max(start, run.start) - run.start, min(stop, end) - run.start
            parts = ((0, left, False), (left, right, True), (right, len(run.text), False))
            for begin, finish, is_removed in parts:
                if begin < finish:
                    removers = run.removers | {version} if is_removed else run.removers
                    runs.append(
                        run._replace(start=run.start + begin, text=run.text[begin:finish], removers=removers)
                    )
        self._runs = runs

    def _index_of(self, position: int) -> int:
        """The index of the run before which something stands that is at ``position`` of the text; a run that
        it stands within is split."""
        left = position
        for index, run in enumerate(self._runs):
            if not left:
                return index
            if run.removers:
                continue
            if left < len(run.text):
                first, second = run.text[:left], run.text[left:]
                self._runs[index : index + 1] = [
                    run._replace(text=first),
                    run._replace(start=run.start + left, text=second),
                ]
                return index + 1
            left -= len(run.text)
        return len(self._runs)

    @property
    def is_whole(self) -> bool:
        """Whether it tells the text as it is: it may not where an update still waits for another."""
        return "".join(run.text for run in self._runs if not run.removers) == self._text.value

    def edits(self, off: Collection[int]) -> list[Edit]:
        """What has to be edited, one after the other, for the text to be without the versions ``off``."""
        found: list[Edit] = []
        position = 0
        kinds = ((not run.removers, run.stands_without(off), run.text) for run in self._runs)
        for (is_there, stands), group in groupby(
            (each for each in kinds if each[0] or each[1]), key=lambda each: each[:2]
        ):
            text = "".join(part for *_, part in group)
            if is_there and not stands:
                found.append((position, len(text), ""))
            elif stands and not is_there:
                found.append((position, 0, text))
            position += len(text) if stands else 0
        return found
