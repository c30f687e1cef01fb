"""All characters that a text had since a given version, each with the versions that added and removed it.

This is the interleaved delta of SCCS (Rochkind, 1975) per character. It can compute the text without some
versions exactly, even if edits were concurrent. A character is in that text if its adder is not excluded, and
all its removers are excluded. The engine identifies characters by their operations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from watchroom.algorithms.crdt.text import Text
from watchroom.model import Json

Edit: TypeAlias = tuple[int, int, str]
"""A replacement: (position, number of deleted characters, inserted text)."""
Operations: TypeAlias = tuple[int, int, int]
"""Operations that wrote neighbouring characters: (peer, first number, count)."""


class KnownText:
    """A text as a writer last saw it, represented by the ``operations`` that wrote its characters."""

    def __init__(self, operations: Iterable[Operations]) -> None:
        self._operations = [*operations]

    def replace(self, start: int, count: int, inserted: Iterable[Operations]) -> list[Operations]:
        """Replace ``count`` characters from ``start`` on, clamped to the text, by ``inserted``.

        Return the replaced characters.
        """
        first = self._split(start)
        last = self._split(start + count)
        replaced = self._operations[first:last]
        self._operations[first:last] = inserted
        return replaced

    def _split(self, position: int) -> int:
        """Return the index of the operations at ``position``, splitting a run that contains it."""
        left = position
        for index, (peer, number, count) in enumerate(self._operations):
            if left <= 0:
                return index
            if left < count:
                parts = [(peer, number, left), (peer, number + left, count - left)]
                self._operations[index : index + 1] = parts
                return index + 1
            left -= count
        return len(self._operations)


class _Run(NamedTuple):
    """Characters from consecutive operations of one ``peer``, beginning with number ``start``.

    - ``adder``: the version that added them, 0 if they are older than the weave.
    - ``removers``: the versions that removed them.
    - ``is_present``: whether they are in the current text.
    - ``former``: earlier operations (peer, first number) that wrote them, before reverts restored them.

    A revert removes characters, or restores them as new operations. It does not count as adder or remover.
    """

    peer: int
    start: int
    text: str
    adder: int
    removers: frozenset[int] = frozenset()
    is_present: bool = True
    former: tuple[tuple[int, int], ...] = ()

    def part(self, begin: int, end: int) -> _Run:
        """Return the characters from ``begin`` up to ``end`` (excluded) of this run."""
        former = tuple((peer, start + begin) for peer, start in self.former)
        return self._replace(start=self.start + begin, text=self.text[begin:end], former=former)

    def find(self, peer: int, start: int, stop: int, *, only_gone: bool) -> tuple[int, int] | None:
        """Return the range of this run that operations of ``peer`` wrote; None if they wrote none of it.

        - ``start``, ``stop``: the numbers of the operations, ``stop`` excluded.
        - ``only_gone``: ignore characters that are in the current text.

        Former operations count only if the characters are not in the current text.
        """
        written = [] if only_gone and self.is_present else [(self.peer, self.start)]
        for writer, first in (*written, *(() if self.is_present else self.former)):
            begin, end = max(start - first, 0), min(stop - first, len(self.text))
            if writer == peer and begin < end:
                return begin, end
        return None

    @property
    def operations(self) -> Operations:
        """The operations that wrote the characters."""
        return self.peer, self.start, len(self.text)

    def is_in_text_without(self, off: Collection[int]) -> bool:
        return self.adder not in off and all(version in off for version in self.removers)

    def remove(self, version: int) -> _Run:
        """Return this run after its removal by ``version``; 0 for a revert."""
        removers = self.removers | {version} if version else self.removers
        return self._replace(removers=removers, is_present=False)


class TextWeave:
    """The weave of ``text``. Adding a version merges its delta into this text.

    Each addition visits all runs, so some thousands of versions take seconds.
    """

    def __init__(self, text: Text) -> None:
        self._text = text
        self._runs = list(self._runs_at(0, len(text), 0))

    def add(self, version: int, delta: Json) -> list[Operations]:
        """Add ``version``, and return the operations of the characters that it added, in text order.

        ``delta`` is a delta of the text, or a state of another replica. Raise `InvalidState` if it is
        malformed.
        """
        done = self._text.merge_observed(delta)
        for (peer, start), count in done.deleted:
            self._remove(version, peer, start, start + count)
        runs = [run for position, count in done.inserted for run in self._insert(position, count, version)]
        return [run.operations for run in runs]

    def known_text(self) -> KnownText:
        """Return the text as a reader of the current version sees it."""
        return KnownText(run.operations for run in self._runs if run.is_present)

    def add_deletion(self, version: int, operations: Iterable[Operations]) -> None:
        """Record that ``version`` also deleted the characters of ``operations``.

        Characters in the current text are ignored, because no delta deleted them.
        """
        for peer, start, count in operations:
            self._remove(version, peer, start, start + count, only_gone=True)

    def add_revert(self, version: int, delta: Json, off: Collection[int]) -> None:
        """Add the revert ``version``, which wrote ``delta``. After it, the versions ``off`` are undone.

        Text that it wrote again is identified with the earlier characters. Raise `InvalidState` if the delta
        is malformed.
        """
        done = self._text.merge_observed(delta)
        for (peer, start), count in done.deleted:
            self._remove(0, peer, start, start + count)
        gone = [
            index
            for index, run in enumerate(self._runs)
            if not run.is_present and run.is_in_text_without(off)
        ]
        value = self._text.value
        wrote = "".join(value[position : position + count] for position, count in done.inserted)
        if wrote and wrote == "".join(self._runs[index].text for index in gone):
            self._restore(gone, [run for at, n in done.inserted for run in self._runs_at(at, n, version)])
        else:
            # Others wrote between the plan and the commit of the revert, or the revert is not ours.
            for position, count in done.inserted:
                self._insert(position, count, version)

    def _restore(self, gone: Sequence[int], written: Sequence[_Run]) -> None:
        """Restore the runs with the indexes ``gone``, now with the operations of ``written``.

        Both have the same characters.
        """
        left = list(reversed(written))
        for index in reversed(gone):
            # In reverse, so that splitting a run does not change the remaining indexes.
            run, parts = self._runs[index], list[_Run]()
            missing = len(run.text)
            while missing:
                new = left.pop(0)
                if len(new.text) > missing:
                    cut = len(new.text) - missing
                    left.insert(0, new._replace(text=new.text[:cut]))
                    new = new._replace(start=new.start + cut, text=new.text[cut:])
                missing -= len(new.text)
                part = run.part(missing, missing + len(new.text))
                former = (*part.former, (part.peer, part.start))
                parts.insert(0, part._replace(peer=new.peer, start=new.start, is_present=True, former=former))
            self._runs[index : index + 1] = parts

    def _insert(self, position: int, count: int, version: int) -> list[_Run]:
        at = self._index_of(position)
        runs = [*self._runs_at(position, count, version)]
        self._runs[at:at] = runs
        return runs

    def _runs_at(self, position: int, count: int, version: int) -> Iterator[_Run]:
        value = self._text.value
        for (peer, start), length in self._text.operations_at(position, count):
            yield _Run(peer, start, value[position : position + length], version)
            position += length

    def _remove(self, version: int, peer: int, start: int, stop: int, *, only_gone: bool = False) -> None:
        runs: list[_Run] = []
        for run in self._runs:
            found = run.find(peer, start, stop, only_gone=only_gone)
            if found is None:
                runs.append(run)
                continue
            left, right = found
            parts = ((0, left, False), (left, right, True), (right, len(run.text), False))
            for begin, finish, is_removed in parts:
                if begin < finish:
                    part = run.part(begin, finish)
                    runs.append(part.remove(version) if is_removed else part)
        self._runs = runs

    def _index_of(self, position: int) -> int:
        """Return the index of the run at ``position`` of the current text, splitting a run that contains
        it."""
        left = position
        for index, run in enumerate(self._runs):
            if not left:
                return index
            if not run.is_present:
                continue
            if left < len(run.text):
                self._runs[index : index + 1] = [run.part(0, left), run.part(left, len(run.text))]
                return index + 1
            left -= len(run.text)
        return len(self._runs)

    @property
    def is_whole(self) -> bool:
        """Whether the runs make up the current text. False if an update still waits for an earlier update."""
        return "".join(run.text for run in self._runs if run.is_present) == self._text.value

    def edits(self, off: Collection[int]) -> list[Edit]:
        """Return the edits that change the text to the text without the versions ``off``. They must be
        applied in order."""
        found: list[Edit] = []
        position = 0
        kinds = ((run.is_present, run.is_in_text_without(off), run.text) for run in self._runs)
        for (is_present, is_wanted), group in groupby(
            (each for each in kinds if each[0] or each[1]), key=lambda each: each[:2]
        ):
            text = "".join(part for *_, part in group)
            if is_present and not is_wanted:
                found.append((position, len(text), ""))
            elif is_wanted and not is_present:
                found.append((position, 0, text))
            position += len(text) if is_wanted else 0
        return found
