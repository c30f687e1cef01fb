"""The dashboard as screens, dialogs and services see it: a protocol, so that they do not depend on the app,
and the places to go to."""

from __future__ import annotations

from asyncio import Task
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from rich.style import Style
    from textual.message_pump import MessagePump
    from textual.screen import Screen
    from textual.timer import Timer
    from textual.worker import Worker
    from watchroom import Workspace
    from watchroom.features.overview.model import Model, Need
    from watchroom.features.overview.timeline import TimelineView
    from watchroom.kernel.journal import Journal
    from watchroom.model import Json, Row
    from watchroom.texts import Catalogue, Language

    from watchroom_tui.formatters.actor_class import AgentColours
    from watchroom_tui.keys.actions import Scope
    from watchroom_tui.worker.process import WorkerProcess

T = TypeVar("T")

Severity: TypeAlias = Literal["information", "warning", "error"]


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
    """A session by its path, and the number of a step in it. 0: the newest text."""

    path: str
    step: int = 0


class TaskTarget(NamedTuple):
    """A task by its id, shown as soon as the model has it. Empty: the newest task."""

    id: str


class TreeTarget(NamedTuple):
    """A working tree by its id: what changed in it since HEAD."""

    id: str


class RangeTarget(NamedTuple):
    """The differences between two moments: after row ``after``, up to row ``until``."""

    after: int
    until: int


Target: TypeAlias = (
    RowTarget | VersionTarget | AgentTarget | SessionTarget | TaskTarget | TreeTarget | RangeTarget
)
"""A place that a screen can move its cursor to."""


class TimelineState(NamedTuple):
    """The state of the timeline.

    - ``seq``: the row of the shown moment, None for the newest.
    - ``speed``: the factor to real time.
    - ``marked``: the row of the moment to compare with.
    """

    timeline: TimelineView
    seq: int | None
    is_playing: bool
    speed: int
    marked: int | None


class Draft(Protocol):
    """A person's work that is neither committed nor sent."""

    def is_unsaved(self, model: Model) -> bool:
        """Return whether dropping it would lose work, in the state of ``model``."""

    @property
    def label(self) -> str:
        """The path, or the name of a board, for people. Not sanitized."""


D = TypeVar("D", bound=Draft)


class DraftStore:
    """Keeps drafts by kind and key while screens come and go."""

    def __init__(self) -> None:
        self._drafts: dict[tuple[type[Draft], str | int], Draft] = {}

    def find(self, kind: type[D], key: str | int) -> D | None:
        """Return the draft of this kind under ``key``, None if there is none."""
        return cast("D | None", self._drafts.get((kind, key)))

    def keep(self, key: str | int, draft: Draft) -> None:
        """Keep ``draft`` under ``key``. It replaces the draft of its kind."""
        self._drafts[type(draft), key] = draft

    def drop(self, kind: type[Draft], key: str | int) -> None:
        """Drop the draft of this kind under ``key``, if there is one."""
        self._drafts.pop((kind, key), None)

    def unsaved(self, model: Model) -> list[Draft]:
        """Return the drafts that would be lost if the dashboard closed now."""
        return [each for each in self._drafts.values() if each.is_unsaved(model)]


class Navigation(Protocol):
    """Goes to needs, and to places that the person chooses."""

    @property
    def next_need(self) -> Need | None:
        """The need that `go_to_next_need` would go to."""

    async def go_to_next_need(self) -> None:
        """Go to the need with the nearest deadline. Repeated calls go to the next ones."""

    async def go_to_need(self, need: Need) -> None:
        """Go to the screen that settles ``need``, and to its subject."""

    async def go_to(self, screen: str, target: Target) -> None:
        """Go to this screen, and move the cursor to ``target``. The screen ``compare`` takes a `RangeTarget`,
        and opens above the current one."""

    async def open_merge(self, row: Row) -> None:
        """Open the merge of the conflict of ``row``, a refused write or an external edit."""

    def go_to_version(self, path: str, version: int) -> None:
        """Go to this version of a shared file, if the files are shown."""


class ScreenInFront(Protocol):
    """The current screen, below all dialogs."""

    SCREEN_NAME: ClassVar[str]
    EXTRA_SCOPES: ClassVar[tuple[Scope, ...]]

    @property
    def current_need(self) -> Need | None: ...

    def go_to(self, target: Target) -> None: ...

    def follow_clock(self, needs: tuple[Need, ...]) -> None: ...


class Dashboard(Protocol):
    """The dashboard over one journal, live or as of an earlier moment."""

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
    newest_model: Model
    """The newest model. ``model`` can be of an earlier moment."""
    progress: float
    """The part of the journal that ``model`` contains, from 0 to 1."""
    outage: int | None
    """The time since which the journal's server does not answer (nanoseconds since the epoch), None while it
    does."""
    polls_files: bool
    """Whether external edits are found by polling, because the system has no watches left."""
    drafts: DraftStore
    keymap: Mapping[str, tuple[str, ...]]
    """The person's own keys, by action id."""
    filters: dict[str, str]
    """The filters of lists, by ``screen.list``."""
    line_styles: dict[str, Style]
    agent_colours: AgentColours

    @property
    def navigator(self) -> Navigation: ...

    @property
    def worker_process(self) -> WorkerProcess:
        """The worker process for slow work."""

    @property
    def is_live(self) -> bool:
        """Whether the present is shown, not an earlier moment."""

    may_act: bool
    """Whether this person is not only a viewer."""

    @property
    def can_act(self) -> bool:
        """Whether the person can change anything now. False in the past, and for viewers."""

    @property
    def workspace(self) -> Workspace | None:
        """The workspace, None until it is open."""

    @property
    def base_screen(self) -> ScreenInFront | None: ...

    @property
    def timeline(self) -> TimelineState | None:
        """The timeline, None if it is closed."""

    def leave_timeline(self) -> bool:
        """Close the timeline and show the present. Return False if it is closed."""

    def now(self) -> int:
        """Return the shown moment, in nanoseconds since the epoch."""

    def show_message(self, text: str, severity: Severity = "information") -> None:
        """Show a notice. ``text`` is not read as markup."""

    def explain_read_only(self) -> None:
        """Show why nothing can be changed."""

    def act(self, tool: str, arguments: Mapping[str, Json]) -> Task[Mapping[str, Json] | None]:
        """Call a tool as the person, in a thread, as soon as the workspace is open.

        It continues after its screen is left. Its result is the tool's, or None if nothing can be changed.
        The reason is then shown.
        """

    async def wait_for_workspace(self) -> Workspace | None:
        """Return the workspace as soon as it is open, None if nothing can be changed."""

    @property
    def screen_stack(self) -> Sequence[Screen[Any]]:
        """The screen in front and what it lies over, the lowest first."""

    @property
    def screen(self) -> Screen[object]:
        """The front screen."""

    async def action_back(self) -> None:
        """Go one step back: end a mode, or leave a dialog, a pane or a screen."""

    def show_model(self) -> None:
        """Update the current screen."""

    async def show_screen(self, name: str) -> None:
        """Go to the screen of this name."""

    def push_screen(
        self, screen: Screen[T], callback: Callable[[T | None], None] | None = None
    ) -> Awaitable[object]: ...

    async def push_screen_wait(self, screen: Screen[T]) -> T: ...

    def run_worker(
        self,
        work: Callable[[], Coroutine[None, None, T]] | Callable[[], T] | Awaitable[T],
        *,
        group: str = ...,
        exclusive: bool = ...,
    ) -> Worker[T]: ...

    def open_editor(self, work: Callable[[], Awaitable[object]], of: Screen[None] | None = None) -> None:
        """Run ``work``, which opens a dialog for a text, in a worker that ends with the screen ``of``.

        Keys wait until the dialog is open, so that none of them acts as a command. They are dropped if
        ``work`` ends without a dialog.
        """

    def release_keys(self) -> None:
        """Pass the keys that wait for a dialog on to the front screen."""

    def set_interval(self, interval: float, callback: Callable[[], object]) -> Timer: ...

    def call_from_thread(self, callback: Callable[..., T], *args: object) -> T: ...

    def send_to_terminal(self, sequence: str) -> None:
        """Write a sequence that does not draw, between two frames."""


def dashboard_of(node: MessagePump) -> Dashboard:
    """Return the dashboard of ``node``, a screen or a widget."""
    return cast("Dashboard", node.app)
