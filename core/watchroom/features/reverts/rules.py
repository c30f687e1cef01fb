"""Computes the result of reverting versions of a path: the path's text without them, by a weave. Pure.

A revert is a switch: its row lists the versions that it turned off (``took``) and on (``gave``). It can
therefore be reverted like any other version, and lines keep their authors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom import validation
from watchroom.algorithms.merge import (
    Region,
    TextStyle,
    apply_style,
    detect_style,
    normalize_style,
    split_lines,
)
from watchroom.algorithms.weave import Weave, join_lines
from watchroom.kernel.rules.file_versions import Blob, is_executable
from watchroom.kernel.zones import SHARED
from watchroom.model import MESSAGE, REVERT_WORK, SYSTEM, Draft, Note, Row, Zone

PlanKind: TypeAlias = Literal["clean", "conflict", "nothing", "cannot"]
"""The effect of a revert on a path.

- ``clean``: it removes all selected changes.
- ``conflict``: people must decide on some of them.
- ``nothing``: there is nothing left to remove.
- ``cannot``: it cannot revert the path.
"""

Place: TypeAlias = tuple[Zone, str]

NOT_KEPT: Final = "not_kept"
"""The reason why a path cannot be reverted: it was binary, and its bytes are not kept."""
TOO_MANY: Final = "too_many_versions"
"""The reason why a path cannot be reverted: it has too many versions."""
WITHDRAWN: Final = "withdrawn"
"""The result for an item that nobody has used: it is withdrawn."""
SUBJECT_CHARACTERS: Final = 200
"""Maximum characters of a message as it is shown in lists. The content of its row has the whole text."""


def is_revert_row(row: Row) -> bool:
    """Return whether ``row`` was made by a revert. The detail is no proof, because agents can write anything
    into it."""
    return row.tool == REVERT_WORK and row.kind in ("human", "system")


def draft_notice(receiver: str, text: str) -> Note:
    """Return the message with ``text`` by which Watchroom notifies the agent ``receiver``."""
    subject = validation.escape_unstorable(text, SUBJECT_CHARACTERS)
    return Note(SYSTEM, MESSAGE, "agent", receiver, message=subject, content=text)


class PathVersion(NamedTuple):
    """A version of a path.

    - ``content``: its text, None if the version deletes the path.
    - ``is_text``: False if ``content`` is a placeholder for a binary file.
    - ``took``, ``gave``: the versions that it turned off and on, if a revert made it.
    - ``is_entry``: it only appended an entry that is independent of the others.
    - ``blob``: the bytes of a binary file, if known.
    - ``executable``: whether the file may be executed.
    """

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
        """Whether a revert made the version."""
        return bool(self.took or self.gave)

    @property
    def text(self) -> str:
        """The text of the version, empty if it has none."""
        return (self.content or "") if self.is_text else ""


class PathPlan(NamedTuple):
    """The effect of a revert on a path.

    - ``content``: the new text, None if the path is deleted.
    - ``proposal``: the text if people remove all selected changes. It differs from ``content`` only in
      conflicts.
    - ``took``, ``gave``: the versions that the revert turns off and on.
    - ``reason``: the reason why the path cannot be reverted.
    - ``blob``: the new bytes of a binary file, for which ``content`` is the placeholder.
    - ``executable``: whether the file may be executed afterwards.
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
    """The work to revert. Work of people, and external edits, are never reverted.

    - ``agents``: the agents whose work is reverted; empty means all agents.
    - ``task``: only agents of this task.
    - ``after``, ``until``: only rows after ``after`` up to ``until``; None means up to now.
    - ``left_out``: paths that are not changed.
    - ``undo``: the id of a revert to undo; it replaces all other fields.
    - ``decided``: private files and task files whose selected changes are all removed, even if others built
      on them. They have no merge screen.
    - ``decides_all``: treat all such files as ``decided``.
    - ``with_spawned``: also revert the work of agents that the selected agents spawned, recursively.
    """

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
        """Return whether the selection decides a conflict at ``place``."""
        return place[0] not in SHARED and (self.decides_all or place in self.decided)


class PlannedPath(NamedTuple):
    """The effect of a revert on ``path`` in ``zone``.

    - ``head``: the current version.
    - ``current``: the text of ``head``, None if it is deleted.
    - ``base``: the version before the first reverted version, 0 if there is none.
    """

    zone: Zone
    path: str
    plan: PathPlan
    head: Row
    current: str | None
    base: int

    @property
    def makes_version(self) -> bool:
        """Whether the revert changes the file."""
        return self.plan.executable != is_executable(self.head) or self.plan.content != self.current


class PlannedItem(NamedTuple):
    """The effect of a revert on an item without versions of text at ``path`` in ``zone``: a document, handoff
    or request.

    - ``plan``: its kind, a ``reason``, and in ``proposal`` the text that shows the result.
    - ``current``: the text that shows the current state.
    - ``drafts``: the rows of the revert. The actor and the revert's id are added at the commit.
    """

    zone: Zone
    path: str
    plan: PathPlan
    current: str | None = None
    drafts: tuple[Draft, ...] = ()


class ClientEdit(NamedTuple):
    """The number of ``times`` that ``agent`` edited the file at ``path`` with its client's own tools.
    ``path``: relative to ``folder``, in which its session began, if the file is in it."""

    agent: str
    path: str
    folder: str
    times: int


class RevertPlan(NamedTuple):
    """The planned effects of a revert, as of row ``until``.

    - ``agents``: the agents whose work is reverted.
    - ``paths``, ``items``: the effect on each path and item.
    - ``not_reverted``: the number of other operations by zone, which cannot be reverted.
    - ``client_edits``: the newest files that agents edited with their clients' own tools. They have no
      versions, and cannot be reverted.
    """

    until: int
    agents: tuple[str, ...]
    paths: tuple[PlannedPath, ...]
    not_reverted: Mapping[str, int]
    items: tuple[PlannedItem, ...] = ()
    client_edits: tuple[ClientEdit, ...] = ()

    def of_kind(self, *kinds: str) -> list[PlannedPath]:
        """Return the paths whose plans are of one of these ``kinds``."""
        return [each for each in self.paths if each.plan.kind in kinds]

    def changes(self, *kinds: str) -> list[PlannedPath | PlannedItem]:
        """Return the paths and items whose plans are of one of these ``kinds``."""
        planned: list[PlannedPath | PlannedItem] = [*self.paths, *self.items]
        return [each for each in planned if each.plan.kind in kinds]


def mode_change(planned: PlannedPath | PlannedItem) -> list[str]:
    """Return the lines of a git patch for the change of the file's executable bit, empty if it does not
    change."""
    if not isinstance(planned, PlannedPath) or planned.plan.content is None:
        return []
    before, after = is_executable(planned.head), planned.plan.executable
    modes = ("100644", "100755")
    return [] if before == after else [f"old mode {modes[before]}", f"new mode {modes[after]}"]


def first_needed(selected: Collection[int], versions: Sequence[PathVersion]) -> int:
    """Return the first version of a path that is needed to revert the versions ``selected``.

    ``versions``: all versions up to the newest. Versions that later reverts switched are also needed.
    """
    return min([*selected, *(each for version in versions for each in (*version.took, *version.gave))])


def plan_path(
    selected: Collection[int], versions: Sequence[PathVersion], before: PathVersion | None
) -> PathPlan:
    """Plan the revert of the versions ``selected`` of a path.

    - ``versions``: all versions from `first_needed` to the newest.
    - ``before``: the version before them, None if there was no file.

    Binary files have no lines. A binary version removes all lines, and the result is the last version that is
    not reverted. If versions differ in style, lines are compared in normal form.
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
        # A removed binary file cannot be kept in part.
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
    """Plan a text with these ``regions``.

    - ``current``: the current text, None if it is deleted.
    - ``exists``: whether the file exists afterwards.
    """
    has_conflict = any(region.kind == "conflict" for region in regions)
    content: str | None = join_lines(line for region in regions for line in _settled(region))
    proposal: str | None = join_lines(line for region in regions for line in region.incoming)
    if not exists:
        if current is None:
            return PathPlan("nothing")
        if not proposal and not has_conflict:
            content = proposal = None
    elif current is None and has_conflict:
        # The text replaces no work of others.
        content, has_conflict = proposal, False
    return PathPlan("conflict" if has_conflict else "clean", content, proposal)


def _whole(text: str) -> Region:
    """Return a single region with all lines of ``text``, without a conflict."""
    return Region("incoming", (), (), tuple(split_lines(text)))


def _switched(
    off: frozenset[int], selected: Collection[int], versions: Sequence[PathVersion]
) -> frozenset[int]:
    """Return the versions that are off after the versions ``selected`` are reverted. Reverting a revert turns
    its versions on again."""
    known = {each.number: each for each in versions}
    for number in sorted(set(selected) - off, reverse=True):
        version = known[number]
        off = ((off - version.took) | version.gave) | {number}
    return off


def _exists(off: frozenset[int], versions: Sequence[PathVersion], before: str | None) -> bool:
    """Return whether the file exists without the versions ``off``. The newest remaining creation or deletion
    decides."""
    exists = was = before is not None
    for each in versions:
        is_there = each.content is not None
        if is_there != was and each.number not in off:
            exists = is_there
        was = is_there
    return exists


def _last_brought(off: frozenset[int], versions: Sequence[PathVersion], start: PathVersion) -> PathVersion:
    """Return the last version that is neither in ``off`` nor a revert; ``start`` if there is none."""
    brought = (each for each in reversed(versions) if each.number not in off and not each.is_revert)
    return next(brought, start)


def _is_executable(off: frozenset[int], versions: Sequence[PathVersion], start: PathVersion) -> bool:
    """Return whether the file is executable without the versions ``off``. The newest remaining change of the
    executable bit decides."""
    found = was = start.executable
    for each in versions:
        if each.executable != was and each.number not in off and not each.is_revert:
            found = each.executable
        was = each.executable
    return found


def _find_styles(start: PathVersion, versions: Sequence[PathVersion]) -> Sequence[TextStyle]:
    """Return the styles of ``start`` and of ``versions``, empty if they are all equal, or if line ends are
    mixed."""
    styles = [detect_style(each.text) for each in (start, *versions)]
    known = [set(values) - {None} for values in zip(*styles, strict=True)]
    differ = any(len(values) > 1 for values in known)
    return styles if differ and "mixed" not in known[0] else ()


def _style(off: frozenset[int], versions: Sequence[PathVersion], styles: Sequence[TextStyle]) -> TextStyle:
    """Return the style if the versions ``off`` are off: for each property, by its last change that stays on.

    ``styles``: begins with the style before ``versions``.
    """
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
    """Return the lines of ``region`` that stay until people decide."""
    return region.current if region.kind == "conflict" else region.incoming
