"""Add and remove working trees, as the command ``watchroom tree`` does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Checkbox, Input, Static
from watchroom.errors import WatchroomError
from watchroom.features.trees.rows import Tree
from watchroom.kernel.call_context import CallContext
from watchroom.texts import Catalogue

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.dialogs.confirm import LinesConfirmDialog
from watchroom_tui.dialogs.new_task import SpaceCheckbox
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.widgets.line_widget import content

if TYPE_CHECKING:
    from watchroom.features.trees.own_trees import AddedTree, Step
    from watchroom.features.trees.rows import Removal
    from watchroom.features.trees.tree_removal import RemovalPlan
    from watchroom.workspace import Workspace

_MAX_NAMES: Final = 10
"""Maximum number of names in one line."""
_MAX_LINES: Final = 20
"""Maximum number of lines of a failed setup command."""


class TreeOrder(NamedTuple):
    """A working tree that a person wants. ``start``: the commit at which a new branch begins, empty for
    HEAD."""

    name: str
    start: str = ""
    restores: bool = False


class AddTreeDialog(ModalDialog[None]):
    """Form for a new working tree. The tree is added in the background: if the person goes back meanwhile, a
    notice reports the result. A refusal is shown in the form.

    - ``workspace``: the workspace of the repository.
    - ``base``: the tree at whose HEAD a new branch begins.
    """

    BINDINGS = bindings("writing")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("writing",)

    def __init__(self, workspace: Workspace, base: Tree) -> None:
        super().__init__()
        self._workspace = workspace
        self._base = base
        self._is_adding = False

    def compose(self) -> ComposeResult:
        texts = self.dashboard.texts
        base = sanitize(self._base.branch or self._base.head[:12])
        with Vertical(id="new-tree"):
            for name in ("name", "start"):
                field = Input(id=name, select_on_focus=False)
                field.border_title = content(texts(f"new_tree.{name}", base=base))
                yield field
            yield SpaceCheckbox(content(texts("new_tree.restore")), id="restore")
            said = Static(Content(texts("new_tree.about")), id="said", markup=False)
            said.border_subtitle = content(self.key_hints())
            yield said

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#name", Input).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether ``action`` is available. Enter adds the tree from every field."""
        return action not in ("send", "new_line")

    def action_send_line(self) -> None:
        self.call_after_keys(self._begin_to_add)

    def _begin_to_add(self) -> None:
        name, start = (self.query_one(f"#{each}", Input).value.strip() for each in ("name", "start"))
        if name and not self._is_adding:
            self._is_adding = True
            order = TreeOrder(name, start, self.query_one("#restore", Checkbox).value)
            # A worker of the app goes on when the dialog is closed.
            self.app.run_worker(self._add(order), group="new-tree")

    async def _add(self, order: TreeOrder) -> None:
        app, loop = self.dashboard, asyncio.get_running_loop()
        self._say(app.texts("new_tree.begins", name=sanitize(order.name)))

        def report(text: str) -> None:
            loop.call_soon_threadsafe(self._say, text)

        try:
            added = await asyncio.to_thread(self._add_tree, order, report)
        except (WatchroomError, OSError) as error:
            self._end(_refusal(app, error), is_error=True)
        else:
            said = _describe_added(added, self._workspace.config.trees.setup, app.texts)
            has_failed = added.setup is not None and added.setup.status != 0
            self._end(said, is_error=has_failed, closes=not has_failed)

    def _add_tree(self, order: TreeOrder, report: Callable[[str], None]) -> AddedTree:
        # Slow to load.
        from watchroom.features.trees.own_trees import Listeners

        texts, command = self.dashboard.texts, sanitize(self._workspace.config.trees.setup)

        def on_step(step: Step, done: int, of: int) -> None:
            share = f" {done * 100 // of} %" if of else ""
            report(texts(f"cli.tree.step.{step}", command=command) + share)

        caller = CallContext(f"human:{self.dashboard.person}")
        return self._workspace.own_trees.add(
            *(caller, order.name, self._base.folder, order.start),
            restore=order.restores,
            listeners=Listeners(on_step),
        )

    def _end(self, text: str, *, is_error: bool, closes: bool = False) -> None:
        """Show the result: in the form if a person has to read it, else as a notice."""
        self._is_adding = False
        if self.is_attached and not closes:
            self._say(text, is_error=is_error)
            return
        if self.is_attached:
            self.dismiss(None)
        self.dashboard.show_message(text, "error" if is_error else "information")

    def _say(self, text: str, *, is_error: bool = False) -> None:
        if self.is_attached:
            said = self.query_one("#said", Static)
            said.update(Content(text))
            said.set_class(is_error, "-error")


def _describe_added(added: AddedTree, command: str, texts: Catalogue) -> str:
    tree, included, setup = added.tree, added.included, added.setup
    values = {"name": sanitize(tree.name), "folder": sanitize(tree.folder), "branch": sanitize(tree.branch)}
    said = [texts("cli.tree.added", **values)]
    if tree.ports is not None:
        last = tree.ports.first + tree.ports.size - 1
        said.append(texts("cli.tree.ports", first=tree.ports.first, last=last))
    for key, names in (("left_out", included.left_out), ("restored", added.restored)):
        said += [texts(f"cli.tree.{key}", names=_join(names, texts))] if names else []
    if setup is not None and setup.status != 0:
        said.append(texts("cli.tree.setup_failed", command=sanitize(command), status=setup.status))
        said += sanitize_lines(setup.output.rstrip("\n"))[-_MAX_LINES:]
    else:
        said.append(texts("cli.tree.next", name=sanitize(tree.name)))
    return "\n".join(said)


async def remove_tree(app: Dashboard, tree: Tree) -> None:
    """Show the obstacles to the removal of ``tree``, and remove it if the person confirms. Await this in a
    worker."""
    workspace = await app.wait_for_workspace()
    if workspace is None:
        app.explain_read_only()
        return
    texts = app.texts
    try:
        plan = await asyncio.to_thread(_plan, workspace, tree)
        name, can_remove = sanitize(plan.name), not _is_final(plan)
        key = "remove_tree.insist" if plan.obstacles else "remove_tree.question"
        question = texts(key if can_remove else "cli.tree.kept", name=name, branch=sanitize(tree.branch))
        lines = _describe_plan(plan, texts)
        answer = LinesConfirmDialog(texts("remove_tree.title", name=name), question, lines)
        if await app.push_screen_wait(answer) and can_remove:
            done = await asyncio.to_thread(_remove, workspace, plan, app.person)
            branch = sanitize(done.kept or plan.place.branch)
            key = "cli.tree.removed" if branch else "cli.tree.removed_detached"
            app.show_message(texts(key, name=name, branch=branch))
    except (WatchroomError, OSError) as error:
        app.show_message(_refusal(app, error), "error")


def _plan(workspace: Workspace, tree: Tree) -> RemovalPlan:
    # Slow to load.
    from watchroom.agents.clients.tree_agents import find_agents_at_work

    return workspace.own_trees.plan_removal(tree.folder, find_agents_at_work(workspace))


def _remove(workspace: Workspace, plan: RemovalPlan, person: str) -> Removal:
    caller = CallContext(f"human:{person}")
    return workspace.own_trees.remove(caller, plan, force=bool(plan.obstacles))


def _is_final(plan: RemovalPlan) -> bool:
    from watchroom.features.trees.tree_removal import is_final

    return any(is_final(each.kind) for each in plan.obstacles)


def _describe_plan(plan: RemovalPlan, texts: Catalogue) -> list[Line]:
    values = {"name": sanitize(plan.name), "folder": sanitize(plan.place.folder)}
    lines: list[Line] = []
    for each in plan.obstacles:
        said = texts(f"cli.tree.obstacle.{each.kind}", names=_join(each.names, texts), **values)
        lines.append([Span(" ! ", "error"), Span(said)])
    for key, names in (("recorded", plan.uncommitted), ("disposed", plan.disposable)):
        if names:
            said = texts(f"cli.tree.{key}", names=_join(names, texts), count=len(names), name=values["name"])
            lines.append([Span("   "), Span(said)])
    return lines


def _refusal(app: Dashboard, error: WatchroomError | OSError) -> str:
    if isinstance(error, WatchroomError):
        return sanitize(f"{error.message(app.language)} {error.suggestion(app.language)}".strip())
    return sanitize(str(error))


def _join(names: Sequence[str], texts: Catalogue) -> str:
    shown = ", ".join(sanitize(each) for each in names[:_MAX_NAMES])
    more = len(names) - _MAX_NAMES
    return shown if more <= 0 else texts("cli.tree.more", names=shown, count=more)
