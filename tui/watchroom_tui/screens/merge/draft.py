"""A merge in progress: its rows and decisions. A draft outlives its screen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from watchroom.algorithms.merge import (
    MergedStyles,
    Regions,
    build_regions,
    find_open_regions,
    join_current,
    join_regions,
    merge_styles,
    normalize_regions,
    rebase_regions,
    split_lines,
)
from watchroom.errors import NotText, TooLarge
from watchroom.features.overview.model import Model
from watchroom.features.overview.reads import read_current, read_merge, read_text
from watchroom.features.trees.rows import side_of
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.conflicts import ConflictView, writer_of
from watchroom.model import HUMAN_PREFIX, OUTSIDE, Row
from watchroom.texts import Catalogue

from watchroom_tui.formatters.labels import path_of
from watchroom_tui.screens.merge.state import MergeState
from watchroom_tui.worker.process import WorkerProcess


class MergeSides(NamedTuple):
    """The rows whose texts are merged.

    - ``base``: the version that the incoming text started from, None if it started from nothing.
    - ``current``: the current version, None if there is none.
    - ``incoming``: the refused write or the external edit.
    - ``reverter``: the actor of the revert that left the incoming text, empty if no revert did.
    """

    base: Row | None
    current: Row | None
    incoming: Row
    reverter: str = ""

    def name_incoming(self, texts: Catalogue) -> str:
        """Return the name to show for the incoming text: a reverter, a branch or an actor. Not sanitized."""
        if self.reverter:
            return texts("merge.reverter", who=self.reverter)
        return side_of(self.incoming) or self.incoming.actor

    @property
    def version(self) -> int:
        """The number of the current version, 0 if there is none."""
        return (self.current.version or 0) if self.current else 0

    @property
    def is_deletion(self) -> bool:
        """Whether the incoming edit is external and deletes the file."""
        return self.is_outside and self.incoming.sha256 is None

    @property
    def is_no_text(self) -> bool:
        """Whether the journal lacks the content of the external edit because it is binary or too large."""
        return self.is_outside and self.incoming.error in (NotText.code, TooLarge.code)

    @property
    def is_own(self) -> bool:
        """Whether a person wrote the incoming text. Only that person can settle its conflict."""
        return self.incoming.actor.startswith(HUMAN_PREFIX)

    @property
    def is_outside(self) -> bool:
        """Whether the incoming text is an external edit."""
        return self.incoming.actor == OUTSIDE


class MergeDraft:
    """One merge and its progress. Use `load_merge` to create a draft."""

    def __init__(self, sides: MergeSides, state: MergeState, styles: MergedStyles) -> None:
        self.sides = sides
        self.state = state
        self.styles = styles
        """The styles of the texts. If the styles differ, the regions are in normal form."""
        self.newest = sides.incoming.seq
        """The newest row of the conflict that was reported to the person."""
        self.is_settled = False
        """Whether someone else has settled the conflict."""
        self.is_editing = False
        """Whether the person is editing the result."""
        self.is_committing = False
        """Whether a call that the person confirmed (commit, dismiss or revert) is running."""
        self.is_done = False
        """Whether the person has settled the conflict."""
        self._catching_up = asyncio.Lock()

    async def catch_up(self, journal: Journal, process: WorkerProcess) -> bool:
        """Merge in the current version and keep the decisions. Return False if the version is unchanged."""
        async with self._catching_up:
            head, text = await asyncio.to_thread(_read_current, journal, self.sides.incoming)
            if head == self.sides.current:
                return False
            styles = self.styles.with_current(text)
            is_same_form = styles.keeps_line_ends == self.styles.keeps_line_ends
            is_same_form = is_same_form and styles.is_normal == self.styles.is_normal
            newer = styles.normalize(text)

            def in_form(regions: Regions) -> Regions:
                return regions if is_same_form else normalize_regions(regions, styles)

            before = await asyncio.to_thread(lambda: join_current(in_form(self.state.regions)))
            changed = await process.changes(before, newer)
            while True:
                regions = self.state.regions
                with_changed_regions = await asyncio.to_thread(
                    self.state.with_changed_regions,
                    lambda each: rebase_regions(in_form(each), newer, changed),
                )
                if self.state.regions is regions:
                    break
            self.state = with_changed_regions
            self.styles = styles
            self.sides = self.sides._replace(current=head)
            return True

    def result(self) -> str:
        """Return the resolved text in the merged style. Raise ValueError if a region is open."""
        return self.styles.apply(join_regions(self.state.regions))

    @property
    def changes_style(self) -> bool:
        """Whether the style of the result differs from the style of the current version."""
        return self.styles.merged.differs_from(self.styles.current)

    @property
    def is_catching_up(self) -> bool:
        """Whether a newer version is being merged in."""
        return self._catching_up.locked()

    def find_conflict(self, conflicts: Iterable[ConflictView]) -> ConflictView | None:
        """Return the conflict that this merge settles, None if it is no longer open."""
        row = self.sides.incoming
        mine = (row.zone, row.path, writer_of(row))
        found = (each for each in conflicts if (each.zone, each.path, writer_of(each.row)) == mine)
        return next(found, None)

    def has_decisions(self, conflicts: Iterable[ConflictView]) -> bool:
        """Return whether dropping the draft would lose work while ``conflicts`` are open."""
        if self.is_settled or self.is_committing or self.is_done:
            return False
        if self.sides.is_own:
            return True
        is_begun = self.state.is_touched or self.is_editing
        return is_begun and self.find_conflict(conflicts) is not None

    def is_unsaved(self, model: Model) -> bool:
        """Return whether dropping the draft would lose decisions."""
        return self.has_decisions(model.conflicts)

    @property
    def label(self) -> str:
        """The path of the merged file."""
        row = self.sides.incoming
        return path_of(row) if row.zone == "repo" else row.path

    @property
    def left(self) -> int:
        """The number of open regions."""
        return len(find_open_regions(self.state.regions))


async def load_merge(journal: Journal, process: WorkerProcess, row: Row) -> MergeDraft:
    """Return a new draft that merges the text of ``row`` with the current version."""
    merge = await asyncio.to_thread(read_merge, journal, row)
    texts = (merge.base_text, merge.current_text, merge.incoming_text)
    styles = merge_styles(*texts)
    base, current, incoming = map(styles.normalize, texts)
    to_current, to_incoming = await asyncio.gather(
        process.changes(base, current), process.changes(base, incoming)
    )

    def build() -> MergeState:
        lines = split_lines(base), split_lines(current), split_lines(incoming)
        return MergeState(build_regions(lines, to_current, to_incoming))

    sides = MergeSides(merge.base, merge.current, merge.incoming, merge.reverter)
    return MergeDraft(sides, await asyncio.to_thread(build), styles)


def _read_current(journal: Journal, incoming: Row) -> tuple[Row | None, str]:
    current = read_current(journal, incoming)
    return current, (read_text(journal, current) or "") if current else ""
