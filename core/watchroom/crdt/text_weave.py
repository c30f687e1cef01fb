"""The characters that were ever in a text since some version, each with what brought and removed it: the
interleaved delta of SCCS (Rochkind, 1975) by characters, which the engine tells apart by their operations.

So a text without some versions is told exactly, also where edits were concurrent: a character stands if its
bringer is not one of them and all that removed it are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from watchroom.crdt.text import Text
from watchroom.model import Json

Edit: TypeAlias = tuple[int, int, str]
"""At a position, so many characters are replaced by a text."""
Operations: TypeAlias = tuple[int, int, int]
"""The operations that wrote neighbouring characters: a peer, the number of its first one, and their count."""


class KnownText:
    """The characters of a text as one of its writers knows it, by the ``operations`` that wrote them."""

    def __init__(self, operations: Iterable[Operations]) -> None:
        self._operations = [*operations]

    def replace(self, start: int, count: int, inserted: Iterable[Operations]) -> list[Operations]:
        """Replace ``count`` characters from ``start`` on, clamped to the text, by those ``inserted``. Return
        the characters that were replaced."""
        first = self._split(start)
        last = self._split(start + count)
        replaced = self._operations[first:last]
        self._operations[first:last] = inserted
        return replaced

    def _split(self, position: int) -> int:
        """Return the index of the operations at ``position``; those that it is within are split."""
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
    """Characters that one peer wrote one after the other, its operations from ``start`` on.

    - ``bringer``: the version that brought them, 0 for what was there before.
    - ``removers``: the versions that removed them.
    - ``is_there``: whether they are in the text.
    - ``former``: the operations (peer and first number) that wrote them before reverts brought them back.

    A revert removes characters, or brings them back as other operations, and is neither bringer nor remover.
    """

    peer: int
    start: int
    text: str
    bringer: int
    removers: frozenset[int] = frozenset()
    is_there: bool = True
    former: tuple[tuple[int, int], ...] = ()

    def part(self, begin: int, end: int) -> _Run:
        """Return the characters from ``begin`` up to ``end`` (excluded) of this run."""
        former = tuple((peer, start + begin) for peer, start in self.former)
        return self._replace(start=self.start + begin, text=self.text[begin:end], former=former)

    def find(self, peer: int, start: int, stop: int, *, only_gone: bool) -> tuple[int, int] | None:
        """Return from where to where operations of ``peer`` from ``start`` up to ``stop`` (excluded) wrote
        characters of this run; None if they wrote none. Former operations count if the characters are gone,
        and others are left out unless they are gone where ``only_gone`` says so."""
        written = [] if only_gone and self.is_there else [(self.peer, self.start)]
        for writer, first in (*written, *(() if self.is_there else self.former)):
            begin, end = max(start - first, 0), min(stop - first, len(self.text))
            if writer == peer and begin < end:
                return begin, end
        return None

    @property
    def operations(self) -> Operations:
        """The operations that wrote its characters."""
        return self.peer, self.start, len(self.text)

    def stands_without(self, off: Collection[int]) -> bool:
        return self.bringer not in off and all(version in off for version in self.removers)

    def remove(self, version: int) -> _Run:
        """As ``version`` left them by removing them; 0 is a revert."""
        removers = self.removers | {version} if version else self.removers
        return self._replace(removers=removers, is_there=False)


class TextWeave:
    """The characters of ``text``, which is merged into from then on. Adding a version looks at all runs: some
    thousands of versions are a matter of seconds."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._runs = list(self._runs_at(0, len(text), 0))

    def add(self, version: int, delta: Json) -> list[Operations]:
        """Add what ``version`` wrote: ``delta``, the text's delta or another replica's state. Return the
        operations that wrote its characters, in their order. Raises `InvalidState`."""
        done = self._text.merge_observed(delta)
        for (peer, start), count in done.deleted:
            self._remove(version, peer, start, start + count)
        runs = [run for position, count in done.inserted for run in self._insert(position, count, version)]
        return [run.operations for run in runs]

    def known_text(self) -> KnownText:
        """Return the text as a reader of the current version knows it."""
        return KnownText(run.operations for run in self._runs if run.is_there)

    def add_deletion(self, version: int, operations: Iterable[Operations]) -> None:
        """Add that ``version`` also deleted the characters of ``operations``. Those that are still there are
        left out: no delta has deleted them."""
        for peer, start, count in operations:
            self._remove(version, peer, start, start + count, only_gone=True)

    def add_revert(self, version: int, delta: Json, off: Collection[int]) -> None:
        """Add what the revert of ``version`` wrote, ``delta``, after which the versions ``off`` are: what it
        wrote again is what had been there. Raises `InvalidState`."""
        done = self._text.merge_observed(delta)
        for (peer, start), count in done.deleted:
            self._remove(0, peer, start, start + count)
        gone = [index for index, run in enumerate(self._runs) if not run.is_there and run.stands_without(off)]
        value = self._text.value
        wrote = "".join(value[position : position + count] for position, count in done.inserted)
        if wrote and wrote == "".join(self._runs[index].text for index in gone):
            self._bring_back(gone, [run for at, n in done.inserted for run in self._runs_at(at, n, version)])
        else:
            # Others wrote between its plan and its commit, or it is no revert of ours.
            for position, count in done.inserted:
                self._insert(position, count, version)

    def _bring_back(self, gone: Sequence[int], written: Sequence[_Run]) -> None:
        """Have the runs with the indexes ``gone`` stand again, as the operations of ``written``: they are
        the same characters."""
        left = list(reversed(written))
        for index in reversed(gone):
            # From the last one on: whatever is split leaves the indexes before it as they are.
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
                parts.insert(0, part._replace(peer=new.peer, start=new.start, is_there=True, former=former))
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
        """The index of the run before which something stands that is at ``position`` of the text; a run that
        it stands within is split."""
        left = position
        for index, run in enumerate(self._runs):
            if not left:
                return index
            if not run.is_there:
                continue
            if left < len(run.text):
                self._runs[index : index + 1] = [run.part(0, left), run.part(left, len(run.text))]
                return index + 1
            left -= len(run.text)
        return len(self._runs)

    @property
    def is_whole(self) -> bool:
        """Whether it tells the text as it is: it may not where an update still waits for another."""
        return "".join(run.text for run in self._runs if run.is_there) == self._text.value

    def edits(self, off: Collection[int]) -> list[Edit]:
        """What has to be edited, one after the other, for the text to be without the versions ``off``."""
        found: list[Edit] = []
        position = 0
        kinds = ((run.is_there, run.stands_without(off), run.text) for run in self._runs)
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
