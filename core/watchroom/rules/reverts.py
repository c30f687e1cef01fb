"""What becomes of a path when versions of it are reverted: its text without them, told by a weave. Pure.

A revert is a switch: its row says which versions it turned off (``took``) and which on (``gave``), so that it
is reverted as any other version is, and the lines are their authors' again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.merge import Region, TextStyle, apply_style, normalize_style, split_lines, style_of
from watchroom.model import SHARED, Draft, Row, Zone
from watchroom.rules.task_versions import Blob, is_executable
from watchroom.rules.weave import Weave, join_lines

PlanKind: TypeAlias = Literal["clean", "conflict", "nothing", "cannot"]
"""What a revert does to a path: all of it, a part that people have to decide about the rest of, nothing
since it makes no difference any more, or nothing since it cannot."""

Place: TypeAlias = tuple[Zone, str]

NOT_KEPT: Final = "not_kept"
"""Why a path cannot be reverted: it was no text, and its bytes are not kept, or not any more."""


class PathVersion(NamedTuple):
    """A version of a path. ``content`` is None where it was deleted; ``is_text`` is false where something
    stands for it there, and ``blob`` is then what it has, if that is known. ``took`` and ``gave`` are what a
    revert switched. ``is_entry``: it only added something that stands for itself. ``executable``: whether
    the file may be executed."""

    number: int
    content: str | None
    is_text: bool = True
    took: frozenset[int] = frozenset()
    gave: frozenset[int] = frozenset()
    is_entry: bool = False
    blob: Blob | None = None
    executable: bool = False

    @property
    def is_revert(self) -> bool:
        """Whether a revert made it."""
        return bool(self.took or self.gave)

    @property
    def text(self) -> str:
        """The text that it has, empty where it has none."""
        return (self.content or "") if self.is_text else ""


class PathPlan(NamedTuple):
    """What a revert does to a path.

    ``content`` is the text that it gets (None: it is deleted), ``proposal`` the one that it would have if
    people decide so everywhere: another one only where the ``kind`` is ``conflict``. ``took`` and ``gave``
    are the versions that it turns off and on, ``reason`` says why it cannot. Where ``blob`` is given the file
    gets these bytes, for which the ``content`` stands. ``executable``: whether it may be executed afterwards.
    """

    kind: PlanKind
    content: str | None = None
    proposal: str | None = None
    took: tuple[int, ...] = ()
    gave: tuple[int, ...] = ()
    reason: str = ""
    blob: Blob | None = None
    executable: bool = False


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

    @property
    def makes_version(self) -> bool:
        """Whether the file is another one afterwards."""
        return self.plan.executable != is_executable(self.head) or self.plan.content != self.current


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


class ClientEdit(NamedTuple):
    """That ``agent`` edited the file at ``path`` so many ``times`` by its client's own tools. The path is
    relative to ``folder``, where its session began, if it is in it."""

    agent: str
    path: str
    folder: str
    times: int


class RevertPlan(NamedTuple):
    """What a revert does as of row ``until``: to each path and each of the ``items``, in their order.
    ``agents`` are those whose work it is; ``not_reverted`` counts by zone what they did besides that cannot
    be undone. ``client_edits`` are the newest of the files that they edited by their clients' own tools:
    there are no versions of these to go back to."""

    until: int
    agents: tuple[str, ...]
    paths: tuple[PlannedPath, ...]
    not_reverted: Mapping[str, int]
    items: tuple[PlannedItem, ...] = ()
    client_edits: tuple[ClientEdit, ...] = ()

    def of_kind(self, *kinds: str) -> list[PlannedPath]:
        """The paths whose plans are of these ``kinds``."""
        return [each for each in self.paths if each.plan.kind in kinds]

    def changes(self, *kinds: str) -> list[PlannedPath | PlannedItem]:
        """The paths and items whose plans are of these ``kinds``."""
        planned: list[PlannedPath | PlannedItem] = [*self.paths, *self.items]
        return [each for each in planned if each.plan.kind in kinds]


def mode_change(planned: PlannedPath | PlannedItem) -> list[str]:
    """The lines, as git has them, that say whether the file may be executed before and after ``planned``;
    empty where that stays as it is."""
    if not isinstance(planned, PlannedPath) or planned.plan.content is None:
        return []
    before, after = is_executable(planned.head), planned.plan.executable
    modes = ("100644", "100755")
    return [] if before == after else [f"old mode {modes[before]}", f"new mode {modes[after]}"]


def first_needed(selected: Collection[int], versions: Sequence[PathVersion]) -> int:
    """The first version of a path that has to be known to revert those ``selected``, when ``versions`` are
    known, up to the newest one: all that was switched meanwhile, too."""
    return min([*selected, *(each for version in versions for each in (*version.took, *version.gave))])


def plan_path(
    selected: Collection[int], versions: Sequence[PathVersion], before: PathVersion | None
) -> PathPlan:
    """What reverting the versions ``selected`` of a path does to it. ``versions`` are all from
    `first_needed` to the newest one, and ``before`` is the one before them (None: there was no file).

    Bytes have no lines: a version that is no text takes away all lines, and what is there is whole what the
    last version brought that is not off. Where versions differ in style, lines are compared in normal form.
    """
    start, now = before or PathVersion(0, None), versions[-1]
    styles = _find_styles(start, versions)
    normalize = normalize_style if styles else str
    weave = Weave(normalize(start.text))
    for each in versions:
        weave.add(each.number, normalize(each.text), each.took, each.gave)
    off = _switched(weave.off, selected, versions)
    took, gave = off - weave.off, weave.off - off
    if not took and not gave:
        return PathPlan("nothing")
    stands, stood = _last_brought(off, versions, start), _last_brought(weave.off, versions, start)
    executable = _is_executable(off, versions, start)
    if stands.is_text:
        exists = _exists(off, versions, start.content)
        entries = {each.number for each in versions if each.is_entry}
        # Of bytes that go there is nothing that people could keep.
        regions = weave.switch(off, entries) if stood.is_text else [_whole(weave.text(off))]
        plan = _plan_text(regions, now.content, exists=exists)
        if styles:
            plan = _with_style(plan, _style(off, versions, styles))
    elif stands.blob is None and stands is not stood:
        return PathPlan("cannot", reason=NOT_KEPT)
    else:
        plan = PathPlan("clean", stands.content, stands.content, blob=stands.blob)
    executable = executable and plan.content is not None
    is_as_now = plan.kind == "clean" and plan.content == now.content and executable == now.executable
    if plan.kind == "nothing" or is_as_now:
        return PathPlan("nothing")
    return plan._replace(took=tuple(sorted(took)), gave=tuple(sorted(gave)), executable=executable)


def _plan_text(regions: Sequence[Region], current: str | None, *, exists: bool) -> PathPlan:
    """What becomes of a text with these ``regions`` that is ``current`` now (None: deleted); whether there is
    a file afterwards, ``exists`` says."""
    has_conflict = any(region.kind == "conflict" for region in regions)
    content: str | None = join_lines(line for region in regions for line in _settled(region))
    proposal: str | None = join_lines(line for region in regions for line in region.incoming)
    if not exists:
        if current is None:
            return PathPlan("nothing")
        if not proposal and not has_conflict:
            content = proposal = None
    elif current is None and has_conflict:
        # There is nothing of anyone's that the text would replace.
        content, has_conflict = proposal, False
    return PathPlan("conflict" if has_conflict else "clean", content, proposal)


def _whole(text: str) -> Region:
    """A region of all lines of ``text``, which nobody has to decide about."""
    return Region("incoming", (), (), tuple(split_lines(text)))


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


def _last_brought(off: frozenset[int], versions: Sequence[PathVersion], start: PathVersion) -> PathVersion:
    """The last version that brought something of its own when the versions ``off`` are off."""
    brought = (each for each in reversed(versions) if each.number not in off and not each.is_revert)
    return next(brought, start)


def _is_executable(off: frozenset[int], versions: Sequence[PathVersion], start: PathVersion) -> bool:
    """Whether the file may be executed when the versions ``off`` are off: as the last one says that changed
    it and is not one of them."""
    found = was = start.executable
    for each in versions:
        if each.executable != was and each.number not in off and not each.is_revert:
            found = each.executable
        was = each.executable
    return found


def _find_styles(start: PathVersion, versions: Sequence[PathVersion]) -> Sequence[TextStyle]:
    """The styles of ``start`` and of ``versions``; empty if they are the same, or line ends are mixed."""
    styles = [style_of(each.text) for each in (start, *versions)]
    known = [set(values) - {None} for values in zip(*styles, strict=True)]
    differ = any(len(values) > 1 for values in known)
    return styles if differ and "mixed" not in known[0] else ()


def _style(off: frozenset[int], versions: Sequence[PathVersion], styles: Sequence[TextStyle]) -> TextStyle:
    """The style when the versions ``off`` are off: each property as the last version says that changed it and
    is not one of them. ``styles`` begin with that before ``versions``."""
    found = was = styles[0]
    for each, style in zip(versions, styles[1:], strict=True):
        for name, value in style._asdict().items():
            before = getattr(was, name)
            if value is not None and value != before:
                if before is None or (each.number not in off and not each.is_revert):
                    found = found._replace(**{name: value})
                was = was._replace(**{name: value})
    return found


def _with_style(plan: PathPlan, style: TextStyle) -> PathPlan:
    content, proposal = (
        None if text is None else apply_style(text, style) for text in (plan.content, plan.proposal)
    )
    return plan._replace(content=content, proposal=proposal)


def _settled(region: Region) -> tuple[str, ...]:
    """The lines of ``region`` until people have decided."""
    return region.current if region.kind == "conflict" else region.incoming
