"""`SettledConflicts`: applies people's choices in conflicts of earlier landings to the next landing.

A choice is used again in two ways. If the three sides of a region equal those of a region in an earlier
landing of a file of the same name, the region gets the same lines. Otherwise, the whole text that people
chose for this tree is merged with the later changes of both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from watchroom.algorithms.merge import (
    Lines,
    Region,
    apply_edit,
    find_open_regions,
    join_regions,
    merge,
    merge_styles,
)
from watchroom.features.config.store import Store
from watchroom.features.trees.git_merge import ConflictTexts
from watchroom.features.trees.rows import LANDING_PREFIX, REPO, split_repo_path
from watchroom.features.trees.write_rules import MAX_MERGED_CHARACTERS, merge_texts
from watchroom.kernel.rules.conflicts import named_conflicts
from watchroom.kernel.rules.details import get_int
from watchroom.model import Row

MAX_CONFLICT_ROWS: Final = 100
"""Maximum number of conflicts and decisions about a path that are read."""
_MAX_PATHS: Final = 10
_MAX_CHOICES: Final = 10
"""Maximum number of trees, and of decisions for each of them, that are searched for equal regions."""
_Sides: TypeAlias = tuple[Lines, Lines, Lines]


class Choice(NamedTuple):
    """A conflict, and the text that a person chose."""

    texts: ConflictTexts
    chosen: str


class Settled(NamedTuple):
    """The known choices in a conflict.

    - ``text``: the merged text; None if people still have to choose.
    - ``texts``: the three texts, made equal in the regions that were settled before.
    - ``is_remembered``: an earlier choice is used.
    """

    text: str | None
    texts: ConflictTexts
    is_remembered: bool


class SettledConflicts:
    """Reads choices from rows.

    - ``store``: the journal.
    - ``counts``: returns whether a person's decision counts.
    """

    def __init__(self, store: Store, counts: Callable[[Row], bool]) -> None:
        self._store = store
        self._counts = counts

    def apply(self, path: str, texts: ConflictTexts) -> Settled:
        """Return the choices of people that apply to a conflict at ``path`` in the zone `REPO`."""
        if max(map(len, texts)) > MAX_MERGED_CHARACTERS:
            return Settled(None, texts, is_remembered=False)
        styles = merge_styles(*texts)
        regions = merge(*texts)
        known = self._read_regions(path)
        settled = tuple(_settle(each, known) for each in regions)
        # Git can have a conflict in which these regions have none.
        if find_open_regions(regions) and not find_open_regions(settled):
            return Settled(styles.apply(join_regions(settled)), texts, is_remembered=True)
        moved = self._move_choice(path, texts)
        if moved is not None:
            return Settled(moved, texts, is_remembered=True)
        if settled == regions or styles.is_normal:
            return Settled(None, texts, is_remembered=False)
        ours, theirs = (
            "".join(line for region in settled for line in (region.text if region.choice else side(region)))
            for side in (_current, _incoming)
        )
        return Settled(None, ConflictTexts(texts.base, ours, theirs), is_remembered=True)

    def _read_regions(self, path: str) -> dict[_Sides, Lines]:
        """Return the chosen lines by the sides of their region, for files with the name of ``path``."""
        _, name = split_repo_path(path)
        heads = self._store.journal.heads(REPO, LANDING_PREFIX)
        paths = [row for row in heads if split_repo_path(row.path)[1] == name]
        newest = sorted(paths, key=lambda row: row.seq)[-_MAX_PATHS:]
        read = (each for row in newest for each in islice(self._read_choices(row.path), _MAX_CHOICES))
        choices = sorted(read, key=_number)
        found: dict[_Sides, Lines] = {}
        for _, choice in choices:
            for region in _find_chosen(choice):
                found[region.base, region.current, region.incoming] = region.text
                found[region.base, region.incoming, region.current] = region.text
        return found

    def _read_choices(self, path: str) -> Iterator[tuple[int, Choice]]:
        """Yield the conflicts at ``path`` that people settled, newest first, each with the number of the
        decision."""
        journal = self._store.journal
        refused = {row.seq: row for row in journal.refused(REPO, path, limit=MAX_CONFLICT_ROWS)}
        for settlement in sorted(journal.settled(REPO, path), key=lambda row: row.seq, reverse=True):
            named = [refused[each] for each in named_conflicts(settlement) if each in refused]
            if not named or not self._counts(settlement):
                continue
            conflict = named[-1]
            number = get_int(conflict.detail, "current") or 0
            base, current = (journal.version(REPO, path, each) for each in (conflict.base or 0, number))
            if base is None or current is None:
                continue
            ours = journal.content(current.seq)
            chosen = journal.content(settlement.seq) if settlement.version else ours
            texts = (journal.content(base.seq), ours, journal.content(conflict.seq))
            sides = [each for each in texts if each is not None]
            if len(sides) == len(texts) and chosen is not None:
                yield settlement.seq, Choice(ConflictTexts(*sides), chosen)

    def _move_choice(self, path: str, texts: ConflictTexts) -> str | None:
        """Return the text that people chose for the newest conflict at ``path``, with the later changes of
        both sides. None if there is no such text, or if these changes overlap the choice."""
        for _, (before, chosen) in self._read_choices(path):
            moved = merge_texts(before.ours, chosen, texts.ours)
            return None if moved is None else merge_texts(before.theirs, moved, texts.theirs)
        return None


def _find_chosen(choice: Choice) -> Iterator[Region]:
    """Yield the conflicting regions of ``choice``, each with the chosen lines as its text."""
    if max(map(len, (*choice.texts, choice.chosen))) > MAX_MERGED_CHARACTERS:
        return
    styles = merge_styles(*choice.texts)
    regions = merge(*choice.texts)
    known = {_sides_of(each) for each in regions if each.is_open}
    for region in apply_edit(regions, styles.normalize(choice.chosen)):
        if region.choice == "edited" and _sides_of(region) in known:
            yield region


def _settle(region: Region, known: dict[_Sides, Lines]) -> Region:
    text = known.get(_sides_of(region)) if region.is_open else None
    return region if text is None else region._replace(choice="edited", text=text)


def _sides_of(region: Region) -> _Sides:
    return region.base, region.current, region.incoming


def _current(region: Region) -> Lines:
    return region.current


def _incoming(region: Region) -> Lines:
    return region.incoming


def _number(choice: tuple[int, Choice]) -> int:
    return choice[0]
