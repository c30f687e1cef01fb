"""The tasks screen: agents, messages, files and commands of the selected task, and the working trees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from textual import on, work
from textual.app import ComposeResult
from watchroom.features.needs.rules import NeedKind
from watchroom.features.overview.agents import AgentView
from watchroom.features.overview.model import Model, Need
from watchroom.features.tasks.reads import list_task_files
from watchroom.features.tasks.view import CommandView, MessageView, TaskView
from watchroom.features.trees.rows import Tree
from watchroom.features.trees.view import is_linked
from watchroom.kernel.rules.details import task_of
from watchroom.model import USER, Row

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.context import AgentTarget, SessionTarget, Target, TaskTarget, TreeTarget
from watchroom_tui.dialogs.agent_commit import commit_all
from watchroom_tui.dialogs.land import LandDialog
from watchroom_tui.dialogs.row import RowDialog
from watchroom_tui.dialogs.sandbox import SandboxDialog, sandbox_text
from watchroom_tui.dialogs.task import TaskDialog
from watchroom_tui.dialogs.tree import AddTreeDialog, remove_tree
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.task_tree import member_items, task_items
from watchroom_tui.keys.actions import Action, bindings
from watchroom_tui.screens.tasks.command_pane import CommandPane
from watchroom_tui.screens.tasks.lists import MemberTree, MessageList, TaskCommandList, TaskFileList, TaskList
from watchroom_tui.screens.tasks.output_view import OutputView
from watchroom_tui.screens.tasks.routine_list import RoutineList, RoutinesPane
from watchroom_tui.screens.tasks.tree_list import TreeList, TreesPane
from watchroom_tui.services.agent_actions import AgentActions
from watchroom_tui.services.external_editor import edit_version
from watchroom_tui.services.file_preview import show_version
from watchroom_tui.widgets.containers import Container, Horizontal, Vertical
from watchroom_tui.widgets.frame import Footer
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from watchroom import Workspace
    from watchroom.platform.sandbox.probe import SandboxProbe

NEEDS_OF_AN_AGENT: Final[tuple[NeedKind, ...]] = ("message", "failed", "denied", "stalled")


T = TypeVar("T")


def _kept(before: list[T], now: list[T]) -> list[T]:
    """Return ``before`` if both lists are equal, so that nothing is drawn again; else ``now``."""
    return before if now == before else now


class TasksScreen(BaseScreen):
    CSS_PATH = "tasks.tcss"
    SCREEN_NAME: ClassVar = "tasks"
    AUTO_FOCUS = "#tasks"
    BINDINGS = bindings("tasks")

    def __init__(self) -> None:
        super().__init__()
        self.trees = TreeList(title="pane.trees", empty="empty.trees", id="trees", classes="pane -away")
        self.routines = RoutineList(
            title="pane.routines", empty="empty.routines", id="routines", classes="pane -away"
        )
        self.tasks = TaskList(title="pane.tasks", empty="empty.tasks", id="tasks", classes="pane")
        self.members = MemberTree(title="pane.agents", empty="empty.members", id="members", classes="pane")
        self.files = TaskFileList(title="pane.files", empty="empty.task_files", id="files", classes="pane")
        self.preview = TextPane(title="pane.preview", empty="empty.preview", id="preview", classes="pane")
        self.messages = MessageList(
            title="pane.messages", empty="empty.messages", id="messages", classes="pane"
        )
        self.commands = TaskCommandList(
            title="pane.commands", empty="empty.commands", id="commands", classes="pane"
        )
        self.output = OutputView(title="pane.output", empty="empty.output", id="output", classes="pane")
        self._command_pane: CommandPane | None = None
        self._trees_pane: TreesPane | None = None
        self._routines_pane: RoutinesPane | None = None
        self._is_arranged = False
        """Whether trees or tasks have been shown. After that, no pane comes to the front automatically."""
        self._wanted: TaskTarget | None = None
        self._files_of = ""
        self._messages: list[MessageView] = []
        self._commands: list[CommandView] = []
        self._seen = 0
        self._previewed: Row | None = None

    def compose_panes(self) -> ComposeResult:
        with Vertical(id="body", classes="group"):
            with Container(id="society", classes="group"):
                with Vertical(id="team", classes="group"):
                    yield self.trees
                    yield self.routines
                    yield self.tasks
                    yield self.members
                yield self.messages
            with Horizontal(id="results", classes="group"):
                with Vertical(id="work", classes="group"):
                    yield self.files
                    yield self.preview
                with Vertical(id="console", classes="group"):
                    yield self.commands
                    yield self.output

    @property
    def command_pane(self) -> CommandPane:
        """The output of the command under the cursor."""
        if self._command_pane is None:
            self._command_pane = CommandPane(self, self.output)
        return self._command_pane

    @property
    def trees_pane(self) -> TreesPane:
        """The working trees."""
        if self._trees_pane is None:
            self._trees_pane = TreesPane(self, self.trees)
        return self._trees_pane

    @property
    def routines_pane(self) -> RoutinesPane:
        """The routines."""
        if self._routines_pane is None:
            self._routines_pane = RoutinesPane(self, self.routines)
        return self._routines_pane

    def prepare(self) -> None:
        # `_show_trees` brings the trees to the front in a repository without tasks.
        self._put_in_front(self.tasks)
        if self.dashboard.is_live:
            self.probe_sandbox()

    def show_time(self) -> None:
        if self.dashboard.is_live:
            self.command_pane.follow_the_clock()
            self.trees_pane.follow_the_clock()
            self.routines_pane.follow_the_clock()

    @property
    def selected_task(self) -> TaskView | None:
        """The task under the cursor."""
        return self.tasks.item.task if self.tasks.item else None

    def show_model(self, model: Model) -> None:
        self.tasks.show(task_items(model))
        self.tasks.set_class(not model.tasks, "-empty")
        self._show_trees(model)
        self._go_to_wanted()
        self._show_task(model)
        if self.is_in_front and self.trees_pane.queue.is_settling:
            self.go_on_landing()

    @work(exclusive=True, group="settle")
    async def go_on_landing(self) -> None:
        """After the person has settled a conflict of a landing, open the next one, or ask to land again."""
        tree = await self.trees_pane.queue.open_next_merge()
        if tree is not None:
            self.land([tree])

    def _show_trees(self, model: Model) -> None:
        """Show the trees of a repository. Hide the panes of tasks if there is no task."""
        self.trees_pane.show(model)
        has_trees = bool(self.trees.items)
        self.trees.set_class(not has_trees, "-away")
        is_bare = has_trees and not model.tasks
        self.set_class(is_bare, "-without-tasks")
        for each in (self.members, self.files, self.preview, self.commands, self.output):
            each.set_class(is_bare, "-away")
        if is_bare and not self._is_arranged and self._wanted is None:
            self._put_in_front(self.trees)
            self.trees.focus()
        self._is_arranged = self._is_arranged or has_trees or bool(model.tasks)

    def _show_task(self, model: Model) -> None:
        """Update the other panes for the task under the cursor."""
        task = self.selected_task
        path = task.id if task else ""
        self._messages = _kept(self._messages, [each for each in model.messages if each.task == path])
        self._commands = _kept(self._commands, [each for each in model.commands if each.task == path])
        self.members.show_of(path, member_items(task, model) if task else ())
        self.members.show_loss(self.tasks.item.loss if self.tasks.item else None)
        self.messages.show_of(path, self._messages)
        self.commands.show_of(path, self._commands)
        self.command_pane.show(self.commands.item)
        self._show_files(path, model)

    def _show_files(self, task: str, model: Model) -> None:
        """Read the task's files again if one may have changed."""
        if not task:
            self._files_of = ""
            self._take_files("", ())
            return
        mine = (row.seq for row in model.recent if row.zone == "file" and row.path.startswith(f"{task}/"))
        newest = next(mine, 0)
        oldest = model.recent[-1].seq if model.recent else 0
        # Rows older than the recent rows of the model may also be files.
        is_earlier = model.seq < self._seen
        if task != self._files_of or is_earlier or max(newest, oldest) > self._seen:
            self._files_of, self._seen = task, model.seq
            self.load_files(task, model.seq)

    @work(exclusive=True, group="files")
    async def load_files(self, task: str, as_of: int) -> None:
        found = await asyncio.to_thread(list_task_files, self.dashboard.journal, task, as_of=as_of)
        self._take_files(task, found)

    def _take_files(self, task: str, files: Sequence[Row]) -> None:
        self.files.show_of(task, files)
        self._preview()

    def _preview(self) -> None:
        head = self.files.item
        if head is None and self._previewed is not None:
            self._previewed = None
            # Cancel a read in progress: its file is no longer selected.
            self.workers.cancel_group(self, "preview")
            self.preview.clear()
        elif head is not None and head != self._previewed:
            self._previewed = head
            self.load_preview(head)

    @work(exclusive=True, group="preview")
    async def load_preview(self, head: Row) -> None:
        """Show the file. Mark the lines that its newest version changed."""
        await show_version(self.dashboard, self.preview, head, labels.path_of(head))

    @on(ItemList.Highlighted, "#tasks")
    def choose_task(self) -> None:
        self._show_task(self.dashboard.model)
        self.query_one(Footer).refresh()

    @on(ItemList.Highlighted, "#members")
    def choose_agent(self) -> None:
        self.query_one(Footer).refresh()

    @on(ItemList.Highlighted, "#files")
    def choose_file(self) -> None:
        self._preview()

    @on(ItemList.Highlighted, "#commands")
    def choose_command(self) -> None:
        self.command_pane.show(self.commands.item)

    @on(ItemList.Opened, "#trees")
    async def open_tree(self) -> None:
        if self.trees.item is not None:
            await self.dashboard.navigator.go_to("files", TreeTarget(self.trees.item.tree.id))

    @on(ItemList.Opened, "#tasks")
    def open_task(self) -> None:
        self.front(self.members)

    @on(ItemList.Opened, "#members")
    async def open_agent(self) -> None:
        item = self.members.item
        if item is None:
            return
        session = item.view.session if item.view else None
        if session is not None:
            await self.dashboard.navigator.go_to("agents", SessionTarget(session.path))
        else:
            await self.dashboard.navigator.go_to("agents", AgentTarget(item.member.id))

    @on(ItemList.Opened, "#messages")
    def open_message(self) -> None:
        if self.messages.item is not None:
            self.app.push_screen(RowDialog(self.messages.item.row))

    @on(ItemList.Opened, "#files")
    def open_file(self) -> None:
        self.front(self.preview)

    @on(ItemList.Opened, "#commands")
    def open_command(self) -> None:
        self.front(self.output)

    def go_to(self, target: Target) -> None:
        if isinstance(target, TaskTarget):
            self._wanted = target
            self.front(self.tasks)
            self.show_model(self.dashboard.model)
        elif isinstance(target, TreeTarget):
            self.show_model(self.dashboard.model)
            self.front(self.trees)
            self.trees.move_to(target.id)
        else:
            super().go_to(target)

    def _go_to_wanted(self) -> None:
        """Go to the wanted task if it is in the list. An empty id means the newest task."""
        if self._wanted is not None and self._wanted.id:
            if self.tasks.move_to(self._wanted.id):
                self._wanted = None
        elif self._wanted is not None:
            self.tasks.action_first()
            self._wanted = None

    def go_to_row(self, row: Row) -> None:
        """Go to the task of ``row``, and to the message, agent or command of ``row``."""
        is_of_agent = row.zone == "agent"
        self.show_model(self.dashboard.model)
        self.tasks.move_to(task_of(row))
        self._show_task(self.dashboard.model)
        for each in (self.messages, self.commands):
            # Rows that were held back while the person read further down are needed now.
            each.action_first()
        if is_of_agent and self.messages.move_to(row.seq):
            self.front(self.messages)
        elif is_of_agent and self.members.move_to(row.path):
            self.front(self.members)
        elif row.zone == "command" and self.commands.move_to(row.path):
            self.front(self.commands)
        else:
            self.front(self.tasks)

    @property
    def current_need(self) -> Need | None:
        message = self.messages.item
        if self.focused is self.messages and message is not None:
            return self.find_need(["message"], message.sender) if message.receiver == USER else None
        if self.focused is self.trees:
            return self._find_prediction()
        member = self.members.item.member.id if self.members.item else None
        return self.find_agent_need(NEEDS_OF_AN_AGENT, member)

    def _find_prediction(self) -> Need | None:
        """Return the need about a predicted conflict of the tree under the cursor."""
        tree = self.trees.item.tree.id if self.trees.item is not None else ""
        needs = (need for need in self.dashboard.needs if need.kind == "predicted")
        return next((need for need in needs if tree in need.key.split()), None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "sandbox":
            return self.dashboard.is_live
        if action == "open_file":
            return self.files.item is not None and self.focused in (self.files, self.preview)
        if action == "task_detail":
            return self.selected_task is not None
        if action == "land_tree":
            return self.focused is self.trees and bool(self.trees_pane.chosen)
        if action == "mark_tree":
            return self.focused is self.trees and self.trees.item is not None
        if action == "add_tree":
            return self.focused is self.trees and self.trees.item is not None
        if action == "end" and self.focused is self.trees:
            return self.trees.item is not None and is_linked(self.trees.item.tree)
        if action == "end" and self.focused is self.routines:
            return self.routines_pane.can_stop
        if action == "end" and self.focused is self.tasks:
            return self.selected_task is not None and self.selected_task.ended is None
        if action == "end":
            item = self.members.item
            return item is not None and item.member.ended is None
        if action in ("pause", "message"):
            view = self.agent_to_pause
            return view is not None and view.allows("pause" if action == "pause" else "message")
        return True

    def why_not(self, action: Action) -> str:
        agent = self._addressee()
        if action.name not in ("pause", "message") or not agent:
            return super().why_not(action)
        return AgentActions(self.dashboard).why_not("pause" if action.name == "pause" else "message", agent)

    @property
    def agent_to_pause(self) -> AgentView | None:
        return self.dashboard.model.agent(self._addressee())

    def label_of(self, action: Action) -> str:
        if action.id == "end_agent" and self.focused is self.trees:
            return self.dashboard.texts("footer.remove")
        return super().label_of(action)

    def _addressee(self) -> str:
        """Return the agent to act on, empty if it has ended.

        In the messages, return the sender of the message under the cursor, or its receiver if the sender is
        not an active agent. Elsewhere, return the agent under the cursor.
        """
        task, message = self.selected_task, self.messages.item
        if self.focused is self.messages and message is not None:
            named = [message.sender, message.receiver]
        else:
            named = [self.members.item.member.id] if self.members.item else []
        at_work = {each.id for each in task.members if each.ended is None} if task else set()
        return next((each for each in named if each in at_work), "")

    def action_message(self) -> None:
        self._act_on_agent(AgentActions.write_message)

    def action_pause(self) -> None:
        self._act_on_agent(AgentActions.toggle_pause)

    def action_revert_work(self) -> None:
        self._act_on_agent(AgentActions.revert_work)

    def _act_on_agent(self, action: Callable[[AgentActions, str], None]) -> None:
        actions, agent = AgentActions(self.dashboard), self._addressee()
        if agent:
            action(actions, agent)
        elif actions.can_act():
            self.dashboard.show_message(self.dashboard.texts("tasks.nobody"), "warning")

    def action_land_tree(self) -> None:
        """Land the marked working trees, else the tree under the cursor."""
        self.land(self.trees_pane.chosen)

    @work(group="land")
    async def land(self, trees: Sequence[Tree]) -> None:
        """Ask for the target and the check, and land ``trees``. Trees that already wait or land come first.

        The person can first commit the uncommitted changes of a single tree.
        """
        dialog = LandDialog(trees, commits_first=True)
        orders = await self.dashboard.push_screen_wait(dialog) if trees else None
        while isinstance(orders, Tree):
            if not await commit_all(self.dashboard, orders):
                return
            orders = await self.dashboard.push_screen_wait(LandDialog(trees))
        if not orders:
            return
        pane = self.trees_pane
        pane.clear_marks()
        pane.queue.add(orders)
        if not pane.queue.is_running:
            await pane.queue.run()

    def action_mark_tree(self) -> None:
        """Mark the working tree under the cursor, or remove its mark."""
        self.trees_pane.flip_mark()

    @work(exclusive=True, group="add-tree")
    async def action_add_tree(self) -> None:
        """Add a working tree, with a branch that begins at the tree under the cursor."""
        item, workspace = self.trees.item, await self.dashboard.wait_for_workspace()
        if workspace is None:
            self.dashboard.explain_read_only()
        elif item is not None:
            await self.dashboard.push_screen_wait(AddTreeDialog(workspace, item.tree))

    @work(exclusive=True, group="remove-tree")
    async def remove_tree(self, tree: Tree) -> None:
        await remove_tree(self.dashboard, tree)

    def action_end(self) -> None:
        """Remove the working tree, stop the routine or end the task if its list has the focus, else end the
        agent under the cursor."""
        if self.focused is self.trees:
            if self.trees.item is not None:
                self.remove_tree(self.trees.item.tree)
            return
        if self.focused is self.routines:
            self.stop_routine()
            return
        actions, task, item = AgentActions(self.dashboard), self.selected_task, self.members.item
        if task is not None and self.focused is self.tasks:
            actions.cancel_task(task)
        elif task is not None and item is not None:
            actions.end_agent(task, item.member)

    async def action_open_file(self) -> None:
        """Open the file under the cursor in the person's editor."""
        if self.files.item is not None:
            await edit_version(self.dashboard, self.files.item)

    @work(exclusive=True, group="stop-routine")
    async def stop_routine(self) -> None:
        await self.routines_pane.stop()

    def action_task_detail(self) -> None:
        if self.selected_task is not None:
            self.app.push_screen(TaskDialog(self.selected_task))

    @work(exclusive=True, group="sandbox")
    async def probe_sandbox(self) -> None:
        """Show the best sandbox in the title of the commands once it is known."""
        probe = await self._sandbox()
        if probe is not None:
            self.commands.show_sandbox(sandbox_text(probe, self.dashboard.texts))

    @work(exclusive=True, group="sandbox")
    async def action_sandbox(self) -> None:
        probe = await self._sandbox()
        if probe is None:
            self.dashboard.explain_read_only()
        else:
            self.app.push_screen(SandboxDialog(probe))

    async def _sandbox(self) -> SandboxProbe | None:
        """Return the sandboxes of this machine, None without a workspace. Probing takes a moment."""
        workspace = await self.dashboard.wait_for_workspace()
        return await asyncio.to_thread(_probe_of, workspace) if workspace is not None else None


def _probe_of(workspace: Workspace) -> SandboxProbe:
    return workspace.commands.sandbox
