"""All lines that a text had since a given version, each with the versions that added and removed it. Pure.

The structure is the interleaved delta of SCCS (M. J. Rochkind, "The Source Code Control System", 1975). Each
version can be switched off. Then its added lines are missing, and its removed lines are present.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set
from typing import NamedTuple

from watchroom.algorithms.merge import Lines, Region, diff_lines, split_lines

_START = 0
"""The adder of lines that are older than the first version of a weave."""


class _Line:
    """A line of some version.

    - ``adder``: the version that added it.
    - ``sources``: the versions that added the lines it replaced, directly or in several steps.
    - ``removers``: the versions that removed it, in order.
    """

    __slots__ = ("adder", "removers", "sources", "text")

    def __init__(self, text: str, adder: int, sources: frozenset[int] = frozenset()) -> None:
        self.text = text
        self.adder = adder
        self.sources = sources
        self.removers: list[int] = []

    def is_present(self, off: Set[int]) -> bool:
        """Return whether the text has this line when the versions ``off`` are off."""
        return self.adder not in off and all(each in off for each in self.removers)

    def list_editors(self, off: Set[int]) -> list[int]:
        """Return the versions that added or removed this line, except those in ``off``."""
        return [each for each in (self.adder, *self.removers) if each != _START and each not in off]


class _Change(NamedTuple):
    """Neighbouring lines before and after a switch.

    - ``now``: the lines before the switch.
    - ``then``: the lines after the switch.
    - ``start``: the lines older than the first version.
    - ``switched``: the first switched version that edited the lines; 0 if none did.
    - ``others``: the last other version that edited the lines; 0 if none did.
    - ``is_mixed``: whether a remaining line replaced a line of a switched version.
    """

    now: list[str]
    then: list[str]
    start: list[str]
    switched: int
    others: int
    is_mixed: bool


class LineHistory(NamedTuple):
    """A line of any version of a text.

    - ``adder``: the version that added it; 0 if it is older than the weave.
    - ``removers``: the versions that removed it, in order.
    """

    text: str
    adder: int
    removers: tuple[int, ...]

    def is_present(self, off: Set[int]) -> bool:
        """Return whether the text has this line when the versions ``off`` are off."""
        return self.adder not in off and all(each in off for each in self.removers)


class Replacement(NamedTuple):
    """Lines of ``version`` replaced lines of ``replaced``, directly or in several steps."""

    version: int
    replaced: int


class Weave:
    """The weave of a text that began as ``text``, which counts as version 0.

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
        """Add the next ``version``, after which the text is ``text``.

        - ``took``: for a revert, the versions that it switched off.
        - ``gave``: for a revert, the versions that it switched on.

        Only differences from the switched text are edits of a revert itself.
        """
        self._off = (self._off | set(took)) - set(gave)
        off = self._off
        # Most lines were never removed. A call for each of them would take most of the time.
        present = [
            n
            for n, line in enumerate(self._lines)
            if line.adder not in off and (not line.removers or line.is_present(off))
        ]
        before = join_lines(self._lines[n].text for n in present)
        after = split_lines(text)
        changes = diff_lines(before, text)
        if not changes:
            return
        woven: list[_Line] = []
        taken = 0
        for change in changes:
            # New lines follow the lines that they replace.
            end = present[change.old_end - 1] + 1 if change.old_end else 0
            if change.old_start == change.old_end:
                end = max(end, taken)
            woven += self._lines[taken:end]
            taken = end
            for n in present[change.old_start : change.old_end]:
                self._lines[n].removers.append(version)
            sources = _sources(self._lines[n] for n in present[change.old_start : change.old_end])
            woven += [_Line(each, version, sources) for each in after[change.new_start : change.new_end]]
        self._lines = [*woven, *self._lines[taken:]]

    def text(self, off: Set[int] | None = None) -> str:
        """Return the text with the versions ``off`` switched off, default the current text."""
        switched_off = self._off if off is None else off
        return join_lines(line.text for line in self._lines if line.is_present(switched_off))

    def lines(self) -> list[LineHistory]:
        """Return all lines that the text ever had, in order."""
        return [LineHistory(each.text, each.adder, tuple(each.removers)) for each in self._lines]

    def replacements(self, off: Set[int]) -> frozenset[Replacement]:
        """Return the replacements of lines of ``off`` by lines that are in the text without the versions
        ``off``.

        Such a replacing line may contain content of a version that is off. If there are no such lines, the
        text contains no content of these versions.
        """
        return frozenset(
            Replacement(line.adder, each)
            for line in self._lines
            if line.is_present(off)
            for each in line.sources & off
        )

    def switch(self, off: Set[int], entries: Set[int] = frozenset()) -> tuple[Region, ...]:
        """Return the regions between the current text and the text with the versions ``off`` switched off.

        A region is ``incoming`` if only switched versions edited it, and ``conflict`` if others edited it
        later. It is also a conflict if lines of others replaced lines of switched versions, even if the
        switch has no other effect there. ``entries``: versions whose lines are never grouped with
        neighbouring lines.
        """
        regions: list[Region] = []
        unchanged: list[str] = []

        def flush() -> None:
            if unchanged:
                lines = tuple(unchanged)
                regions.append(Region("unchanged", lines, lines, lines))
                unchanged.clear()

        for change in self._changes(off, entries):
            now, then = tuple(change.now), tuple(change.then)
            if now == then and not change.is_mixed:
                unchanged.extend(now)
                continue
            flush()
            regions.append(_build_region(change, now, then))
        flush()
        return tuple(regions)

    def _changes(self, off: Set[int], entries: Set[int]) -> Iterator[_Change]:
        """Yield groups of neighbouring lines that were edited, up to the next unedited line."""
        group = _Change([], [], [], 0, 0, is_mixed=False)
        newly_off = off - self._off
        kind: int | None = None
        """The kind of all lines in the group: 0 for edited lines, or the version if it is an entry."""
        for line in self._lines:
            if line.adder in self._off and line.adder in off:
                continue
            editors = line.list_editors(self._off & off)
            found = None if not editors else editors[0] if set(editors) <= entries else 0
            if found is None or found != kind:
                yield group
                group = _Change([], [], [], 0, 0, is_mixed=False)
            kind = found
            switched = [each for each in editors if (each in self._off) != (each in off)]
            others = [each for each in editors if each not in switched]
            group = group._replace(
                switched=min(switched + [group.switched] * bool(group.switched), default=0),
                others=max([*others, group.others]),
            )
            if line.is_present(self._off):
                group.now.append(line.text)
            if line.is_present(off):
                group.then.append(line.text)
                group = group._replace(is_mixed=group.is_mixed or bool(line.sources & newly_off))
            if line.adder == _START:
                group.start.append(line.text)
        yield group


def join_lines(lines: Iterable[str]) -> str:
    """Return the text of ``lines``. A line without a line feed gets one, unless it is the last line."""
    *above, last = [*lines] or [""]
    return "".join(each if each.endswith("\n") else f"{each}\n" for each in above) + last


def _sources(replaced: Iterable[_Line]) -> frozenset[int]:
    """Return the versions on which a line is based if it replaces the lines ``replaced``."""
    return frozenset(each for line in replaced for each in (line.adder, *line.sources) if each != _START)


def _build_region(change: _Change, now: Lines, then: Lines) -> Region:
    if change.is_mixed or change.others > change.switched:
        return Region("conflict", tuple(change.start), now, then)
    return Region("incoming", now, now, then)
