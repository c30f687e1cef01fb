"""Land working trees: preview the changes of their branches, and choose the target and the check."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static
from watchroom.errors import UncommittedWork, WatchroomError
from watchroom.features.trees.rows import Tree
from watchroom.texts import Catalogue

from watchroom_tui.dialogs.agent_commit import difference_lines
from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.formatters.tree_changes import branch_text
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.containers import Vertical
from watchroom_tui.widgets.line_widget import content
from watchroom_tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from watchroom.features.trees.git import GitTree
    from watchroom.features.trees.landing import LandingPlan
    from watchroom.workspace import Workspace

_SHELL: Final = ("/bin/sh", "-c")
_MAX_FILES: Final = 50
"""Maximum number of files whose changes are shown."""
_PAUSE: Final = 0.3
"""Seconds after a change of the branch until its landing is previewed."""


class LandOrder(NamedTuple):
    """A landing that a person wants.

    - ``into``: the branch; empty for the branch of the main tree.
    - ``check``: a program with its arguments, empty for no check.
    """

    tree: Tree
    into: str = ""
    check: tuple[str, ...] = ()


class _Preview(NamedTuple):
    """Preview of a landing.

    - ``plan``: None if the tree cannot land.
    - ``changed``: the paths that the landing changes.
    - ``difference``: the changes of the first `_MAX_FILES` of these files, as lines.
    - ``refusal``: why the tree cannot land, sanitized.
    - ``is_uncommitted``: whether it cannot land because of uncommitted changes.
    """

    tree: Tree
    plan: LandingPlan | None
    changed: Sequence[str] = ()
    difference: Sequence[Line] = ()
    refusal: str = ""
    is_uncommitted: bool = False

    @property
    def can_land(self) -> bool:
        """Whether a landing would move the branch, or record conflicts."""
        return self.plan is not None and not self.plan.is_up_to_date


class LandDialog(ModalDialog[Sequence[LandOrder] | Tree | None]):
    """Form for the landings of ``trees``, in this order.

    The result is the sequence of orders for the trees that can land. If there is only one tree, and the
    person wants to commit its uncommitted changes first, the result is this tree. It is None if the person
    goes back.

    ``commits_first``: if there is only one tree, whether to return it without asking about the commit.
    """

    BINDINGS = bindings("landing")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("landing",)

    def __init__(self, trees: Sequence[Tree], *, commits_first: bool = False) -> None:
        super().__init__()
        self._trees = trees
        self._commits_first = commits_first
        self._previews: Sequence[_Preview] = ()
        self._command: tuple[str, ...] = ()
        """The check with which the dialog filled the field."""
        self._target = ""
        """The branch that was previewed."""
        self._is_filled = False

    def compose(self) -> ComposeResult:
        texts = self.dashboard.texts
        with Vertical(id="landing"):
            yield TextPane(title="pane.landing", empty="land.planning", id="changes", classes="pane")
            for name in ("into", "check"):
                field = Input(id=name, select_on_focus=False)
                field.border_title = content(texts(f"land.{name}"))
                yield field
            said = Static(Content(texts("land.planning")), id="question", markup=False)
            said.border_subtitle = content(self.key_hints())
            yield said

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#check", Input).focus()
        self.load()

    @on(Input.Changed, "#into")
    def change_target(self, event: Input.Changed) -> None:
        if event.value.strip() != self._target:
            self.load(_PAUSE)

    @work(exclusive=True, group="plan")
    async def load(self, pause: float = 0.0) -> None:
        """Preview the landings into the chosen branch. Fill the empty fields the first time."""
        await asyncio.sleep(pause)
        target = self.query_one("#into", Input).value.strip()
        self._previews = ()
        workspace = await self.dashboard.wait_for_workspace()
        if workspace is None:
            self.dashboard.explain_read_only()
            self.dismiss(None)
            return
        found = await asyncio.to_thread(self._read, workspace, target)
        command = await asyncio.to_thread(workspace.landings.find_check, self._trees[0].id)
        self._target = target or await asyncio.to_thread(workspace.landings.find_target)
        is_first = not self._is_filled
        if is_first:
            self._is_filled, self._command = True, command
            self._fill("check", _command_text(command))
            self._fill("into", self._target)
        self._previews = found
        if self._commits_first and is_first and self._uncommitted is not None:
            self.dismiss(self._uncommitted)
        else:
            self._show()

    def _fill(self, name: str, value: str) -> None:
        """Fill a field, unless the person has already written in it."""
        field = self.query_one(f"#{name}", Input)
        field.value = field.value or value

    def _read(self, workspace: Workspace, into: str) -> list[_Preview]:
        return [self._read_tree(workspace, each, into) for each in self._trees]

    def _read_tree(self, workspace: Workspace, tree: Tree, into: str) -> _Preview:
        texts, language = self.dashboard.texts, self.dashboard.language
        try:
            found = workspace.trees.tree(tree.id)
            if found is None:
                known = texts("cli.trees.unknown", given=branch_text(tree), known="-")
                return _Preview(tree, None, refusal=known)
            plan = workspace.landings.plan(found, into or None)
            changed = sorted(found.git.list_committed(plan.before, plan.content)) if plan.content else []
            lines = _difference(found.git, plan, changed, texts) if len(self._trees) == 1 else []
        except (WatchroomError, OSError) as error:
            said = str(error)
            if isinstance(error, WatchroomError):
                said = f"{error.message(language)} {error.suggestion(language)}"
            return _Preview(
                tree, None, refusal=sanitize(said), is_uncommitted=isinstance(error, UncommittedWork)
            )
        return _Preview(tree, plan, changed, lines)

    def _show(self) -> None:
        texts, lines = self.dashboard.texts, list[Line]()
        for number, each in enumerate(self._previews, 1):
            if len(self._previews) > 1:
                lines += [[], [Span(f" {number} "), Span(branch_text(each.tree), "strong")]]
            lines += self._lines_of(each)
        names = ", ".join(branch_text(each) for each in self._trees)
        title = texts("land.title", tree=names, into=sanitize(self._target))
        self.query_one(TextPane).show_notice((names, self._target), [[], *lines], title=title)
        self.query_one("#question", Static).update(Content(self._question()))

    def _lines_of(self, preview: _Preview) -> list[Line]:
        texts, plan = self.dashboard.texts, preview.plan
        if plan is None:
            return [[Span(f"   {preview.refusal}", "error")]]
        if plan.is_up_to_date:
            return [[Span(f"   {self._up_to_date(preview)}", "dim")]]
        conflicts = [*plan.conflicts, *plan.others]
        lines: list[Line] = [[Span(" ⚔ ", "error"), Span(sanitize(each))] for each in conflicts]
        settled = texts("land.settled")
        lines += [
            [Span(" ✓ ", "ok"), Span(sanitize(each)), Span(f"  {settled}", "dim")] for each in plan.settled
        ]
        if not conflicts:
            others = (each for each in preview.changed if each not in plan.settled)
            lines += [[Span(f"   {sanitize(each)}")] for each in others]
        return [*lines, *preview.difference]

    def _up_to_date(self, preview: _Preview) -> str:
        return self.dashboard.texts(
            "cli.land.up_to_date", tree=branch_text(preview.tree), into=sanitize(self._target)
        )

    def _question(self) -> str:
        texts, landing = self.dashboard.texts, [each for each in self._previews if each.can_land]
        into = sanitize(self._target)
        if not landing:
            (first, *more) = self._previews
            if self._uncommitted is not None:
                return texts("land.commit_first", tree=branch_text(first.tree))
            return texts("land.none", into=into) if more else first.refusal or self._up_to_date(first)
        if len(self._previews) > 1:
            return texts("land.several", count=len(landing), into=into)
        plan, changed = landing[0].plan, landing[0].changed
        conflicts = len(plan.conflicts) + len(plan.others) if plan is not None else 0
        key = "land.conflicts" if conflicts else "land.question"
        return texts(key, tree=branch_text(landing[0].tree), into=into, count=conflicts or len(changed))

    @property
    def _uncommitted(self) -> Tree | None:
        """The only tree, if it cannot land because of uncommitted changes."""
        previews = self._previews
        return previews[0].tree if len(previews) == 1 and previews[0].is_uncommitted else None

    def action_scroll(self, pages: int) -> None:
        self.query_one(TextPane).action_scroll_pages(pages)

    def action_line(self, lines: int) -> None:
        self.query_one(TextPane).action_scroll_by(lines)

    def action_land(self) -> None:
        self.call_after_keys(self._land)

    def _land(self) -> None:
        """Close the dialog, unless the preview of the branch is not ready, or nothing can be landed or
        committed."""
        is_ready = self.query_one("#into", Input).value.strip() == self._target
        landing = [each.tree for each in self._previews if each.can_land]
        if is_ready and self._uncommitted is not None:
            self.dismiss(self._uncommitted)
        if is_ready and landing:
            check = self._read_check()
            self.dismiss([LandOrder(each, self._target, check) for each in landing])

    def _read_check(self) -> tuple[str, ...]:
        given = self.query_one("#check", Input).value.strip()
        if given == _command_text(self._command):
            return self._command
        return (*_SHELL, given) if given else ()


def _difference(git: GitTree, plan: LandingPlan, changed: Sequence[str], texts: Catalogue) -> list[Line]:
    """Return the changes of the first `_MAX_FILES` files of a landing as lines."""
    lines: list[Line] = []
    shown = changed[:_MAX_FILES]
    before, after = (
        git.read_blobs(shown, entries=git.list_tree(each, shown)) for each in (plan.before, plan.content)
    )
    for path in shown:
        lines += [[], [Span(f" {sanitize(path)}", "strong")]]
        lines += difference_lines(before[path] or b"", after[path] or b"", texts)
    return lines


def _command_text(command: Sequence[str]) -> str:
    """Return ``command`` as the shell reads it."""
    if tuple(command[:2]) == _SHELL and len(command) == len(_SHELL) + 1:
        return command[-1]
    return shlex.join(command)
