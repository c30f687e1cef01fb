"""Interface of the app for screens, dialogs and services, and the targets of navigation."""

from __future__ import annotations

from abc import abstractmethod
from asyncio import Task
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from textual.app import App
from textual.screen import Screen
from watchroom.errors import SettingsUnsigned
from watchroom.features.trees.view import is_linked

from watchroom_tui.formatters.machines import RemoteNeed

if TYPE_CHECKING:
    from rich.style import Style
    from textual.message_pump import MessagePump
    from watchroom import Workspace
    from watchroom.features.overview.model import Model, Need
    from watchroom.features.overview.timeline import TimelineView
    from watchroom.kernel.journal import Journal
    from watchroom.model import Json, Row, Zone
    from watchroom.serving.machines.connection import MachineView
    from watchroom.serving.machines.messages import FarAnswer
    from watchroom.texts import Catalogue, Language

    from watchroom_tui.formatters.actor_class import AgentColours
    from watchroom_tui.keys.actions import Action, Scope
    from watchroom_tui.worker.process import WorkerProcess

Severity: TypeAlias = Literal["information", "warning", "error"]
Arguments: TypeAlias = "Mapping[str, Json] | Callable[[], Mapping[str, Json]]"
"""The arguments of a tool, or a function that returns them."""


class RowTarget(NamedTuple):
    """The subject of a row: its file, request, handoff, board or message."""

    row: Row


class VersionTarget(NamedTuple):
    """A version of a shared file, shown as soon as the model has it."""

    path: str
    version: int


class AgentTarget(NamedTuple):
    """An agent in the list, or its rows if ``shows_rows`` is set."""

    agent: str
    shows_rows: bool = False


class SessionTarget(NamedTuple):
    """A session by its path. ``step``: the version of a step's row. 0: the newest text."""

    path: str
    step: int = 0


class TaskTarget(NamedTuple):
    """A task by its id, shown as soon as the model has it. Empty: the newest task."""

    id: str


class TreeTarget(NamedTuple):
    """The changes since HEAD in a working tree, by the id of the tree."""

    id: str


class MachineTarget(NamedTuple):
    """A need of another machine, by its identity."""

    identity: tuple[str, str, int]


class RangeTarget(NamedTuple):
    """The differences between two moments: after row ``after``, up to row ``until``."""

    after: int
    until: int


Target: TypeAlias = (
    RowTarget
    | VersionTarget
    | AgentTarget
    | SessionTarget
    | TaskTarget
    | TreeTarget
    | MachineTarget
    | RangeTarget
)
"""A place that a screen can move its cursor to."""


class TimelineState(NamedTuple):
    """The state of the timeline.

    - ``seq``: the row of the shown moment, None for the newest.
    - ``speed``: the speed of playback, as a multiple of real time.
    - ``marked``: the row of the marked moment, for a comparison.
    """

    timeline: TimelineView
    seq: int | None
    is_playing: bool
    speed: int
    marked: int | None


class Draft(Protocol):
    """Uncommitted or unsent work of a person."""

    def is_unsaved(self, model: Model) -> bool:
        """Return whether work would be lost without the draft, given the state in ``model``."""

    @property
    def label(self) -> str:
        """The displayed label, such as a path or the name of a board. Not sanitized."""


D = TypeVar("D", bound=Draft)


class DraftStore:
    """Store for drafts, by kind and key. Drafts outlive their screens."""

    def __init__(self) -> None:
        self._drafts: dict[tuple[type[Draft], str | int], Draft] = {}

    def find(self, kind: type[D], key: str | int) -> D | None:
        """Return the draft for ``kind`` and ``key``, or None."""
        return cast("D | None", self._drafts.get((kind, key)))

    def keep(self, key: str | int, draft: Draft) -> None:
        """Keep ``draft`` under ``key``. Replace an earlier draft with the same class and key."""
        self._drafts[type(draft), key] = draft

    def drop(self, kind: type[Draft], key: str | int) -> None:
        """Drop the draft for ``kind`` and ``key``, if it exists."""
        self._drafts.pop((kind, key), None)

    def unsaved(self, model: Model) -> list[Draft]:
        """Return the drafts that would be lost if the dashboard closed now."""
        return [each for each in self._drafts.values() if each.is_unsaved(model)]


NEED_SCREENS: Final = {
    "forged": "activity",
    "unreadable": "activity",
    "conflict": "files",
    "request": "requests",
    "expired": "requests",
    "unproven": "activity",
    "budget": "agents",
    "message": "tasks",
    "outside": "files",
    "unchecked": "files",
    "handoff": "handoffs",
}
ZONE_SCREENS: Final[Mapping[Zone, str]] = {"handoff": "handoffs", "board": "boards"}
"""The screens for needs, by zone. They take precedence over `NEED_SCREENS`."""


class Navigator:
    """Navigation in the dashboard ``app``, to needs and to places that the person chooses."""

    def __init__(self, app: Dashboard) -> None:
        self._app = app
        self._visited: set[tuple[str, str, int]] = set()
        """The needs that were visited in this round."""
        self._screen = ""
        """The screen of the last visited need."""

    @property
    def next_need(self) -> Need | RemoteNeed | None:
        """The target of `go_to_next_need`: the most urgent need that was not visited in this round, then
        those of other machines. A round ends after the last need, or when the person goes to another
        screen."""
        needs: list[Need | RemoteNeed] = [*self._app.needs, *self._app.remote_needs]
        is_same = self._app.current_mode == self._screen
        left = (need for need in needs if not is_same or need.identity not in self._visited)
        return next(left, needs[0] if needs else None)

    async def go_to_next_need(self) -> None:
        """Go to `next_need`. Repeated calls go to the following needs."""
        need = self.next_need
        if need is None:
            self._app.show_message(self._app.texts("header.calm"))
        else:
            if need.identity in self._visited or self._app.current_mode != self._screen:
                self._visited.clear()
            self._visited.add(need.identity)
            if isinstance(need, RemoteNeed):
                await self.go_to("overview", MachineTarget(need.identity))
            else:
                await self.go_to_need(need)
            self._screen = self._app.current_mode
            # The header now shows another need, even if the screen stays the same.
            self._app.show_model()

    async def go_to_need(self, need: Need) -> None:
        """Go to the screen on which ``need`` can be settled, and select its subject."""
        app = self._app
        if need.row.error == SettingsUnsigned.code and app.is_live:
            app.offer_signing()
            return
        if need.is_acknowledgeable and app.is_live:
            app.show_message(app.texts("seen.hint"))
        if need.kind in ("failed", "parked"):
            await self.go_to("agents", SessionTarget(need.row.path))
            return
        if need.kind in ("lost", "breaker", "denied", "overlap", "stalled"):
            await self.go_to("agents", AgentTarget(need.agent, shows_rows=need.kind != "lost"))
            return
        if need.kind == "predicted":
            await self.go_to("tasks", TreeTarget(_landing_tree(app.model, need)))
            return
        # The zone of an unreadable row is meaningless.
        of_zone = None if need.kind == "unreadable" else ZONE_SCREENS.get(need.row.zone)
        await self._show_screen(of_zone or NEED_SCREENS[need.kind])
        merges = app.is_live and "merge" in need.answers
        heads = app.model.heads_of(need.row.zone)
        is_known = any(each.head.path == need.row.path for each in heads)
        # Without such a file, the screen below the merge would show only the row.
        if app.base_screen and (is_known or not merges):
            app.base_screen.go_to(RowTarget(need.row))
        if merges:
            await self.open_merge(need.row)

    async def go_to(self, screen: str, target: Target) -> None:
        """Go to ``screen``, and move the cursor to ``target``. The screen ``compare`` needs a `RangeTarget`,
        and opens above the current screen."""
        if isinstance(target, RangeTarget):
            await self._app.push_screen(load_screen_class(screen)(target))
            return
        await self._show_screen(screen)
        if self._app.base_screen:
            self._app.base_screen.go_to(target)

    async def _show_screen(self, name: str) -> None:
        """Show the screen ``name`` with the current items. It would not get them before it resumes, which is
        after the cursor moves."""
        await self._app.show_screen(name)
        self._app.show_model()

    async def open_merge(self, row: Row) -> None:
        """Open the merge for the conflict in ``row``: a refused write or an external edit."""
        if self._app.is_live:
            await self._app.push_screen(load_screen_class("merge")(row))
        else:
            self._app.explain_read_only()

    def go_to_version(self, path: str, version: int) -> None:
        """Go to this version of a shared file, if the files are shown."""
        if self._app.base_screen:
            self._app.base_screen.go_to(VersionTarget(path, version))


def _landing_tree(model: Model, need: Need) -> str:
    """Return the id of the tree that could not land because of the predicted conflict ``need``."""
    linked = [each.id for each in model.trees if is_linked(each) and each.id in need.key.split()]
    return linked[0] if linked else need.row.path


def load_screen_class(name: str) -> Callable[..., Screen[None]]:
    """Return the class of the screen ``name``. Its module is imported on the first call.

    A screen is a folder below `watchroom_tui.screens`: ``files`` has ``screen.py`` with ``FilesScreen``,
    whose ``CSS_PATH`` names its styles, ``files.tcss``. Raise ImportError if there is no such screen.
    """
    module = import_module(f"watchroom_tui.screens.{name}.screen")
    found: type[Screen[None]] = getattr(module, f"{name.capitalize()}Screen")
    return found


class ScreenInFront(Protocol):
    """Interface of the current screen (below all dialogs), for services."""

    SCREEN_NAME: ClassVar[str]
    EXTRA_SCOPES: ClassVar[tuple[Scope, ...]]

    @property
    def current_need(self) -> Need | None: ...

    def label_of(self, action: Action) -> str: ...

    def go_to(self, target: Target) -> None: ...


OutageCause: TypeAlias = Literal["server", "journal", "disk", "folder"]


class Outage(NamedTuple):
    """An outage: the journal cannot be read or written.

    - ``since``: its start in nanoseconds since the epoch.
    - ``of``: ``server`` if the journal's server does not answer, ``journal`` if its rows cannot be read,
      ``disk`` if the disk is full, ``folder`` if the workspace's folder is missing.
    """

    since: int
    of: OutageCause


class Dashboard(App[None]):
    """Interface of the app for screens, dialogs and services. The app shows one journal, live or as of an
    earlier moment. `watchroom_tui.app.WatchroomApp` implements the interface."""

    texts: Catalogue
    language: Language
    journal: Journal
    place: str
    root: str | None
    """The folder of the workspace, or its address on a server. None if it is unknown."""
    folder: str
    """The folder in which the dashboard was started. Empty if it is unknown."""
    person: str
    model: Model
    """The model of the shown moment."""
    newest_model: Model
    needs: tuple[Need, ...]
    """The needs for a person at the shown moment, the most urgent first. Computed for each new model, and
    once per second."""
    version: str
    """The version of Watchroom."""
    machines: tuple[MachineView, ...]
    """The other machines, in the order of the settings."""
    progress: float
    """The fraction of the journal in ``model``, from 0 to 1."""
    outage: Outage | None
    """The current outage, None if there is none."""
    polls_files: bool
    """Whether external edits are found by polling, because the system has no watches left."""
    drafts: DraftStore
    keymap: Mapping[str, tuple[str, ...]]
    """The person's key bindings, by action id."""
    filters: dict[str, str]
    """The filters of lists, by ``screen.list``."""
    line_styles: dict[str, Style]
    agent_colours: AgentColours
    navigator: Navigator

    @property
    @abstractmethod
    def remote_needs(self) -> tuple[RemoteNeed, ...]:
        """The needs of other machines. Empty in the past."""

    @abstractmethod
    def answer_machine(
        self, item: RemoteNeed, decision: FarAnswer, text: str = "", values: Sequence[str] = ()
    ) -> None:
        """Send an answer to another machine. A notice shows the outcome."""

    @property
    @abstractmethod
    def worker_process(self) -> WorkerProcess:
        """The worker process for slow work."""

    @property
    @abstractmethod
    def is_live(self) -> bool:
        """Whether the present is shown, not an earlier moment."""

    @property
    @abstractmethod
    def may_act(self) -> bool:
        """Whether this person can change the workspace in the present. False for viewers."""

    @property
    @abstractmethod
    def can_act(self) -> bool:
        """Whether the person can change anything now. False in the past, and for viewers."""

    @property
    @abstractmethod
    def workspace(self) -> Workspace | None:
        """The workspace, None until it is open."""

    @property
    @abstractmethod
    def base_screen(self) -> ScreenInFront | None:
        """The current screen, below all dialogs."""

    @property
    @abstractmethod
    def timeline(self) -> TimelineState | None:
        """The timeline, None if it is closed."""

    @abstractmethod
    def leave_timeline(self) -> bool:
        """Close the timeline and show the present. Return False if the timeline is closed already."""

    @abstractmethod
    def now(self) -> int:
        """Return the shown moment, in nanoseconds since the epoch."""

    @abstractmethod
    def show_message(self, text: str, severity: Severity = "information") -> None:
        """Show a notice. ``text`` is not read as markup."""

    @abstractmethod
    def explain_read_only(self) -> None:
        """Show why nothing can be changed."""

    @abstractmethod
    def act(self, tool: str, arguments: Arguments) -> Task[Mapping[str, Json] | None]:
        """Call a tool as the person, in a thread, as soon as the workspace is open.

        The call continues after its screen is closed. The result of the task is the result of the tool. If
        nothing can be changed, the result is None, and the reason is shown.

        ``arguments``: the arguments, or a function that returns them. The function is called in the same
        thread. The task raises any error of the function, without a call of the tool.
        """

    async def carry_out(self, tool: str, arguments: Arguments, done: str = "") -> bool:
        """Call a tool with `act`. Show ``done``, or the reason for a failure. Return whether the call
        succeeded."""
        answer = await self.act(tool, arguments)
        if answer is None:
            return False
        if not answer["success"]:
            self.show_failure(answer)
        elif done:
            self.show_message(done)
        return bool(answer["success"])

    def show_failure(self, answer: Mapping[str, Json]) -> None:
        """Show why a tool failed. ``answer``: the result of the tool."""
        self.show_message(f"{answer['message']} {answer['suggestion']}", "error")

    @abstractmethod
    async def wait_for_workspace(self) -> Workspace | None:
        """Return the workspace as soon as it is open, or None if nothing can be changed."""

    @abstractmethod
    def offer_signing(self) -> None:
        """Show changed settings, and let the person sign them."""

    @abstractmethod
    async def action_back(self) -> None:
        """Go one step back: end a mode, or leave a dialog, a pane or a screen."""

    @abstractmethod
    def show_model(self, model: Model | None = None) -> None:
        """Update the current screen. ``model``: the model of another moment, default: the current model."""

    @abstractmethod
    async def show_screen(self, name: str) -> None:
        """Go to the screen ``name``."""

    @abstractmethod
    def open_editor(self, work: Callable[[], Awaitable[object]], of: Screen[None] | None = None) -> None:
        """Run ``work`` in a worker of the screen ``of``, default: of the app. ``work`` opens a text dialog.

        Queue keys until the dialog is open, so that no key triggers a command. Drop the queued keys if
        ``work`` ends without a dialog.
        """

    @abstractmethod
    def release_keys(self) -> None:
        """Pass the queued keys to the front screen."""

    @abstractmethod
    def drop_keys(self) -> None:
        """Drop the keys that were typed ahead for an item to which the cursor cannot move."""

    @abstractmethod
    def send_to_terminal(self, sequence: str) -> None:
        """Write a terminal sequence between two frames. ``sequence`` must not draw."""


def dashboard_of(node: MessagePump) -> Dashboard:
    """Return the dashboard of ``node``, a screen or a widget. Raise TypeError if ``node`` belongs to another
    app."""
    app = node.app
    if not isinstance(app, Dashboard):
        raise TypeError(f"{type(app).__name__} is not a dashboard")
    return app
