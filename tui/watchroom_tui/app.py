"""The dashboard app: it passes the model to the screens, and switches between them."""

from __future__ import annotations

import asyncio
from asyncio import Task
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from rich.console import Console
from rich.style import Style
from textual import events, on, work
from textual.notifications import Notify
from textual.screen import Screen
from textual.worker import WorkerFailed
from watchroom import __version__
from watchroom.errors import JournalError
from watchroom.features.overview.model import Model, Need, urgent_needs
from watchroom.kernel.journal import Journal
from watchroom.model import Json
from watchroom.texts import Language

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.context import (
    Arguments,
    Dashboard,
    DraftStore,
    Navigator,
    Outage,
    Severity,
    TimelineState,
    load_screen_class,
)
from watchroom_tui.formatters.actor_class import AgentColours
from watchroom_tui.formatters.machines import RemoteNeed, machine_text, outcome_text, remote_needs
from watchroom_tui.keys.actions import SCREENS, bindings
from watchroom_tui.keys.keymap import changed_actions
from watchroom_tui.presentation.localization import load_texts
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.shown_place import own_folder
from watchroom_tui.presentation.theme import DARK, LIGHT, THEMES
from watchroom_tui.readers.plugin_screens import plugin_screens
from watchroom_tui.services.alert_monitor import AlertMonitor
from watchroom_tui.services.alert_policy import AlertMode
from watchroom_tui.services.feed import Feed, ModelChanged, OutageChanged
from watchroom_tui.services.key_queue import KeyQueue, PathHandled
from watchroom_tui.services.machine_links import AnswerSettled, MachineLinks, MachinesChanged
from watchroom_tui.services.person_toolbox import PersonToolbox, WatchModeChanged
from watchroom_tui.services.plugin_notices import PluginNotices, bind_screens
from watchroom_tui.services.settings import WorkspaceMemory
from watchroom_tui.services.start_up import load_screens, resume_collector
from watchroom_tui.services.timeline import ACTIONS_WHILE_OPEN, MomentChanged, Timeline
from watchroom_tui.services.type_ahead import TypeAhead
from watchroom_tui.textual_compat import Notice, driver_of, drop_information
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.line_widget import assign_colours
from watchroom_tui.widgets.text_pane import TextPane
from watchroom_tui.widgets.timeline_bar import TimelineBar

if TYPE_CHECKING:
    from textual.command import Provider
    from textual.theme import Theme
    from watchroom import Workspace
    from watchroom.serving.machines.connection import MachineView
    from watchroom.serving.machines.messages import FarAnswer

    from watchroom_tui.services.agent_stop import AgentStop
    from watchroom_tui.services.settings import Settings
    from watchroom_tui.terminal.session import TerminalWatch
    from watchroom_tui.worker.process import WorkerProcess


CLOCK_SECONDS: Final = 1.0
NOTICE_SECONDS: Final[Mapping[Severity, float]] = {"information": 3.0, "warning": 5.0, "error": 8.0}
"""Seconds that a notice is shown."""


def _palette_commands() -> type[Provider]:
    from watchroom_tui.dialogs.palette import ActionCommands

    return ActionCommands


def _palette_screens() -> type[Provider]:
    from watchroom_tui.dialogs.palette import ScreenCommands

    return ScreenCommands


class WatchroomApp(Dashboard):
    """The dashboard over ``journal``, live or as of row ``until``.

    - ``place``: the workspace's name.
    - ``person``: the name of the person who acts.
    - ``open_workspace``: callback that opens the workspace for changes. It is called once, in a thread, after
      the first paint. The caller closes the workspace. None: the dashboard is read-only. With ``until``, the
      dashboard is always read-only.
    - ``end_after``: seconds until the dashboard closes. None: never.
    - ``alerts``: how new needs are announced.
    - ``initial_screen``: the screen to open, default: the first.
    - ``watch``: reports whether the terminal is still open. None if the dashboard has no terminal.
    - ``filters``: the filters of lists, by ``screen.list``.
    - ``root``: the folder of the workspace, or its address on a server. Search uses it until the workspace is
      open.
    - ``folder``: the folder in which the dashboard was started.
    """

    BINDINGS = [*bindings("app"), *bindings("timeline")]  # noqa: RUF012  # as textual has it
    DEFAULT_MODE = SCREENS[0][1]
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar = {_palette_commands, _palette_screens}
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
            # Textual starts in the mode `DEFAULT_MODE`.
            self.DEFAULT_MODE = initial_screen  # type: ignore[misc]
        depth = watch.color_depth if watch is not None else "full"
        super().__init__(
            driver_class=watch.driver_class() if watch else None,
            css_path=["app.tcss", "ansi.tcss"] if depth == "16" else "app.tcss",
            ansi_color=depth == "16",
        )
        # Plain tracebacks, because rich would colour them, and the terminal output escapes control bytes.
        self.error_console = Console(markup=False, highlight=False, stderr=True, force_terminal=False)
        self._watch = watch
        self.texts = load_texts(language)
        self.language: Language = language
        self.journal = journal
        self.place = place
        self.person = person
        self._worker_process: WorkerProcess | None = None
        self._toolbox = PersonToolbox(self, open_workspace)
        self.root = root
        self.folder = folder
        self._end_after = end_after
        self.polls_files = False
        self._agent_stop: AgentStop | None = None
        self._visited: list[str] = []
        self.navigator = Navigator(self)
        self.drafts = DraftStore()
        self.keymap = settings.keymap if settings else {}
        self.filters = dict(filters or {})
        self.set_keymap(
            {each.id: ",".join(each.keys_in(self.keymap)) for each in changed_actions(self.keymap)}
        )
        self._type_ahead = TypeAhead()
        self.key_queue = KeyQueue(self, self._type_ahead, self._is_arriving, self.drop_keys)
        self._plugin_notices = PluginNotices(self)
        self.feed = Feed(
            journal,
            lambda model, progress: self.post_message(ModelChanged(model, progress)),
            until=until,
            show_outage=lambda outage: self.post_message(OutageChanged(outage)),
            folder=own_folder(journal, root),
            root=root,
        )
        self._timeline = Timeline(self)
        self.version = __version__
        self.machines: tuple[MachineView, ...] = ()
        self._machine_links = MachineLinks(self, settings.machine_list if settings else ())
        self.outage: Outage | None = None
        self.alert_monitor = AlertMonitor(self, alerts)
        self._alerts_at_start = alerts
        self.line_styles: dict[str, Style] = {}
        self.agent_colours = AgentColours()
        self._theme_at_start = LIGHT if settings and settings.theme == "light" else DARK
        self._set_first_theme(THEMES[depth], self._theme_at_start)
        self.newest_model, self.progress = self.feed.read_initial_model()
        self.model = self.newest_model
        self.needs: tuple[Need, ...] = urgent_needs(self.model, self.now())
        self.agent_colours.assign(each.agent.id for each in self.newest_model.agents)

    def _set_first_theme(self, themes: Iterable[Theme], chosen: str) -> None:
        """Set the theme without its watcher, which would parse every stylesheet again before the first
        paint."""
        for theme in themes:
            self.register_theme(theme)
        self.set_reactive(WatchroomApp.theme, chosen)
        self.add_class(f"-theme-{chosen}", "-light-mode" if chosen == LIGHT else "-dark-mode")
        self.stylesheet.set_variables(self.get_css_variables())

    def get_default_screen(self) -> Screen[None]:
        return _make_screen(self.DEFAULT_MODE)

    def on_mount(self) -> None:
        for _, name in SCREENS:
            self.add_mode(name, partial(_make_screen, name))
        self.call_after_refresh(self._start)

    def _start(self) -> None:
        resume_collector()
        self.feed.start()
        self.alert_monitor.start()
        self.set_interval(CLOCK_SECONDS, self._tick)
        if self._end_after is not None:
            self.set_timer(self._end_after, self.exit)
        if self._watch is not None:
            self.set_interval(CLOCK_SECONDS, self._leave_closed_terminal)
            self.run_worker(load_screens(self), group="screens")
        self._plugin_notices.start()
        self.run_worker(bind_screens(self), group="plugins")
        self.open_in_background()
        if self.feed.is_live:
            self.run_worker(self._machine_links.open, group="machines", thread=True)

    def _tick(self) -> None:
        """Update values that change without a new row: ages, deadlines and needs. One timer updates all of
        them, so that an idle dashboard wakes up once per second."""
        self.needs = urgent_needs(self.model, self.now())
        # Announce new needs even while an earlier moment is shown.
        present = self.needs if self.is_live else urgent_needs(self.newest_model, self._present())
        self.alert_monitor.tell((*present, *remote_needs(self.machines)))
        if self.base_screen is not None:
            self.base_screen.follow_clock()

    def _leave_closed_terminal(self) -> None:
        if self._watch is not None and self._watch.must_close:
            self.exit()

    @work(group="workspace")
    async def open_in_background(self) -> None:
        if self.feed.is_live and not await self._toolbox.open():
            self.explain_read_only()
            self.show_model()

    @property
    def workspace(self) -> Workspace | None:
        return self._toolbox.workspace

    @property
    def may_act(self) -> bool:
        return self._toolbox.may_act

    @property
    def can_act(self) -> bool:
        return self.is_live and self.may_act

    def explain_read_only(self) -> None:
        failure = self._toolbox.failure
        if failure:
            text = self.texts("files.view_only", reason=sanitize(failure))
        elif self.feed.is_live and not self.may_act:
            text = self.texts("files.only_looking")
        else:
            text = self.texts("files.in_the_past")
        self.show_message(text, "warning")

    @property
    def is_live(self) -> bool:
        return self.feed.is_live and self._timeline.seq is None

    def act(self, tool: str, arguments: Arguments) -> Task[Mapping[str, Json] | None]:
        return self._toolbox.call(tool, arguments)

    async def wait_for_workspace(self) -> Workspace | None:
        return await self._toolbox.wait_for_workspace()

    def open_editor(self, work: Callable[[], Awaitable[object]], of: Screen[None] | None = None) -> None:
        (of or self).run_worker(self._type_ahead.hold_for(work), group="editor")

    def release_keys(self) -> None:
        if self._type_ahead.is_holding:
            # Deferred like the dialog's own focus request, so that the dialog has the focus first.
            self.call_later(self._replay_keys)

    async def _replay_keys(self) -> None:
        for event in self._type_ahead.release():
            await self.on_event(event)

    def drop_keys(self) -> None:
        if self.key_queue.drop():
            self.show_message(self.texts("list.dropped_keys"), "warning")

    def _is_arriving(self) -> bool:
        screen = self.screen if self.screen_stack else None
        return isinstance(screen, BaseScreen) and screen.is_arriving

    async def on_event(self, event: events.Event) -> None:
        if self._type_ahead.take(event):
            return
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            if self.key_queue.admits(event):
                target = self.focused or self.screen
                await super().on_event(event)
                self.key_queue.follow(event, target)
        elif isinstance(event, events.Key) and isinstance(self.screen, BaseScreen):
            # The key came back from the front widget, which does not use it.
            if not self.screen.explain_key(event.key):
                await super().on_event(event)
        else:
            await super().on_event(event)

    def on_path_handled(self, message: PathHandled) -> None:
        message.set()

    def show_message(self, text: str, severity: Severity = "information") -> None:
        self.notify(sanitize(text), severity=severity, markup=False, timeout=NOTICE_SECONDS[severity])

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: Severity = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Show a notice, as Textual does. Remove earlier information notices. Warnings and errors stay until
        they time out."""
        drop_information(self)
        seconds = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        self.post_message(Notify(Notice(message, title, severity, seconds, markup=markup)))

    def on_model_changed(self, message: ModelChanged) -> None:
        self.newest_model = message.model
        assign_colours(self, (each.agent.id for each in self.newest_model.agents))
        if self._timeline.seq is None:
            self.model = message.model
        self.progress = message.progress
        self.alert_monitor.record_current_needs()
        if self.model.conflicts and self._worker_process is None and self.is_running:
            # Start the worker process early, so that a person can open the conflict without a delay.
            self.run_worker(self.worker_process.start(), group="workspace")
        self.show_model()

    @property
    def remote_needs(self) -> tuple[RemoteNeed, ...]:
        return remote_needs(self.machines) if self.is_live else ()

    def answer_machine(
        self, item: RemoteNeed, decision: FarAnswer, text: str = "", values: Sequence[str] = ()
    ) -> None:
        self._machine_links.answer(item, decision, text, values)

    def on_machines_changed(self, message: MachinesChanged) -> None:
        before = {each.name: each for each in self.machines}
        self.machines = message.views
        for each in self.machines:
            known = before.get(each.name)
            if known is not None and known.state != each.state and known.is_connected:
                self.show_message(machine_text(each, self.version, self.texts), "warning")
            elif known is not None and known.state == "lost" and each.is_connected:
                self.show_message(machine_text(each, self.version, self.texts))
        self.show_model()

    def on_answer_settled(self, message: AnswerSettled) -> None:
        severity: Severity = "information" if message.outcome.fate == "accepted" else "warning"
        self.show_message(outcome_text(message.outcome, self.texts), severity)

    def on_outage_changed(self, message: OutageChanged) -> None:
        self.outage = message.outage
        self.show_model()

    def on_watch_mode_changed(self, message: WatchModeChanged) -> None:
        self.polls_files = message.poll_seconds is not None
        if self.polls_files:
            self.show_message(self.texts("header.polling_reason", seconds=message.poll_seconds), "warning")
        self.show_model()

    def _handle_exception(self, error: Exception) -> None:
        # A read error of a screen must not end the dashboard: the journal may be readable later, or only one
        # entry is damaged. Textual passes all errors of workers to this method.
        cause = error.error if isinstance(error, WorkerFailed) else error
        if isinstance(cause, JournalError):
            self.show_message(cause.message(self.language), "warning")
        else:
            super()._handle_exception(error)

    def on_moment_changed(self, message: MomentChanged) -> None:
        self._timeline.show(message.moment)

    def show_model(self, model: Model | None = None) -> None:
        if model is not None:
            self.model = model
        self.needs = urgent_needs(self.model, self.now())
        if self.base_screen and self.base_screen.has_panes:
            self.base_screen.show(self.model)

    @property
    def worker_process(self) -> WorkerProcess:
        if self._worker_process is None:
            from watchroom_tui.worker.process import WorkerProcess

            self._worker_process = WorkerProcess()
        return self._worker_process

    def now(self) -> int:
        return self._present() if self.is_live else self.model.time

    def _present(self) -> int:
        """Return the time of the journal's clock, which is never behind the newest row."""
        return max(self.feed.now(), self.newest_model.time)

    def send_to_terminal(self, sequence: str) -> None:
        driver = driver_of(self)
        if driver is not None and not self.is_headless:
            driver.write(sequence)

    @property
    def timeline(self) -> TimelineState | None:
        return self._timeline.state

    def leave_timeline(self) -> bool:
        return self._timeline.leave()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ACTIONS_WHILE_OPEN or action == "toggle_timeline":
            # A merge changes the workspace, so it cannot be shown at an earlier moment. An editor takes keys
            # as text.
            screen = self.screen
            if not isinstance(screen, BaseScreen) or screen.SCREEN_NAME == "merge" or screen.is_editing:
                return False
            return self._timeline.is_open or action == "toggle_timeline"
        return super().check_action(action, parameters)

    def action_toggle_timeline(self) -> None:
        self._timeline.toggle()

    def action_step_row(self, step: int) -> None:
        self._timeline.step_row(step)

    def action_step_marker(self, step: int) -> None:
        self._timeline.step_marker(step)

    def action_toggle_playing(self) -> None:
        self._timeline.toggle_playing()

    def action_change_speed(self, step: int) -> None:
        self._timeline.change_speed(step)

    async def action_mark_moment(self) -> None:
        await self._timeline.mark_moment()

    def action_write_report(self) -> None:
        self._timeline.write_report()

    @on(TimelineBar.SeekRequested)
    def seek_moment(self, event: TimelineBar.SeekRequested) -> None:
        self._timeline.seek(event.seq, is_dragging=event.is_dragging)

    def action_revert_since(self) -> None:
        """Show the present, and preview a revert of all agents' work since the shown moment."""
        # Imported on first use, to keep the start fast.
        from watchroom_tui.dialogs.revert import RevertSubject, ask_to_revert

        ask_to_revert(self, RevertSubject())

    def offer_signing(self) -> None:
        # Imported on first use, to keep the first paint fast.
        from watchroom_tui.services.need_actions import sign_settings

        self.run_worker(sign_settings(self), group="settings", exclusive=True)

    @property
    def base_screen(self) -> BaseScreen | None:
        return next((each for each in reversed(self.screen_stack) if isinstance(each, BaseScreen)), None)

    async def action_show_screen(self, name: str) -> None:
        await self.show_screen(name)

    async def show_screen(self, name: str) -> None:
        while len(self.screen_stack) > 1:
            await self._leave_screen()
        if self.current_mode != name:
            self._visited.append(self.current_mode)
            await self._switch_to(name)

    async def _switch_to(self, name: str) -> None:
        """Show the screen ``name`` as soon as it is complete."""
        with self.batch_update():
            await self.switch_mode(name)

    def delay_update(self, delay: float = 0.05) -> None:
        """Do nothing. Textual would paint nothing for ``delay`` seconds to hide the switch. `_switch_to`
        already batches the updates until the switch is complete."""

    async def _leave_screen(self) -> None:
        """Close the front screen."""
        screen = self.screen
        if isinstance(screen, BaseScreen):
            await screen.leave()
        # The screen may have closed meanwhile.
        if self.screen is screen:
            await self.pop_screen()

    async def action_plugin_screen(self, name: str) -> None:
        """Open the screen ``name`` of another package over this one."""
        if self.base_screen is not None and self.base_screen.SCREEN_NAME == "plugin":
            await self._leave_screen()
        await self.push_screen(load_screen_class("plugin")(plugin_screens().found[name]))

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
        from watchroom_tui.services.need_actions import mark_as_seen

        screen = self.base_screen
        need = screen.current_need if screen else None
        if need is None and screen is not None and screen.mark_seen():
            return
        self.run_worker(mark_as_seen(self, need), group="seen", exclusive=True)

    def action_new_task(self) -> None:
        from watchroom_tui.dialogs.new_task import begin_task

        self.open_editor(partial(begin_task, self))

    def action_search_everything(self) -> None:
        from watchroom_tui.dialogs.search import search_everything

        self.open_editor(partial(search_everything, self))

    def action_set_budget(self) -> None:
        from watchroom_tui.dialogs.budget import set_budget

        self.open_editor(partial(set_budget, self))

    def action_cycle_alerts(self) -> None:
        self.alert_monitor.cycle()

    async def action_back(self) -> None:
        focused = self.focused
        if isinstance(focused, (ItemList, TextPane)) and focused.end_search():
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

    def changed_settings(self) -> dict[str, str]:
        """Return the settings that the person changed in this dashboard, by name."""
        changed = {}
        if self.theme != self._theme_at_start:
            changed["theme"] = "light" if self.theme == LIGHT else "dark"
        if self.alert_monitor.mode != self._alerts_at_start:
            changed["alerts"] = self.alert_monitor.mode
        return changed

    def memory(self) -> WorkspaceMemory:
        """Return the state to restore in the next dashboard of this workspace."""
        filters = {name: text for name, text in self.filters.items() if text}
        return WorkspaceMemory(self.current_mode, filters)

    async def _stop_threads(self) -> None:
        for stop in (self.feed.stop, self._timeline.stop, self._toolbox.close, self._machine_links.close):
            await asyncio.to_thread(stop)

    async def on_unmount(self) -> None:
        self._plugin_notices.stop()
        await self._stop_threads()
        if self._worker_process is not None:
            await self._worker_process.close()


def _make_screen(name: str) -> Screen[None]:
    """Create the screen ``name``. Screens are created on their first visit, to keep the first paint fast."""
    return load_screen_class(name)()
