"""Revert the work of an agent since a moment, after a preview."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, TypeAlias

from textual import work
from watchroom.algorithms.merge import diff_hunks
from watchroom.errors import WatchroomError
from watchroom.features.reverts.rules import (
    PlanKind,
    PlannedItem,
    PlannedPath,
    RevertPlan,
    RevertSelection,
    mode_change,
)
from watchroom.model import REVERT_WORK, Json, Row
from watchroom.texts import Catalogue

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.confirm import SheetDialog
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.client_calls import client_edit_lines
from watchroom_tui.formatters.local_time import local_time
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines

_SECONDS: Final = (60, 300, 900, 3600, 6 * 3600, 24 * 3600, None)
"""Seconds to go back, by step. None: to the beginning."""
_MARKS: Final[Mapping[PlanKind, tuple[str, str]]] = {
    "clean": ("✓", "ok"),
    "conflict": ("!", "warning"),
    "nothing": ("·", "dim"),
    "cannot": ("✖", "error"),
}
PlanRevert: TypeAlias = Callable[[RevertSelection], RevertPlan]
_MOST_PATHS: Final = 200
_MOST_LINES: Final = 200
"""Maximum number of lines of one difference."""


class RevertSubject(NamedTuple):
    """The work to revert.

    - ``agent``: the agent, empty for all agents.
    - ``after``: the last row before the work. None: the person chooses.
    - ``undo``: the id of a revert to undo instead.
    """

    agent: str = ""
    after: int | None = None
    undo: str = ""


class RevertDialog(SheetDialog):
    """Preview and execution of a revert, as the person. The result is whether the revert succeeded."""

    BINDINGS = bindings("revert")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("revert", "confirm")
    TEXT_TITLE: ClassVar = "revert.title"
    TEXT_MISSING: ClassVar = "revert.planning"

    def __init__(self, subject: RevertSubject, texts: Catalogue) -> None:
        super().__init__(texts("revert.title"), texts("revert.planning"))
        self._subject = subject
        self._step: int | None = None
        """The shown step back. None: the first step with any work."""
        self._clean_only = False
        self._decides_all = False
        """Whether changes without a merge screen are reverted even if later changes build on them."""
        self._with_spawned = False
        """Whether the work of spawned agents is reverted too."""
        self._shown: RevertSelection | None = None

    def on_mount(self) -> None:
        super().on_mount()
        self.load()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        has_steps = self._subject.after is None and not self._subject.undo
        # An undo covers exactly one revert, and a revert of all agents includes spawned agents.
        has_spawned = bool(self._subject.agent) and not self._subject.undo
        hidden = {"go_back": not has_steps, "flip_spawned": not has_spawned}
        return not hidden.get(action, False)

    @work(exclusive=True, group="plan")
    async def load(self) -> None:
        """Plan the revert, show the preview, and ask for confirmation."""
        self._shown = None
        app = self.dashboard
        workspace = await app.wait_for_workspace()
        if workspace is None:
            self.dismiss(False)
            return
        try:
            self._step, selection, plan = await asyncio.to_thread(self._plan, workspace.reverts.plan)
        except WatchroomError as error:
            app.show_message(f"{error.message(app.language)} {error.suggestion(app.language)}", "error")
            self.dismiss(False)
            return
        await self._show(selection, plan)

    def _plan(self, plan_revert: PlanRevert) -> tuple[int, RevertSelection, RevertPlan]:
        """Return the step with its selection and plan: the chosen step, else the first step with any work."""
        last = len(_SECONDS) - 1
        step = 0 if self._step is None else self._step
        while True:
            selection = self._select(step)._replace(
                decides_all=self._decides_all, with_spawned=self._with_spawned
            )
            plan = plan_revert(selection)
            is_given = self._step is not None or selection.undo or self._subject.after is not None
            has_any = plan.changes("clean", "conflict", "cannot") or plan.client_edits
            if has_any or is_given or step == last:
                return step, selection, plan
            step += 1

    def _select(self, step: int) -> RevertSelection:
        subject, journal = self._subject, self.dashboard.journal
        agents = (subject.agent,) if subject.agent else ()
        if subject.undo:
            return RevertSelection(undo=subject.undo)
        if subject.after is not None:
            return RevertSelection(agents, after=subject.after)
        seconds = _SECONDS[step]
        after = 0 if seconds is None else journal.seq_at(max(0, journal.now() - seconds * 10**9))
        return RevertSelection(agents, after=after)

    async def _show(self, selection: RevertSelection, plan: RevertPlan) -> None:
        texts = self.dashboard.texts
        moment = await asyncio.to_thread(self._moment, selection)
        chosen = _chosen(plan, self._clean_only)
        who = ", ".join(plan.agents[:10]) if selection.undo else self._subject.agent
        who = sanitize(who) or texts("revert.everybody")
        title = texts("revert.undo_title" if selection.undo else "revert.since", agent=who, moment=moment)
        lines = await asyncio.to_thread(plan_lines, plan, texts)
        self.text_view.show_notice(("revert", selection, self._clean_only), lines, title=title)
        conflicts = 0 if self._clean_only else len(plan.of_kind("conflict"))
        if chosen:
            question = texts(
                "revert.question_conflicts" if conflicts else "revert.question",
                changes=texts(
                    "revert.changes_one" if len(chosen) == 1 else "revert.changes", count=len(chosen)
                ),
                conflicts=conflicts,
            )
            self._shown = selection
        else:
            question = texts("cli.revert.nothing")
        self.ask(question)

    def _moment(self, selection: RevertSelection) -> str:
        """Return the displayed start time of ``selection``."""
        row = self.dashboard.journal.row(selection.after + 1) if selection.after else None
        return local_time(row.time) if row is not None else self.dashboard.texts("revert.beginning")

    def action_go_back(self, further: int) -> None:
        """Start one step earlier (1) or later (-1)."""
        if self._step is None:
            return
        step = min(max(0, self._step + further), len(_SECONDS) - 1)
        if step != self._step:
            self._step = step
            self.load()

    def action_flip_clean(self) -> None:
        """Toggle whether conflicts are left out."""
        self._clean_only = not self._clean_only
        self.load()

    def action_flip_all(self) -> None:
        """Toggle whether all changes in private files and task files are reverted, even if later changes
        build on them."""
        self._decides_all = not self._decides_all
        self.load()

    def action_flip_spawned(self) -> None:
        """Toggle whether the work of spawned agents is reverted too."""
        self._with_spawned = not self._with_spawned
        self.load()

    def action_answer(self, answer: bool) -> None:
        if not answer:
            self.dismiss(False)
        elif self._shown is not None:
            shown, self._shown = self._shown, None
            self.commit(shown)

    @work(group="commit")
    async def commit(self, selection: RevertSelection) -> None:
        """Revert the shown work, and any work since the preview."""
        app, texts = self.dashboard, self.dashboard.texts
        self.ask(texts("revert.working"))
        arguments: dict[str, Json] = {
            "agents": list(selection.agents),
            "after": selection.after,
            "undo": selection.undo or None,
            "clean_only": self._clean_only,
            "take_back": ["all"] if selection.decides_all else None,
            "with_spawned": selection.with_spawned,
        }
        result = await app.act(REVERT_WORK, arguments)
        if result is not None and not result["success"]:
            app.show_failure(result)
        elif result is not None:
            conflicts = result["conflicts"]
            count = len(conflicts) if isinstance(conflicts, Sequence) else 0
            key = "revert.done_conflicts" if count else "revert.done"
            items = result["items"]
            written = int(str(result["written_count"])) + (len(items) if isinstance(items, Sequence) else 0)
            app.show_message(texts(key, count=written, conflicts=count))
        self.dismiss(bool(result and result["success"]))


def plan_lines(plan: RevertPlan, texts: Catalogue) -> list[Line]:
    """Return the displayed lines of ``plan``: the paths, conflicts first, then the difference of each
    path."""
    kinds = list(_MARKS)
    order = {"conflict": 0, "clean": 1, "cannot": 2, "nothing": 3}
    planned: list[PlannedPath | PlannedItem] = [*plan.paths, *plan.items]
    paths = sorted(planned, key=lambda each: order[each.plan.kind])[:_MOST_PATHS]
    has_trees = labels.has_several_trees((each.zone, each.path) for each in planned)
    lines: list[Line] = [[], *(_path_line(each, texts, has_trees=has_trees) for each in paths)]
    if len(planned) > len(paths):
        lines.append([Span(f"   {texts('revert.more', count=len(planned) - len(paths))}", "dim")])
    if plan.not_reverted:
        listed = ", ".join(
            f"{count} × {labels.zone_name(zone, texts)}" for zone, count in sorted(plan.not_reverted.items())
        )
        lines += [[], [Span(f" {texts('revert.not_reverted', listed=listed)}", "dim")]]
    if plan.client_edits:
        lines.append([Span(f" {texts('revert.client_edits')}", "warning")])
        lines += [[Span(f"   {line}")] for line in client_edit_lines(plan.client_edits, texts)]
    for each in paths:
        if each.plan.kind in kinds[:2]:
            lines += [[], _path_line(each, texts, has_trees=has_trees), *_difference(each)]
    return lines


def _path_line(planned: PlannedPath | PlannedItem, texts: Catalogue, *, has_trees: bool) -> Line:
    mark, style = _MARKS[planned.plan.kind]
    reason = planned.plan.reason
    said = texts(f"revert.reason.{reason}") if reason else texts(f"revert.plan.{planned.plan.kind}")
    path = labels.file_name(planned.zone, planned.path, has_trees=has_trees)
    place = sanitize(f"{labels.zone_name(planned.zone, texts)} {path}")
    return [Span(f" {mark} ", style), Span(place), Span(f"  {said}", "dim")]


def _difference(planned: PlannedPath | PlannedItem) -> list[Line]:
    """Return the difference between the current text and the text after the revert, or the proposed text of a
    conflict."""
    styles = {"+": "added", "-": "removed", "@": "header-line"}
    told = sanitize_lines(diff_hunks(planned.current or "", planned.plan.proposal or ""))
    told = [*mode_change(planned), *told]
    lines: list[Line] = [[Span(f"   {line}", styles.get(line[:1], ""))] for line in told[:_MOST_LINES]]
    return [*lines, [Span("   …", "dim")]] if len(told) > _MOST_LINES else lines


def _chosen(plan: RevertPlan, clean_only: bool) -> list[PlannedPath | PlannedItem]:
    return plan.changes("clean") if clean_only else plan.changes("clean", "conflict")


def ask_to_revert(app: Dashboard, subject: RevertSubject) -> None:
    """Preview the revert of ``subject``, and ask for confirmation. Show the reason if nothing can be changed.

    Close an open timeline. An earlier moment on the timeline is the default start of the revert.
    """
    if app.may_act and app.timeline is not None:
        if app.timeline.seq is not None and subject.after is None and not subject.undo:
            subject = subject._replace(after=app.timeline.seq)
        app.leave_timeline()
    if not app.can_act:
        app.explain_read_only()
    else:
        app.push_screen(RevertDialog(subject, app.texts))


def ask_to_revert_row(app: Dashboard, row: Row) -> None:
    """Ask to revert the work of the agent of ``row``, starting with ``row``. Ask to undo the revert if
    ``row`` is a revert."""
    if row.tool == REVERT_WORK and (row.zone == "revert" or "revert" in row.detail):
        revert = row.path if row.zone == "revert" else str(row.detail["revert"])
        ask_to_revert(app, RevertSubject(undo=revert))
    elif row.kind == "agent":
        ask_to_revert(app, RevertSubject(row.actor, after=row.seq - 1))
    else:
        app.show_message(app.texts("revert.agents_only"), "warning")
