"""The dashboard app: it passes the model to the screens, and switches between them."""

from __future__ import annotations

import asyncio
from asyncio import Task
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from rich.console import Console
from rich.style import Style
from textual import events, work
from textual.screen import Screen
from textual.worker import WorkerFailed
from watchroom.errors import JournalDamaged, JournalUnreachable, OutcomeUnknown, WatchroomError
from watchroom.kernel.journal import Journal
from watchroom.model import Json
from watchroom.texts import Language

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.context import DraftStore
from watchroom_tui.formatters.actor_class import AgentColours
from watchroom_tui.keys.actions import (
    ACTIONS,
    OF_THE_APP,
    SCREEN_OF_SCOPE,
    SCREENS,
    Action,
    bindings,
    is_possible,
    scopes_of,
)
from watchroom_tui.keys.keymap import changed_actions
from watchroom_tui.presentation.localization import load_texts
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.shown_place import own_folder
from watchroom_tui.presentation.theme import DARK, LIGHT, THEMES
from watchroom_tui.services.alert_monitor import AlertMonitor
from watchroom_tui.services.alert_policy import AlertMode
from watchroom_tui.services.clock import CLOCK_SECONDS, Clock
from watchroom_tui.services.decision_signing import DecisionSigning
from watchroom_tui.services.feed import Feed
from watchroom_tui.services.feed_messages import ModelChanged, OutageChanged, WatchModeChanged
from watchroom_tui.services.navigator import Navigator
from watchroom_tui.services.replay import ReplayApp
from watchroom_tui.services.screen_registry import load_screen_class
from watchroom_tui.services.start_up import load_screens, resume_collector
from watchroom_tui.services.workspace_memory import WorkspaceMemory
from watchroom_tui.textual_compat import driver_of
from watchroom_tui.widgets.line_list import LineList
from watchroom_tui.widgets.line_widget import assign_colours
from watchroom_tui.widgets.scrollable import ScrollableWidget

if TYPE_CHECKING:
    from textual.command import Provider
    from watchroom import Workspace

    from watchroom_tui.services.agent_stop import AgentStop
    from watchroom_tui.services.settings import Settings
    from watchroom_tui.terminal.session import TerminalWatch
    from watchroom_tui.worker.process import WorkerProcess


_INTERRUPT: Final = "ctrl+c"
"""The key that does not wait for a dialog."""


def _palette_commands() -> type[Provider]:
    from watchroom_tui.dialogs.palette import ActionCommands

    return ActionCommands


class WatchroomApp(ReplayApp):
    """The dashboard over ``journal``, live or as of row ``until``.

    - ``place``: the workspace's name.
    - ``person``: the name of the person who acts.
    - ``open_workspace``: opens the workspace for acts. It is called once, in a thread, after the first paint,
      and its caller closes the workspace. Without it, and in the past, nothing can be changed.
    - ``end_after``: seconds until the dashboard closes, default: never.
    - ``alerts``: how new needs are announced.
    - ``initial_screen``: the screen to open, default: the first.
    - ``watch``: tells whether the terminal is still open. Without it the dashboard has no terminal.
    - ``filters``: the filters of lists, by ``screen.list``.
    - ``root``: the workspace's folder, or its address on a server, to search it before it is open.
    - ``folder``: the folder in which the dashboard was started.
    """

    BINDINGS = bindings("app")
    DEFAULT_MODE = SCREENS[0][1]
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar = {_palette_commands}
    MODES: ClassVar[dict[str, Callable[[], Screen[None]]]] = {}  # type: ignore[assignment]

    def __init__(
        self,
        journal: Journal,
        *,
        place: str,
        language: Language = "en",
        until: int | None = None,
        person: str = "supervisor",
        open_workspace: Callable[[], Workspace] | None = None,
        end_after: float | None = None,
        alerts: AlertMode = "bell",
        initial_screen: str | None = None,
        watch: TerminalWatch | None = None,
        settings: Settings | None = None,
        filters: Mapping[str, str] | None = None,
        root: str | None = None,
        folder: str = "",
    ) -> None:
        if initial_screen is not None:
            # Textual names the first screen after it.
            self.DEFAULT_MODE = initial_screen  # type: ignore[misc]
        depth = watch.color_depth if watch is not None else "full"
        super().__init__(
            driver_class=watch.driver_class() if watch else None,
            css_path=["app.tcss", "ansi.tcss"] if depth == "16" else "app.tcss",
            ansi_color=depth == "16",
        )
        # A plain traceback, because rich would colour it and its bytes are escaped on the way to the
        # terminal.
        self.error_console = Console(markup=False, highlight=False, stderr=True, force_terminal=False)
        self._watch = watch
        self.texts = load_texts(language)
        self.language: Language = language
        self.journal = journal
        self.place = place
        self.person = person
        self._worker_process: WorkerProcess | None = None
        self.workspace: Workspace | None = None
        self._is_open = asyncio.Event()
        self._open_workspace = open_workspace
        self.may_act = open_workspace is not None
        self._view_only = ""
        """The text that says why the workspace could not be opened."""
        self.root = root
        self.folder = folder
        self._end_after = end_after
        self._stop_watching: Callable[[], None] | None = None
        self.polls_files = False
        """Whether external edits are found by polling, because the system has no watches left."""
        self._agent_stop: AgentStop | None = None
        self._visited: list[str] = []
        self._signing = DecisionSigning(self)
        self.navigator = Navigator(self)
        self.drafts = DraftStore()
        self.keymap = settings.keymap if settings else {}
        self.filters = dict(filters or {})
        self.set_keymap(
            {each.id: ",".join(each.keys_in(self.keymap)) for each in changed_actions(self.keymap)}
        )
        self._held_keys: list[events.Event] | None = None
        """The keys typed since `open_editor`, until its dialog is open."""
        self._acts: set[Task[Mapping[str, Json] | None]] = set()
        self.feed = Feed(
            journal,
            lambda model, progress: self.post_message(ModelChanged(model, progress)),
            until=until,
            show_outage=lambda since: self.post_message(OutageChanged(since)),
            folder=own_folder(journal, root),
        )
        self.outage: int | None = None
        """The time since which the journal's server does not answer, in nanoseconds since the epoch."""
        self.alert_monitor = AlertMonitor(self, alerts)
        self._alerts_at_start = alerts
        self.line_styles: dict[str, Style] = {}
        self.agent_colours = AgentColours()
        for theme in THEMES[depth]:
            self.register_theme(theme)
        # Set without the watcher, which would parse every stylesheet again before the first paint.
        chosen = LIGHT if settings and settings.theme == "light" else DARK
        self._theme_at_start = chosen
        self.set_reactive(WatchroomApp.theme, chosen)
        self.add_class(f"-theme-{chosen}", "-light-mode" if chosen == LIGHT else "-dark-mode")
        self.stylesheet.set_variables(self.get_css_variables())
        self.newest_model, self.progress = self.feed.read_initial_model()
        self.model = self.newest_model
        self.agent_colours.assign(each.agent.id for each in self.newest_model.agents)

    def get_default_screen(self) -> Screen[None]:
        return _make_screen(self.DEFAULT_MODE)

    def on_mount(self) -> None:
        for _, name in SCREENS:
            self.add_mode(name, partial(_make_screen, name))
        self.call_after_refresh(self._start)

    def _start(self) -> None:
        resume_collector()
        self.feed.start()
        Clock(self, self.alert_monitor).start()
        if self._end_after is not None:
            self.set_timer(self._end_after, self.exit)
        if self._watch is not None:
            self.set_interval(CLOCK_SECONDS, self._leave_closed_terminal)
            self.run_worker(load_screens(self), group="screens")
        self.open_in_background()

    def _leave_closed_terminal(self) -> None:
        if self._watch is not None and self._watch.must_close:
            self.exit()

    @work(group="workspace")
    async def open_in_background(self) -> None:
        if self._open_workspace is None or not self.feed.is_live:
            return
        try:
            workspace = await asyncio.to_thread(self._open_workspace)
        except (WatchroomError, OSError) as error:
            # A read-only workspace can still be viewed.
            self._explain_view_only(error)
            return
        # Without a pause in between, so that closing the dashboard leaves nothing running.
        self.workspace = workspace
        workspace.background.start()
        self._stop_watching = workspace.file_watcher.subscribe(
            lambda mode: self.post_message(
                WatchModeChanged(workspace.file_watcher.POLL_SECONDS if mode == "polling" else None)
            )
        )
        self._is_open.set()

    def _explain_view_only(self, error: WatchroomError | OSError) -> None:
        reason = error.message(self.language) if isinstance(error, WatchroomError) else str(error)
        self._view_only = self.texts("files.view_only", reason=sanitize(reason))
        self.may_act = False
        self._is_open.set()
        self.explain_read_only()
        self.show_model()

    @property
    def can_act(self) -> bool:
        """Whether the person can change anything now. False in the past, and for viewers."""
        return self.is_live and self.may_act

    def explain_read_only(self) -> None:
        """Show why nothing can be changed."""
        past = "" if self.is_live else self.texts("files.in_the_past")
        self.show_message(past or self._view_only or self.texts("files.only_looking"), "warning")

    @property
    def is_live(self) -> bool:
        """Whether the present is shown, not an earlier moment."""
        return self.feed.is_live and self._replayed is None

    def act(self, tool: str, arguments: Mapping[str, Json]) -> Task[Mapping[str, Json] | None]:
        """Call a tool as the person, in a thread, as soon as the workspace is open.

        It is a task and not a Textual worker, so that it continues after its screen is left. Its result is
        the tool's, or None if nothing can be changed. The reason is then shown.
        """
        task = asyncio.create_task(self._act(tool, arguments))
        self._acts.add(task)
        task.add_done_callback(self._acts.discard)
        return task

    async def _act(self, tool: str, arguments: Mapping[str, Json]) -> Mapping[str, Json] | None:
        workspace = await self.wait_for_workspace()
        if workspace is None:
            self.explain_read_only()
            return None
        return await self._signing.act(workspace, tool, arguments)

    async def wait_for_workspace(self) -> Workspace | None:
        """Return the workspace as soon as it is open, None if nothing can be changed."""
        if not self.can_act:
            return None
        await self._is_open.wait()
        # None if it could not be opened.
        return self.workspace

    def open_editor(self, work: Callable[[], Awaitable[object]], of: Screen[None] | None = None) -> None:
        """Run ``work``, which opens a dialog for a text, in a worker that ends with the screen ``of``.

        Keys wait until the dialog is open, so that none of them acts as a command. They are dropped if
        ``work`` ends without a dialog.
        """
        held = self._held_keys = []
        (of or self).run_worker(self._open_editor(work, held), group="editor")

    async def _open_editor(self, work: Callable[[], Awaitable[object]], held: Sequence[object]) -> None:
        try:
            await work()
        finally:
            # Its dialog may be closed, and another one about to open.
            if self._held_keys is held:
                self._held_keys = None

    def release_keys(self) -> None:
        """Pass the keys that wait for a dialog on to the front screen."""
        if self._held_keys is not None:
            # Later, because the dialog requests the focus in the same way, just before.
            self.call_later(self._replay_keys)

    async def _replay_keys(self) -> None:
        held, self._held_keys = self._held_keys or [], None
        for event in sorted(held, key=lambda each: each.time):
            if isinstance(event, events.Key):
                await self.on_event(events.Key(event.key, event.character))
            elif isinstance(event, events.Paste):
                await self.on_event(events.Paste(event.text))

    async def on_event(self, event: events.Event) -> None:
        # A key comes twice: first for the front widget, then from that widget as a command.
        is_interrupt = isinstance(event, events.Key) and event.key == _INTERRUPT
        is_typed = isinstance(event, (events.Key, events.Paste)) and not is_interrupt
        if self._held_keys is not None and is_typed:
            self._held_keys.append(event)
        else:
            await super().on_event(event)

    def on_model_changed(self, message: ModelChanged) -> None:
        self.newest_model = message.model
        assign_colours(self, (each.agent.id for each in self.newest_model.agents))
        if self._replayed is None:
            self.model = message.model
        self.progress = message.progress
        self.alert_monitor.record_current_needs()
        if self.model.conflicts and self._worker_process is None and self.is_running:
            # A person will want to see the conflict without waiting for the process.
            self.run_worker(self.worker_process.start(), group="workspace")
        self.show_model()

    def on_outage_changed(self, message: OutageChanged) -> None:
        self.outage = message.since
        self.show_model()

    def on_watch_mode_changed(self, message: WatchModeChanged) -> None:
        self.polls_files = message.poll_seconds is not None
        if self.polls_files:
            self.show_message(self.texts("header.polling_reason", seconds=message.poll_seconds), "warning")
        self.show_model()

    def _handle_exception(self, error: Exception) -> None:
        # A screen's read error must not end the dashboard: the server may come back, or only one entry is
        # damaged. All errors of workers pass through here.
        cause = error.error if isinstance(error, WorkerFailed) else error
        if isinstance(cause, (JournalUnreachable, OutcomeUnknown, JournalDamaged)):
            self.show_message(cause.message(self.language), "warning")
        else:
            super()._handle_exception(error)

    def show_model(self) -> None:
        """Update the current screen."""
        if self.base_screen and self.base_screen.has_panes:
            self.base_screen.show(self.model)

    @property
    def worker_process(self) -> WorkerProcess:
        """The worker process for slow work."""
        if self._worker_process is None:
            from watchroom_tui.worker.process import WorkerProcess

            self._worker_process = WorkerProcess()
        return self._worker_process

    def now(self) -> int:
        """Return the shown moment by the journal's clock, in nanoseconds since the epoch."""
        return self.journal.now() if self.is_live else self.model.time

    def send_to_terminal(self, sequence: str) -> None:
        """Write a sequence that does not draw. The driver writes it between two frames."""
        driver = driver_of(self)
        if driver is not None and not self.is_headless:
            driver.write(sequence)

    @property
    def base_screen(self) -> BaseScreen | None:
        """The current screen, below its overlays."""
        return next((each for each in reversed(self.screen_stack) if isinstance(each, BaseScreen)), None)

    async def action_show_screen(self, name: str) -> None:
        await self.show_screen(name)

    async def show_screen(self, name: str) -> None:
        """Close the overlays and go to the screen of this name."""
        while len(self.screen_stack) > 1:
            await self._leave_screen()
        if self.current_mode != name:
            self._visited.append(self.current_mode)
            await self._switch_to(name)

    async def _switch_to(self, name: str) -> None:
        """Show the screen of this name, once it is complete."""
        with self.batch_update():
            await self.switch_mode(name)

    def delay_update(self, delay: float = 0.05) -> None:
        """Do nothing. Textual would hide the switch by painting nothing for ``delay`` seconds. Here
        `_switch_to` knows when it is done."""

    async def _leave_screen(self) -> None:
        """Close the front screen."""
        screen = self.screen
        if isinstance(screen, BaseScreen):
            await screen.leave()
        # It may have closed meanwhile.
        if self.screen is screen:
            await self.pop_screen()

    async def action_urgent(self) -> None:
        await self.navigator.go_to_next_need()

    def action_stop_all(self) -> None:
        if self._agent_stop is None:
            from watchroom_tui.services.agent_stop import AgentStop

            self._agent_stop = AgentStop(self)
        self.run_worker(self._agent_stop.toggle(), group="stop", exclusive=True)

    async def action_quit(self) -> None:
        """Close the dashboard. Ask first if there are unsaved drafts."""
        unsaved = self.drafts.unsaved(self.newest_model)
        if not unsaved:
            self.exit()
            return
        from watchroom_tui.dialogs.confirm import ConfirmDialog

        text = self.texts("merge.quit_question", path=", ".join(sanitize(each.label) for each in unsaved))
        question = ConfirmDialog(self.texts("merge.quit_title"), text)
        await self.push_screen(question, lambda leaves: self.exit() if leaves else None)

    def action_mark_as_seen(self) -> None:
        from watchroom_tui.services.seen import mark_as_seen

        screen = self.base_screen
        need = screen.current_need if screen else None
        if need is None and screen is not None and screen.mark_seen():
            return
        self.run_worker(mark_as_seen(self, need), group="seen", exclusive=True)

    def action_new_task(self) -> None:
        from watchroom_tui.services.new_task import begin_task

        self.open_editor(partial(begin_task, self))

    def action_search_everything(self) -> None:
        from watchroom_tui.services.searching import search_everything

        self.open_editor(partial(search_everything, self))

    def action_set_budget(self) -> None:
        from watchroom_tui.services.budget_setting import set_budget

        self.open_editor(partial(set_budget, self))

    def action_cycle_alerts(self) -> None:
        self.alert_monitor.cycle()

    async def action_back(self) -> None:
        focused = self.focused
        if isinstance(focused, (LineList, ScrollableWidget)) and focused.end_search():
            return
        if isinstance(self.screen, BaseScreen) and self.screen.cancel_mode():
            return
        if len(self.screen_stack) > 1:
            await self._leave_screen()
        elif self.leave_timeline() or (self.base_screen and self.base_screen.return_to_pane()):
            return
        elif self._visited:
            await self._switch_to(self._visited.pop())

    def action_next_pane(self) -> None:
        if isinstance(self.screen, BaseScreen):
            self.screen.next_pane(1)
        else:
            self.screen.focus_next()

    def action_previous_pane(self) -> None:
        if isinstance(self.screen, BaseScreen):
            self.screen.next_pane(-1)
        else:
            self.screen.focus_previous()

    def action_help(self) -> None:
        from watchroom_tui.dialogs.help import HelpDialog

        self.push_screen(HelpDialog())

    def action_command_palette(self) -> None:
        from watchroom_tui.dialogs.palette import Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(placeholder=self.texts("palette.search"), id="--command-palette"))

    def action_flip_theme(self) -> None:
        self.theme = LIGHT if self.theme == DARK else DARK

    def palette_actions(self, screen: Screen[object]) -> list[Action]:
        """Return the actions of every screen, those of ``screen`` first."""
        here = {
            *OF_THE_APP,
            *([self.base_screen.SCREEN_NAME] if self.base_screen else []),
            *scopes_of(screen.focused),
        }
        actions = [each for each in ACTIONS if self.can_act or not each.acts]
        offered = [each for each in actions if each.scope in here or each.scope in SCREEN_OF_SCOPE]
        return sorted(offered, key=lambda each: each.scope not in here)

    async def run_palette_action(self, action: Action) -> None:
        """Run ``action`` on its screen, or show that it is not possible now.

        An action that changes the workspace is not run on an item of another screen that the person has not
        seen: its screen opens, and a message names the key.
        """
        name, texts = SCREEN_OF_SCOPE.get(action.scope), self.texts
        before = self.base_screen.SCREEN_NAME if self.base_screen is not None else ""
        goes_there = name is not None and name != before
        if name is not None and goes_there:
            await self.show_screen(name)
        keys, help_text = action.shown_keys(self.keymap), action.help(texts)
        if not is_possible(action, self.screen):
            where = texts(f"scope.{action.scope}")
            self.show_message(texts("palette.not_here", where=where, action=help_text), "warning")
        elif goes_there and action.acts and keys:
            self.show_message(texts("palette.select", shown=keys[0], action=help_text))
        else:
            await self.run_action(action.target, self.screen)

    def changed_settings(self) -> dict[str, str]:
        """Return the settings that the person changed in this dashboard, by name."""
        changed = {}
        if self.theme != self._theme_at_start:
            changed["theme"] = "light" if self.theme == LIGHT else "dark"
        if self.alert_monitor.mode != self._alerts_at_start:
            changed["alerts"] = self.alert_monitor.mode
        return changed

    def memory(self) -> WorkspaceMemory:
        """Return what the next dashboard of this workspace starts with."""
        filters = {name: text for name, text in self.filters.items() if text}
        return WorkspaceMemory(self.current_mode, filters)

    async def _stop_threads(self) -> None:
        await asyncio.to_thread(self.feed.stop)
        await asyncio.to_thread(self.stop_timeline)
        if self._stop_watching is not None:
            await asyncio.to_thread(self._stop_watching)

    async def on_unmount(self) -> None:
        await self._stop_threads()
        if self._worker_process is not None:
            await self._worker_process.close()


def _make_screen(name: str) -> Screen[None]:
    """Create a screen. Screens are created on their first visit, so that the first paint does not wait for
    them."""
    return load_screen_class(name)()
