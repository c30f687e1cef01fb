"""The agents screen: the list, and the session, files and rows of the selected agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from watchroom.features.buffers.view import BufferView
from watchroom.features.files.reads import list_private_files
from watchroom.features.overview.agents import AgentView, Steering
from watchroom.features.overview.client_files import ClientFile
from watchroom.features.overview.edit_rows import without_repeats
from watchroom.features.overview.model import Model, Need
from watchroom.features.overview.reads import read_client_call
from watchroom.kernel.reads import read_activity
from watchroom.model import Row

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.context import AgentTarget, RowTarget, SessionTarget, Target
from watchroom_tui.dialogs.row import RowDialog
from watchroom_tui.formatters.client_calls import client_file_lines
from watchroom_tui.formatters.labels import path_of
from watchroom_tui.keys.actions import Action, bindings
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.screens.agents.buffer_list import OwnBufferList
from watchroom_tui.screens.agents.buffer_pane import reading_of, show_changes, show_text, title_of
from watchroom_tui.screens.agents.buffers_screen import BuffersScreen
from watchroom_tui.screens.agents.file_list import FileList
from watchroom_tui.screens.agents.session_pane import SessionPane
from watchroom_tui.screens.agents.transcript_view import TranscriptView
from watchroom_tui.services.agent_actions import AgentActions
from watchroom_tui.services.external_editor import edit_client_file, edit_version
from watchroom_tui.services.file_preview import show_version
from watchroom_tui.widgets.agent_list import AgentList
from watchroom_tui.widgets.containers import Horizontal, Vertical
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.row_list import OwnRowList
from watchroom_tui.widgets.text_pane import TextPane

_STEERING: Final[Mapping[str, Steering]] = {
    "message": "message",
    "pause": "pause",
    "resume_at_reset": "leave",
    "end_session": "end",
}
"""The actions that steer an agent."""


class AgentsScreen(BaseScreen):
    CSS_PATH = "agents.tcss"
    SCREEN_NAME: ClassVar = "agents"
    EXTRA_SCOPES: ClassVar = ("session",)
    BINDINGS = bindings("agents")

    def __init__(self) -> None:
        super().__init__()
        self._session: SessionPane | None = None
        self._loaded: tuple[str, Row | None, Row | None] | None = None
        """The agent whose files and rows are loaded, its newest row, and the newest row of its files."""
        self._previewed: Row | ClientFile | BufferView | None = None
        self._looks_at_files = False
        """Whether the preview shows a file even if the agent has open buffers."""

    def compose_panes(self) -> ComposeResult:
        with Vertical(id="body", classes="group"):
            yield AgentList(title="pane.agents", empty=self.empty_key("agents"), id="agents", classes="pane")
            with Horizontal(id="selected", classes="group"):
                yield TranscriptView(
                    title="pane.session", empty="empty.session", id="session", classes="pane"
                )
                with Vertical(id="details", classes="group"):
                    yield OwnBufferList(
                        title="pane.buffers", empty="empty.buffers", id="buffers", classes="pane -away"
                    )
                    yield FileList(title="pane.files", empty="empty.files", id="files", classes="pane")
                    yield TextPane(title="pane.preview", empty="empty.preview", id="preview", classes="pane")
            yield OwnRowList(title="pane.rows", empty="empty.rows", id="rows", classes="pane")

    def show_model(self, model: Model) -> None:
        agents = self.query_one("#agents", AgentList)
        agents.show_team(model)
        view = agents.agent
        self.session.show(view, model.seq)
        self.set_class(view is None or view.session is None, "-without-session")
        self._show_buffers(model.buffers_of(view.agent.id) if view else [])
        if view is None:
            self._clear_details()
            return
        prefix = f"{view.agent.id}/"
        # Rows of any actor, because a person can revert the agent's files.
        of_files = (row for row in model.recent if row.zone == "private" and row.path.startswith(prefix))
        shown = view.agent.id, view.last, next(of_files, None)
        if shown == self._loaded:
            return
        self._loaded = shown
        self.load_agent(view.agent.id, model.seq)

    def _clear_details(self) -> None:
        """Clear the files and rows. No agent is selected, for example before the first one is registered."""
        if self._loaded is not None:
            self._loaded = None
            self.workers.cancel_group(self, "agent")
            self.query_one("#files", FileList).show_of("", ())
            self.query_one("#rows", OwnRowList).show_of("", ())
            self._preview()

    def _show_buffers(self, open_now: list[BufferView]) -> None:
        buffers = self.query_one("#buffers", OwnBufferList)
        buffers.set_class(not open_now, "-away")
        if not open_now and self.focused is buffers:
            self.front(self.query_one("#files", FileList))
        buffers.show(open_now)
        self._preview()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "commit_work":
            return bool(self.dashboard.model.trees)
        if action in _STEERING:
            view = self.agent_to_pause
            return view is not None and view.allows(_STEERING[action])
        if action == "open_file":
            return self.query_one("#files", FileList).item is not None
        return action != "buffers" or bool(self.dashboard.model.buffers)

    def why_not(self, action: Action) -> str:
        view = self.agent_to_pause
        if action.name not in _STEERING or view is None:
            return super().why_not(action)
        return AgentActions(self.dashboard).why_not(_STEERING[action.name], view.agent.id)

    def action_buffers(self) -> None:
        """Show the open buffers of all agents."""
        buffer = self.query_one("#buffers", OwnBufferList).item
        self.app.push_screen(BuffersScreen(buffer.path if buffer else ""))

    def on_descendant_focus(self) -> None:
        super().on_descendant_focus()
        self.set_class(self.query_one("#details").has_class("-front"), "-details")
        self.set_class(self.query_one("#rows").has_class("-front"), "-rows")
        if self.focused is not None and self.focused.id in ("files", "buffers"):
            self._looks_at_files = self.focused.id == "files"
            self._preview()

    @property
    def session(self) -> SessionPane:
        """The pane with the session of the agent under the cursor."""
        if self._session is None:
            self._session = SessionPane(self, self.query_one("#session", TranscriptView))
        return self._session

    def go_to(self, target: Target) -> None:
        if isinstance(target, AgentTarget):
            self._go_to_agent(target.agent)
            if target.shows_rows:
                self.front(self.query_one("#rows", OwnRowList))
        elif isinstance(target, SessionTarget):
            self._go_to_agent(target.path.partition("/")[0])
            self.session.choose(target.path, target.step)
            self.front(self.query_one("#session", TranscriptView))
            self.clear_trail()
        elif isinstance(target, RowTarget):
            self._go_to_agent(target.row.actor)

    def action_session(self, older: int) -> None:
        self.session.step(older)

    def action_message(self) -> None:
        self._act_on_agent(AgentActions.write_message)

    def action_pause(self) -> None:
        self._act_on_agent(AgentActions.toggle_pause)

    def action_resume_at_reset(self) -> None:
        self._act_on_agent(AgentActions.resume_at_reset)

    def action_revert_work(self) -> None:
        self._act_on_agent(AgentActions.revert_work)

    def action_commit_work(self) -> None:
        self._act_on_agent(AgentActions.commit_work)

    def action_hand_over(self) -> None:
        self._act_on_agent(AgentActions.hand_over)

    def action_show_terminal(self) -> None:
        self._act_on_agent(AgentActions.show_terminal)

    async def action_open_file(self) -> None:
        """Open the file under the cursor in the person's editor."""
        file = self.query_one("#files", FileList).item
        if isinstance(file, ClientFile):
            await edit_client_file(self.dashboard, file)
        elif file is not None:
            await edit_version(self.dashboard, file)

    def action_end_session(self) -> None:
        self._act_on_agent(AgentActions.end_session)

    def _act_on_agent(self, action: Callable[[AgentActions, str], None]) -> None:
        view = self.query_one("#agents", AgentList).agent
        if view is not None:
            action(AgentActions(self.dashboard), view.agent.id)

    @property
    def agent_to_pause(self) -> AgentView | None:
        return self.query_one("#agents", AgentList).agent

    @property
    def current_need(self) -> Need | None:
        view = self.query_one("#agents", AgentList).agent
        return self.find_agent_need(
            ("failed", "parked", "breaker", "unproven", "overlap", "denied", "stalled"),
            view.agent.id if view else None,
        )

    def _go_to_agent(self, agent: str) -> None:
        agents = self.query_one("#agents", AgentList)
        agents.show_team(self.dashboard.model)
        agents.move_to(agent)
        self.front(agents)

    @on(ItemList.Highlighted, "#agents")
    def choose_agent(self) -> None:
        self._loaded = None
        self._looks_at_files = False
        agent = self.query_one("#agents", AgentList).agent
        self.session.leave_others(agent.agent.id if agent is not None else "")
        self.show_model(self.dashboard.model)

    @on(ItemList.Highlighted, "#buffers")
    def choose_buffer(self) -> None:
        self._preview()

    @on(ItemList.Opened, "#buffers")
    def open_buffer(self) -> None:
        self.action_buffers()

    @on(ItemList.Highlighted, "#files")
    def choose_file(self) -> None:
        self._preview()

    @on(ItemList.Opened, "#agents")
    def open_agent(self) -> None:
        view = self.query_one("#agents", AgentList).agent
        if view is not None and view.session is not None:
            self.front(self.query_one("#session", TranscriptView))
        else:
            self.front(self.query_one("#files", FileList))

    @on(ItemList.Opened, "#files")
    def open_file(self) -> None:
        self.front(self.query_one("#preview", TextPane))

    @on(ItemList.Opened, "#rows")
    def open_row(self) -> None:
        row = self.query_one("#rows", OwnRowList).item
        if row:
            self.app.push_screen(RowDialog(row))

    @work(exclusive=True, group="agent")
    async def load_agent(self, agent: str, as_of: int) -> None:
        journal = self.dashboard.journal
        files = await asyncio.to_thread(list_private_files, journal, agent, as_of=as_of)
        rows = await asyncio.to_thread(read_activity, journal, agent, as_of=as_of)
        edited = [each for each in self.dashboard.model.client_files if agent in each.agents]
        changed = [each.head for each in self.dashboard.model.tree_files if each.head.actor == agent]
        self.query_one("#files", FileList).show_of(agent, (*files, *changed, *edited))
        self.query_one("#rows", OwnRowList).show_of(agent, without_repeats(rows))
        self._preview()

    def _preview(self) -> None:
        buffer = self.query_one("#buffers", OwnBufferList).item
        if buffer is not None and not self._looks_at_files:
            if buffer != self._previewed:
                self._previewed = buffer
                self.load_buffer(buffer)
            return
        head = self.query_one("#files", FileList).item
        if head is None:
            self._previewed = None
            self.query_one("#preview", TextPane).clear()
        elif head != self._previewed:
            self._previewed = head
            if isinstance(head, ClientFile):
                self.load_client_edit(head)
            else:
                self.load_preview(head)

    @work(exclusive=True, group="preview")
    async def load_preview(self, head: Row) -> None:
        """Show the file, and mark the lines that its newest version changed."""
        path = head.path if head.zone == "private" else path_of(head)
        await show_version(self.dashboard, self.query_one("#preview", TextPane), head, path)

    @work(exclusive=True, group="preview")
    async def load_client_edit(self, file: ClientFile) -> None:
        """Show the newest edit of a file that has no versions."""
        text = await asyncio.to_thread(read_client_call, self.dashboard.journal, file.row)
        lines = await asyncio.to_thread(client_file_lines, file, text, self.dashboard.texts)
        title = sanitize(file.path)
        self.query_one("#preview", TextPane).show_notice(("client", file.row.seq), lines, title=title)

    @work(exclusive=True, group="preview")
    async def load_buffer(self, buffer: BufferView) -> None:
        """Show the unwritten changes, or the text if a choice is pending or nothing is changed."""
        app, view = self.dashboard, self.query_one("#preview", TextPane)
        reading = await reading_of(app, buffer)
        if buffer.waits_for_choice or not buffer.record.is_changed:
            show_text(app, view, buffer, reading)
        else:
            await show_changes(app, view, buffer, reading, title_of(buffer, app.texts))
