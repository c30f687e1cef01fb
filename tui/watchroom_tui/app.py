"""The dashboard app: it passes the model to the screens and switches between them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterable
from functools import partial
from time import time_ns
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from rich.style import Style
from textual import work
from textual.app import App, SystemCommand
from textual.message import Message
from textual.notifications import Notify
from textual.screen import Screen
from watchroom.journal import Journal
from watchroom.projections import Model
from watchroom.texts import Language

from watchroom_tui.actions import SCREENS, bindings, offered, scopes_of
from watchroom_tui.alerts.monitor import AlertMonitor
from watchroom_tui.alerts.policy import AlertMode
from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.localization import load_texts
from watchroom_tui.sanitize import sanitize
from watchroom_tui.services.feed import Feed
from watchroom_tui.services.navigator import Navigator
from watchroom_tui.theme import DARK, LIGHT, THEMES
from watchroom_tui.widgets.line_list import LineList

if TYPE_CHECKING:
    from watchroom import Workspace

    from watchroom_tui.board_drafts import BoardDraft
    from watchroom_tui.merge_draft import MergeDraft
    from watchroom_tui.services.file_watcher import FileWatcher
    from watchroom_tui.services.worker import WorkerProcess
    from watchroom_tui.terminal import TerminalWatch


WATCH_SECONDS: Final = 0.5
"""How often it is looked whether the terminal is still there."""


class ModelChanged(Message):
    """The feed has a new model."""

    def __init__(self, model: Model, progress: float) -> None:
        super().__init__()
        self.model = model
        self.progress = progress


class WatchroomApp(App[None]):
    """The dashboard over ``journal``, live or as of row ``until``.

    ``open_workspace`` gives the workspace that acts go through; it is called once, off the event loop,
    after the first paint, and its caller closes what it gave. Without it, or in the past, nothing can be
    changed. ``end_after``: seconds after which the dashboard closes by itself. ``alerts``: how it says that
    something new needs a person. ``initial_screen`` is the one that it opens in. ``watch`` knows whether
    the terminal is still there; without it the dashboard has none.
    """

    # All at once: a stylesheet that comes later has Textual parse every one again.
    CSS_PATH: ClassVar[list[str]] = [  # type: ignore[assignment]
        f"styles/{name}.tcss"
        for name in (
            "app",
            "overview",
            "agents",
            "handoffs",
            "files",
            "documents",
            "boards",
            "requests",
            "activity",
            "tasks",
            "detail",
            "merge",
            "buffers",
        )
    ]
    BINDINGS = bindings("app")
    DEFAULT_MODE = SCREENS[0][1]
    ENABLE_COMMAND_PALETTE = True
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
    ) -> None:
        if initial_screen is not None:
            # Before Textual names the first screen after it.
            self.DEFAULT_MODE = initial_screen  # type: ignore[misc]
        super().__init__(driver_class=watch.driver_class() if watch is not None else None)
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
        self._end_after = end_after
        self._file_watcher: FileWatcher | None = None
        self._visited: list[str] = []
        self.navigator = Navigator(self)
        self.merges: dict[int, MergeDraft] = {}
        """What was begun and not committed, by the row that was refused."""
        self.board_drafts: dict[str, BoardDraft] = {}
        """What was written on boards and not saved, by their names."""
        self.feed = Feed(
            journal,
            lambda model, progress: self._from_feed(ModelChanged(model, progress)),
            until=until,
        )

        self.alert_monitor = AlertMonitor(self, alerts)
        self.line_styles: dict[str, Style] = {}
        for theme in THEMES:
            self.register_theme(theme)
        # Without the watcher, which would have every stylesheet parsed once more before the first paint.
        self.set_reactive(WatchroomApp.theme, DARK)
        self.add_class(f"-theme-{DARK}", "-dark-mode")
        self.stylesheet.set_variables(self.get_css_variables())
        self.model, self.progress = self.feed.read_initial_model()

    def get_default_screen(self) -> Screen[None]:
        return _make_screen(self.DEFAULT_MODE)

    def on_mount(self) -> None:
        for _, name in SCREENS:
            self.add_mode(name, partial(_make_screen, name))
        self.call_after_refresh(self._start)

    def _start(self) -> None:
        gc.enable()
        self.feed.start()
        self.alert_monitor.start()
        if self._end_after is not None:
            self.set_timer(self._end_after, self.exit)
        if self._watch is not None:
            self.set_interval(WATCH_SECONDS, self._leave_closed_terminal)
        self.open_in_background()

    def _leave_closed_terminal(self) -> None:
        if self._watch is not None and self._watch.is_gone:
            self.exit()

    @work(group="workspace")
    async def open_in_background(self) -> None:
        if self._open_workspace is None or not self.feed.is_live:
            return
        workspace = await asyncio.to_thread(self._open_workspace)
        from watchroom_tui.services.file_watcher import FileWatcher

        # All of it at one stroke: a dashboard that is closed in between would leave something running.
        self.workspace = workspace
        workspace.dispatcher.start()
        self._file_watcher = FileWatcher(workspace)
        self._file_watcher.start()
        self._is_open.set()

    @property
    def can_act(self) -> bool:
        """Whether a person can change anything here: not in the past, and not where one may only look."""
        return self.feed.is_live and self._open_workspace is not None

    def explain_read_only(self) -> None:
        """Say why nothing can be changed, or not yet."""
        key = "not_ready" if self.can_act else "only_looking" if self.feed.is_live else "in_the_past"
        self.show_message(self.texts(f"files.{key}"), "warning")

    async def wait_for_workspace(self) -> Workspace | None:
        """The workspace, as soon as it is open: a quick key means what it says. None where nothing can be
        changed."""
        if not self.can_act:
            return None
        await self._is_open.wait()
        return self.workspace

    def _from_feed(self, message: Message) -> None:
        self.post_message(message)

    def on_model_changed(self, message: ModelChanged) -> None:
        self.model = message.model
        self.progress = message.progress
        self.alert_monitor.record_current_needs()
        if self.model.conflicts and self._worker_process is None and self.is_running:
            # A person will want to see it, and should not wait for the process then.
            self.run_worker(self.worker_process.start(), group="workspace")
        self.show_model()

    def show_model(self) -> None:
        """Bring the screen that is shown up to the model."""
        # Before it is mounted, when it shows the model by itself, a screen has no panes yet; while the
        # dashboard closes, it may have lost them already.
        if self.base_screen and self.base_screen.is_mounted and self.is_running:
            self.base_screen.show(self.model)

    @property
    def worker_process(self) -> WorkerProcess:
        """Where heavy work is done."""
        if self._worker_process is None:
            from watchroom_tui.services.worker import WorkerProcess

            self._worker_process = WorkerProcess()
        return self._worker_process

    def now(self) -> int:
        """The moment that is shown: nanoseconds since the epoch."""
        return time_ns() if self.feed.is_live else self.model.time

    def show_message(
        self, text: str, severity: Literal["information", "warning", "error"] = "information"
    ) -> None:
        """A passing message; ``text`` is shown as it is."""
        self.notify(sanitize(text), severity=severity, markup=False, timeout=3)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: Literal["information", "warning", "error"] = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Textual's, with notices that no screen can meet at the very moment when they end."""
        from watchroom_tui.notice import Notice

        seconds = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        self.post_message(Notify(Notice(message, title, severity, seconds, markup=markup)))

    def send_to_terminal(self, sequence: str) -> None:
        """Write what is not for the screen, between two frames: the driver keeps the order."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    @property
    def base_screen(self) -> BaseScreen | None:
        """The screen that is shown, beneath whatever lies over it."""
        return next((each for each in reversed(self.screen_stack) if isinstance(each, BaseScreen)), None)

    async def action_show_screen(self, name: str) -> None:
        while len(self.screen_stack) > 1:
            await self._leave_screen()
        if self.current_mode != name:
            self._visited.append(self.current_mode)
            await self.switch_mode(name)

    async def _leave_screen(self) -> None:
        """Close what lies over everything else."""
        screen = self.screen
        if isinstance(screen, BaseScreen):
            await screen.leave()
        # It may have closed by itself meanwhile.
        if self.screen is screen:
            await self.pop_screen()

    async def action_urgent(self) -> None:
        await self.navigator.go_to_next_need()

    async def action_quit(self) -> None:
        """Leave; but what was begun and is neither committed nor sent would go with it, so ask first."""
        conflicts = self.model.conflicts
        begun = [each for each in self.merges.values() if each.has_decisions(conflicts)]
        if begun:
            paths = ", ".join(sanitize(each.sides.incoming.path) for each in begun)
            text = self.texts("merge.quit_question", path=paths)
        elif self.board_drafts or getattr(self.screen, "has_unsent_text", False):
            text = self.texts("writing.quit_question")
        else:
            self.exit()
            return
        from watchroom_tui.dialogs.confirm import ConfirmDialog

        question = ConfirmDialog(self.texts("merge.quit_title"), text)
        await self.push_screen(question, lambda leaves: self.exit() if leaves else None)

    def action_mark_as_seen(self) -> None:
        from watchroom_tui.services.seen import mark_as_seen

        need = self.base_screen.current_need if self.base_screen else None
        self.run_worker(mark_as_seen(self, need), group="seen", exclusive=True)

    def action_cycle_alerts(self) -> None:
        self.alert_monitor.cycle()

    async def action_back(self) -> None:
        focused = self.focused
        if isinstance(focused, LineList) and focused.clear_filter():
            return
        if isinstance(self.screen, BaseScreen) and self.screen.cancel_mode():
            return
        if len(self.screen_stack) > 1:
            await self._leave_screen()
        elif self.base_screen and self.base_screen.return_to_pane():
            return
        elif self._visited:
            await self.switch_mode(self._visited.pop())

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

    def action_flip_theme(self) -> None:
        self.theme = LIGHT if self.theme == DARK else DARK

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette offers what the keys do."""
        scopes = [
            *([self.base_screen.SCREEN_NAME] if self.base_screen else []),
            *scopes_of(screen.focused),
        ]
        for action in offered(self.can_act, "app", *scopes):
            yield SystemCommand(
                action.label(self.texts),
                action.help(self.texts),
                partial(self.call_later, self.run_action, action.target),
            )

    async def _stop_threads(self) -> None:
        await asyncio.to_thread(self.feed.stop)
        if self._file_watcher is not None:
            await asyncio.to_thread(self._file_watcher.stop)

    async def on_unmount(self) -> None:
        await self._stop_threads()
        if self._worker_process is not None:
            await self._worker_process.close()


def _make_screen(name: str) -> Screen[None]:
    """Rooms are made when first visited, so that the first paint does not wait for all of them."""
    if name == "overview":
        from watchroom_tui.screens.overview import OverviewScreen

        return OverviewScreen()
    if name == "agents":
        from watchroom_tui.screens.agents import AgentsScreen

        return AgentsScreen()
    if name == "handoffs":
        from watchroom_tui.screens.handoffs import HandoffsScreen

        return HandoffsScreen()
    if name == "files":
        from watchroom_tui.screens.files import FilesScreen

        return FilesScreen()
    if name == "documents":
        from watchroom_tui.screens.documents import DocumentsScreen

        return DocumentsScreen()
    if name == "boards":
        from watchroom_tui.screens.boards import BoardsScreen

        return BoardsScreen()
    if name == "requests":
        from watchroom_tui.screens.requests import RequestsScreen

        return RequestsScreen()
    if name == "tasks":
        from watchroom_tui.screens.tasks import TasksScreen

        return TasksScreen()
    from watchroom_tui.screens.activity import ActivityScreen

    return ActivityScreen()
