"""The dashboard: rooms over one model. Thin: it hands the model on, and goes where a key says."""

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

from watchroom_tui.actions import ROOMS, bindings, offered, scopes_of
from watchroom_tui.alarm import Alarm
from watchroom_tui.alerts import AlertMode
from watchroom_tui.feed import Feed
from watchroom_tui.leading import Guide
from watchroom_tui.safe import safe
from watchroom_tui.screens.room import Room
from watchroom_tui.theme import DARK, LIGHT, THEMES
from watchroom_tui.widgets.line_list import LineList
from watchroom_tui.wording import wording

if TYPE_CHECKING:
    from watchroom import Workspace

    from watchroom_tui.board_drafts import BoardDraft
    from watchroom_tui.hints import Hints
    from watchroom_tui.merge_in_hand import MergeInHand
    from watchroom_tui.terminal import TerminalWatch
    from watchroom_tui.work import WorkerProcess


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
    something new needs a person. ``room`` is the one that it opens in. ``watch`` knows whether
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
    DEFAULT_MODE = ROOMS[0][1]
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
        room: str | None = None,
        watch: TerminalWatch | None = None,
    ) -> None:
        if room is not None:
            # Before Textual names the first screen after it.
            self.DEFAULT_MODE = room  # type: ignore[misc]
        super().__init__(driver_class=watch.driver_class() if watch is not None else None)
        self._watch = watch
        self.words = wording(language)
        self.language: Language = language
        self.journal = journal
        self.place = place
        self.person = person
        self._worker_process: WorkerProcess | None = None
        self.workspace: Workspace | None = None
        self._is_open = asyncio.Event()
        self._open_workspace = open_workspace
        self._end_after = end_after
        self._hints: Hints | None = None
        self._visited: list[str] = []
        self.guide = Guide(self)
        self.merges: dict[int, MergeInHand] = {}
        """What was begun and not committed, by the row that was refused."""
        self.board_drafts: dict[str, BoardDraft] = {}
        """What was written on boards and not saved, by their names."""
        self.feed = Feed(
            journal,
            lambda model, progress: self._from_feed(ModelChanged(model, progress)),
            until=until,
        )

        self.alarm = Alarm(self, alerts)
        self.line_styles: dict[str, Style] = {}
        for theme in THEMES:
            self.register_theme(theme)
        # Without the watcher, which would have every stylesheet parsed once more before the first paint.
        self.set_reactive(WatchroomApp.theme, DARK)
        self.add_class(f"-theme-{DARK}", "-dark-mode")
        self.stylesheet.set_variables(self.get_css_variables())
        self.model, self.progress = self.feed.first_look()

    def get_default_screen(self) -> Screen[None]:
        return _make_room(self.DEFAULT_MODE)

    def on_mount(self) -> None:
        for _, room in ROOMS:
            self.add_mode(room, partial(_make_room, room))
        self.call_after_refresh(self._start)

    def _start(self) -> None:
        gc.enable()
        self.feed.start()
        self.alarm.start()
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
        from watchroom_tui.hints import Hints

        # All of it at one stroke: a dashboard that is closed in between would leave something running.
        self.workspace = workspace
        self._hints = Hints(workspace)
        self._hints.start()
        self._is_open.set()

    @property
    def may_act(self) -> bool:
        """Whether a person can change anything here: not in the past, and not where one may only look."""
        return self.feed.is_live and self._open_workspace is not None

    def tell_why_not(self) -> None:
        """Say why nothing can be changed, or not yet."""
        key = "not_ready" if self.may_act else "only_looking" if self.feed.is_live else "in_the_past"
        self.tell(self.words(f"files.{key}"), "warning")

    async def opened_workspace(self) -> Workspace | None:
        """The workspace, as soon as it is open: a quick key means what it says. None where nothing can be
        changed."""
        if not self.may_act:
            return None
        await self._is_open.wait()
        return self.workspace

    def _from_feed(self, message: Message) -> None:
        self.post_message(message)

    def on_model_changed(self, message: ModelChanged) -> None:
        self.model = message.model
        self.progress = message.progress
        self.alarm.take_stock()
        if self.model.conflicts and self._worker_process is None and self.is_running:
            # A person will want to see it, and should not wait for the process then.
            self.run_worker(self.worker_process.start(), group="workspace")
        self.show_model()

    def show_model(self) -> None:
        """Bring the room that is shown up to the model."""
        # Before it is mounted, when it shows the model by itself, a room has no panes yet; while the
        # dashboard closes, it may have lost them already.
        if self.room and self.room.is_mounted and self.is_running:
            self.room.show(self.model)

    @property
    def worker_process(self) -> WorkerProcess:
        """Where heavy work is done."""
        if self._worker_process is None:
            from watchroom_tui.work import WorkerProcess

            self._worker_process = WorkerProcess()
        return self._worker_process

    def now(self) -> int:
        """The moment that is shown: nanoseconds since the epoch."""
        return time_ns() if self.feed.is_live else self.model.time

    def tell(self, text: str, severity: Literal["information", "warning", "error"] = "information") -> None:
        """A passing message; ``text`` is shown as it is."""
        self.notify(safe(text), severity=severity, markup=False, timeout=3)

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
    def room(self) -> Room | None:
        """The room that is shown, beneath whatever lies over it."""
        return next((each for each in reversed(self.screen_stack) if isinstance(each, Room)), None)

    async def action_room(self, name: str) -> None:
        while len(self.screen_stack) > 1:
            await self._leave_screen()
        if self.current_mode != name:
            self._visited.append(self.current_mode)
            await self.switch_mode(name)

    async def _leave_screen(self) -> None:
        """Close what lies over everything else."""
        screen = self.screen
        if isinstance(screen, Room):
            await screen.leave()
        # It may have closed by itself meanwhile.
        if self.screen is screen:
            await self.pop_screen()

    async def action_urgent(self) -> None:
        await self.guide.to_the_most_urgent()

    async def action_quit(self) -> None:
        """Leave; but what was begun and is neither committed nor sent would go with it, so ask first."""
        conflicts = self.model.conflicts
        begun = [each for each in self.merges.values() if each.has_decisions_about(conflicts)]
        if begun:
            paths = ", ".join(safe(each.sides.incoming.path) for each in begun)
            text = self.words("merge.quit_question", path=paths)
        elif self.board_drafts or getattr(self.screen, "has_words", False):
            text = self.words("writing.quit_question")
        else:
            self.exit()
            return
        from watchroom_tui.screens.question import QuestionScreen

        question = QuestionScreen(self.words("merge.quit_title"), text)
        await self.push_screen(question, lambda leaves: self.exit() if leaves else None)

    def action_mark_as_seen(self) -> None:
        from watchroom_tui.marking import mark_as_seen

        need = self.room.need_at_hand if self.room else None
        self.run_worker(mark_as_seen(self, need), group="seen", exclusive=True)

    def action_cycle_alerts(self) -> None:
        self.alarm.cycle()

    async def action_back(self) -> None:
        focused = self.focused
        if isinstance(focused, LineList) and focused.clear_filter():
            return
        if isinstance(self.screen, Room) and self.screen.end_mode():
            return
        if len(self.screen_stack) > 1:
            await self._leave_screen()
        elif self.room and self.room.step_back():
            return
        elif self._visited:
            await self.switch_mode(self._visited.pop())

    def action_next_pane(self) -> None:
        if isinstance(self.screen, Room):
            self.screen.next_pane(1)
        else:
            self.screen.focus_next()

    def action_previous_pane(self) -> None:
        if isinstance(self.screen, Room):
            self.screen.next_pane(-1)
        else:
            self.screen.focus_previous()

    def action_help(self) -> None:
        from watchroom_tui.screens.help import HelpScreen

        self.push_screen(HelpScreen())

    def action_flip_theme(self) -> None:
        self.theme = LIGHT if self.theme == DARK else DARK

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette offers what the keys do."""
        scopes = [
            *([self.room.ROOM] if self.room else []),
            *scopes_of(screen.focused),
        ]
        for action in offered(self.may_act, "app", *scopes):
            yield SystemCommand(
                action.label(self.words),
                action.help(self.words),
                partial(self.call_later, self.run_action, action.target),
            )

    async def _stop_threads(self) -> None:
        await asyncio.to_thread(self.feed.stop)
        if self._hints is not None:
            await asyncio.to_thread(self._hints.stop)

    async def on_unmount(self) -> None:
        await self._stop_threads()
        if self._worker_process is not None:
            await self._worker_process.close()


def _make_room(name: str) -> Screen[None]:
    """Rooms are made when first visited, so that the first paint does not wait for all of them."""
    if name == "overview":
        from watchroom_tui.screens.overview import OverviewRoom

        return OverviewRoom()
    if name == "agents":
        from watchroom_tui.screens.agents import AgentsRoom

        return AgentsRoom()
    if name == "handoffs":
        from watchroom_tui.screens.handoffs import HandoffsRoom

        return HandoffsRoom()
    if name == "files":
        from watchroom_tui.screens.files import FilesRoom

        return FilesRoom()
    if name == "documents":
        from watchroom_tui.screens.documents import DocumentsRoom

        return DocumentsRoom()
    if name == "boards":
        from watchroom_tui.screens.boards import BoardsRoom

        return BoardsRoom()
    if name == "requests":
        from watchroom_tui.screens.requests import RequestsRoom

        return RequestsRoom()
    if name == "tasks":
        from watchroom_tui.screens.tasks import TasksRoom

        return TasksRoom()
    from watchroom_tui.screens.activity import ActivityRoom

    return ActivityRoom()
