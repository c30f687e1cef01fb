"""What becomes of a path when versions of it are reverted: its text without them, told by a weave. Pure.

A revert is a switch: its row says which versions it turned off (``took``) and which on (``gave``), so that it
is reverted as any other version is, and the lines are their authors' again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.merge import Region
from watchroom.model import SHARED, Draft, Row, Zone
from watchroom.rules.weave import Weave, join_lines

PlanKind: TypeAlias = Literal["clean", "conflict", "nothing", "cannot"]
"""What a revert does to a path: all of it, a part that people have to decide about the rest of, nothing
since it makes no difference any more, or nothing since it cannot."""

Place: TypeAlias = tuple[Zone, str]

NOT_KEPT: Final = "not_kept"
"""Why a path cannot be reverted: of files that are no texts only the checksums are kept."""


class PathVersion(NamedTuple):
    """A version of a path. ``content`` is None where it was deleted; ``is_text`` is false where only its
    checksum is kept. ``took`` and ``gave`` are what a revert switched. ``is_entry``: it only added something
    that stands for itself."""

    number: int
    content: str | None
    is_text: bool = True
    took: frozenset[int] = frozenset()
    gave: frozenset[int] = frozenset()
    is_entry: bool = False


class PathPlan(NamedTuple):
    """What a revert does to a path.

    ``content`` is the text that it gets (None: it is deleted), ``proposal`` the one that it would have if
    people decide so everywhere: another one only where the ``kind`` is ``conflict``. ``took`` and ``gave``
    are the versions that it turns off and on, ``reason`` says why it cannot.
    """

    kind: PlanKind
    content: str | None = None
    proposal: str | None = None
    took: tuple[int, ...] = ()
    gave: tuple[int, ...] = ()
    reason: str = ""


class RevertSelection(NamedTuple):
    """What is to be reverted: what ``agents`` did (none: all agents), those of ``task`` if one is named,
    after row ``after`` and up to row ``until`` (None: up to now), without the paths ``left_out``; or, with
    ``undo``, the revert with that id. What people did, or somebody outside, never is.

    ``decided`` are private files and files of tasks, which have no merge screen, of which all that is
    selected goes, also where others went on from it; with ``decides_all`` it is all of them.
    ``with_spawned`` are selected, too, those whom the selected spawned since then, and whom these did."""

    agents: tuple[str, ...] = ()
    task: str = ""
    after: int = 0
    until: int | None = None
    left_out: tuple[Place, ...] = ()
    undo: str = ""
    decided: tuple[Place, ...] = ()
    decides_all: bool = False
    with_spawned: bool = False

    def decides(self, place: Place) -> bool:
        """Whether it says what becomes of a conflict at ``place``."""
        return place[0] not in SHARED and (self.decides_all or place in self.decided)


class PlannedPath(NamedTuple):
    """What a revert does to ``path`` in ``zone``: its current version is ``head`` with the text ``current``
    (None: deleted); ``base`` is the version before the first one that is reverted, 0 if there was none."""

    zone: Zone
    path: str
    plan: PathPlan
    head: Row
    current: str | None
    base: int


class PlannedItem(NamedTuple):
    """What a revert does to something that is no text with versions, at ``path`` in ``zone``: a document, a
    handoff, a request.

    ``plan`` has its ``kind``, a ``reason`` that says what becomes of it, and the texts by which it is shown
    (``current`` now, ``plan.proposal`` afterwards). ``drafts`` are the rows that do it; who reverts, and
    which revert it is, is put in when they are committed.
    """

    zone: Zone
    path: str
    plan: PathPlan
    current: str | None = None
    drafts: tuple[Draft, ...] = ()


class RevertPlan(NamedTuple):
    """What a revert does as of row ``until``: to each path and each of the ``items``, in their order.
    ``agents`` are those whose work it is; ``not_reverted`` counts by zone what they did besides that cannot
    be undone."""

    until: int
    agents: tuple[str, ...]
    paths: tuple[PlannedPath, ...]
    not_reverted: Mapping[str, int]
    items: tuple[PlannedItem, ...] = ()

    def of_kind(self, *kinds: str) -> list[PlannedPath]:
        """The paths whose plans are of these ``kinds``."""
        return [each for each in self.paths if each.plan.kind in kinds]

    def changes(self, *kinds: str) -> list[PlannedPath | PlannedItem]:
        """The paths and items whose plans are of these ``kinds``."""
        planned: list[PlannedPath | PlannedItem] = [*self.paths, *self.items]
        return [each for each in planned if each.plan.kind in kinds]


def first_needed(selected: Collection[int], versions: Sequence[PathVersion]) -> int:
    """The first version of a path that has to be known to revert those ``selected``, when ``versions`` are
    known, up to the newest one: all that was switched meanwhile, too."""
    return min([*selected, *(each for version in versions for each in (*version.took, *version.gave))])


def plan_path(selected: Collection[int], versions: Sequence[PathVersion], before: str | None) -> PathPlan:
    """What reverting the versions ``selected`` of a path does to it. ``versions`` are all from
    `first_needed` to the newest one, and ``before`` is the text before them (None: there was no file)."""
    now = versions[-1]
    weave = Weave(before or "")
    for each in versions:
        if each.is_text:
            weave.add(each.number, each.content or "", each.took, each.gave)
    off = _switched(weave.off, selected, versions)
    took, gave = off - weave.off, weave.off - off
    if not took and not gave:
        return PathPlan("nothing")
    if not all(each.is_text for each in versions):
        # Whoever replaced it meanwhile wrote all that is there.
        return PathPlan("cannot", reason=NOT_KEPT) if now.number in took else PathPlan("nothing")
    entries = {each.number for each in versions if each.is_entry}
    regions = weave.switch(off, entries)
    has_conflict = any(region.kind == "conflict" for region in regions)
    content: str | None = join_lines(line for region in regions for line in _settled(region))
    proposal: str | None = join_lines(line for region in regions for line in region.incoming)
    if not _exists(off, versions, before):
        if now.content is None:
            return PathPlan("nothing")
        if not proposal and not has_conflict:
            content = proposal = None
    elif now.content is None and has_conflict:
        # There is nothing of anyone's that the text would replace.
        content, has_conflict = proposal, False
    switched = tuple(sorted(took)), tuple(sorted(gave))
    if has_conflict:
        return PathPlan("conflict", content, proposal, *switched)
    if content == now.content:
        return PathPlan("nothing")
    return PathPlan("clean", content, content, *switched)


def _switched(
    off: frozenset[int], selected: Collection[int], versions: Sequence[PathVersion]
) -> frozenset[int]:
    """The versions that are off once those ``selected`` are reverted, too. What a revert turned off is on
    again without it."""
    known = {each.number: each for each in versions}
    for number in sorted(set(selected) - off, reverse=True):
        version = known[number]
        off = ((off - version.took) | version.gave) | {number}
    return off


def _exists(off: frozenset[int], versions: Sequence[PathVersion], before: str | None) -> bool:
    """Whether there is a file when the versions ``off`` are off: as the newest birth or death says that is
    not one of them."""
    exists = was = before is not None
    for each in versions:
        is_there = each.content is not None
        if is_there != was and each.number not in off:
            exists = is_there
        was = is_there
    return exists


def _settled(region: Region) -> tuple[str, ...]:
    """The lines of ``region`` until people have decided."""
    return region.current if region.kind == "conflict" else region.incoming
