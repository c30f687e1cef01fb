"""A text with all its lines since some version, each with the versions that brought and removed it, so that
the text can be told without some of them. Pure.

The structure is the interleaved delta of SCCS (M. J. Rochkind, "The Source Code Control System", 1975): a
version is a switch. Where it is off, the lines that it brought are not there, and those that it removed are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set
from typing import NamedTuple

from watchroom.merge import Region, diff_lines, split_lines
from watchroom.merge.regions import Lines

_START = 0
"""The bringer of lines that were there before the first version of a weave."""


class _Line:
    """A line that stood in some version: ``by`` brought it, ``removers`` removed it, in their order."""

    __slots__ = ("by", "removers", "text")

    def __init__(self, text: str, by: int) -> None:
        self.text = text
        self.by = by
        self.removers: list[int] = []

    def stands(self, off: Set[int]) -> bool:
        """Whether it is there when the versions ``off`` are off."""
        return self.by not in off and all(each in off for each in self.removers)

    def touchers(self, off: Set[int]) -> list[int]:
        """The versions that brought or removed it, without those in ``off``."""
        return [each for each in (self.by, *self.removers) if each != _START and each not in off]


class _Change(NamedTuple):
    """Neighbouring lines as they are, and as they are to be."""

    now: list[str]
    then: list[str]
    start: list[str]
    """Those of them that were there before the first version."""
    ours: int
    """The first version that is switched and touched them, 0 if none did."""
    others: int
    """The last of the other versions that touched them, 0 if none did."""


class Weave:
    """The lines of a text since the version with ``text``, which is counted as version 0.

    weave = Weave("a\\n")
    weave.add(4, "a\\nb\\n")
    regions = weave.switch(off={4})
    """

    def __init__(self, text: str) -> None:
        self._lines = [_Line(each, _START) for each in split_lines(text)]
        self._off: set[int] = set()

    @property
    def off(self) -> frozenset[int]:
        """The versions that are off."""
        return frozenset(self._off)

    def add(self, version: int, text: str, took: Collection[int] = (), gave: Collection[int] = ()) -> None:
        """Take in the next ``version``, which made the text ``text``. Where it is a revert it turned the
        versions ``took`` off and ``gave`` on: only what differs from that is its own."""
        self._off = (self._off | set(took)) - set(gave)
        standing = [n for n, line in enumerate(self._lines) if line.stands(self._off)]
        before = join_lines(self._lines[n].text for n in standing)
        after = split_lines(text)
        changes = diff_lines(before, text)
        if not changes:
            return
        woven: list[_Line] = []
        taken = 0
        for change in changes:
            # New lines stand behind what they replace, and before what came next.
            end = standing[change.old_end - 1] + 1 if change.old_end else 0
            if change.old_start == change.old_end:
                end = max(end, taken)
            woven += self._lines[taken:end]
            taken = end
            for n in standing[change.old_start : change.old_end]:
                self._lines[n].removers.append(version)
            woven += [_Line(each, version) for each in after[change.new_start : change.new_end]]
        self._lines = [*woven, *self._lines[taken:]]

    def text(self, off: Set[int] | None = None) -> str:
        """The text when the versions ``off`` are off (None: as it is)."""
        switched = self._off if off is None else off
        return join_lines(line.text for line in self._lines if line.stands(switched))

    def switch(self, off: Set[int], entries: Set[int] = frozenset()) -> tuple[Region, ...]:
        """The text as it is, and as it is when the versions ``off`` are off, in regions: ``incoming`` where
        only versions touched it that are switched by that, ``conflict`` where others did since and the two
        differ. ``entries`` are versions whose lines stand for themselves, however near others are."""
        regions: list[Region] = []
        unchanged: list[str] = []

        def flush() -> None:
            if unchanged:
                lines = tuple(unchanged)
                regions.append(Region("unchanged", lines, lines, lines))
                unchanged.clear()

        for change in self._changes(off, entries):
            now, then = tuple(change.now), tuple(change.then)
            if now == then:
                unchanged.extend(now)
                continue
            flush()
            regions.append(_region(change, now, then))
        flush()
        return tuple(regions)

    def _changes(self, off: Set[int], entries: Set[int]) -> Iterator[_Change]:
        """The lines in groups: neighbours that were touched, up to the next line that nobody touched."""
        group = _Change([], [], [], 0, 0)
        kind: int | None = None
        """What the group's lines have in common: 0 if they were touched, the version if it is an entry."""
        for line in self._lines:
            if line.by in self._off and line.by in off:
                continue
            touchers = line.touchers(self._off & off)
            found = None if not touchers else touchers[0] if set(touchers) <= entries else 0
            if found is None or found != kind:
                yield group
                group = _Change([], [], [], 0, 0)
            kind = found
            ours = [each for each in touchers if (each in self._off) != (each in off)]
            others = [each for each in touchers if each not in ours]
            group = group._replace(
                ours=min(ours + [group.ours] * bool(group.ours), default=0),
                others=max([*others, group.others]),
            )
            if line.stands(self._off):
                group.now.append(line.text)
            if line.stands(off):
                group.then.append(line.text)
            if line.by == _START:
                group.start.append(line.text)
        yield group


def join_lines(lines: Iterable[str]) -> str:
    """The text of ``lines``. One that was the last of its text, without a line feed, has one where others
    follow it."""
    *above, last = [*lines] or [""]
    return "".join(each if each.endswith("\n") else f"{each}\n" for each in above) + last


def _region(change: _Change, now: Lines, then: Lines) -> Region:
    if change.others > change.ours:
        return Region("conflict", tuple(change.start), now, then)
    return Region("incoming", now, now, then)
