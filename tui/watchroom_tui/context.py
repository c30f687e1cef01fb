"""What screens, dialogs and services know of the dashboard: a protocol, so that none of them depends on the
app, and the places that it can be asked to go to."""

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

    from watchroom_tui.actions import Scope
    from watchroom_tui.formatters.actor_class import AgentColours
    from watchroom_tui.worker.process import WorkerProcess

T = TypeVar("T")

Severity: TypeAlias = Literal["information", "warning", "error"]


class RowTarget(NamedTuple):
    """What a row is about: its file, request, handoff, board or message."""

    row: Row


class VersionTarget(NamedTuple):
    """A version of a shared file, shown as soon as the model has it."""

    path: str
    version: int


class AgentTarget(NamedTuple):
    """An agent; with ``shows_rows`` what it did, else the agent in the list."""

    agent: str
    shows_rows: bool = False


class SessionTarget(NamedTuple):
    """A session of an agent, by its path, and the number of a step in it; 0: what was said last."""

    path: str
    step: int = 0


class TaskTarget(NamedTuple):
    """A task by its id, shown as soon as the model has it; where that is empty, the newest one."""

    id: str


class TreeTarget(NamedTuple):
    """A working tree by its id: what changed in it since HEAD."""

    id: str


class RangeTarget(NamedTuple):
    """What differs between two moments: after row ``after``, up to row ``until``."""

    after: int
    until: int


Target: TypeAlias = (
    RowTarget | VersionTarget | AgentTarget | SessionTarget | TaskTarget | TreeTarget | RangeTarget
)
"""What a screen can be asked to put the cursor on."""


class TimelineState(NamedTuple):
    """The time line as it is shown: ``timeline`` is all time, ``seq`` the row whose moment is shown, None for
    the newest; ``speed`` how many times as quick as it was it is played, ``marked`` the row of the moment to
    compare with."""

    timeline: TimelineView
    seq: int | None
    is_playing: bool
    speed: int
    marked: int | None


class Draft(Protocol):
    """What a person began and has neither committed nor sent."""

    def is_unsaved(self, model: Model) -> bool:
        """Whether something would be lost if it were dropped while the workspace stands as in ``model``."""

    @property
    def label(self) -> str:
        """What people call it: the path, or the name of a board. Not safe yet."""


D = TypeVar("D", bound=Draft)


class DraftStore:
    """Keeps drafts while screens come and go, by kind and key."""

    def __init__(self) -> None:
        self._drafts: dict[tuple[type[Draft], str | int], Draft] = {}

    def find(self, kind: type[D], key: str | int) -> D | None:
        """The draft of this kind under ``key``; None if there is none."""
        return cast("D | None", self._drafts.get((kind, key)))

    def keep(self, key: str | int, draft: Draft) -> None:
        """Keep ``draft`` under ``key``, in place of one of its kind that was kept there."""
        self._drafts[type(draft), key] = draft

    def drop(self, kind: type[Draft], key: str | int) -> None:
        """Forget the draft of this kind under ``key``, if there is one."""
        self._drafts.pop((kind, key), None)

    def unsaved(self, model: Model) -> list[Draft]:
        """What would be lost if the dashboard were left now."""
        return [each for each in self._drafts.values() if each.is_unsaved(model)]


class Navigation(Protocol):
    """Leads to what needs a person, and to what a person asks for."""

    @property
    def next_need(self) -> Need | None:
        """What `go_to_next_need` would go to now."""

    async def go_to_next_need(self) -> None:
        """Go to what runs out first; again, to the next."""

    async def go_to_need(self, need: Need) -> None:
        """Go to the screen that deals with ``need``, and to what it is about."""

    async def go_to(self, screen: str, target: Target) -> None:
        """Go to this screen and put the cursor on ``target``; ``compare`` lies over the screen that is shown
        and takes a `RangeTarget`."""

    async def open_merge(self, row: Row) -> None:
        """Settle what ``row``, a refused write or an edit made by hand, is in conflict with."""

    def go_to_version(self, path: str, version: int) -> None:
        """To this version of a shared file, if the files are shown."""


class ScreenInFront(Protocol):
    """The screen that is shown beneath all dialogs."""

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
    """The folder of the workspace, or its address on a server; None where that is not known."""
    folder: str
    """The folder in which the dashboard was started; empty where that is not known."""
    person: str
    model: Model
    newest_model: Model
    """What ``model`` is while no earlier moment is shown."""
    progress: float
    """The share of the journal that ``model`` holds, 0 to 1."""
    outage: int | None
    """Since when the journal's server does not answer (nanoseconds since the epoch), None while it does."""
    polls_files: bool
    """Whether external edits are found by polling, because the system has no watches left."""
    drafts: DraftStore
    keymap: Mapping[str, tuple[str, ...]]
    """The keys that a person gave to actions, by their ids."""
    filters: dict[str, str]
    """What lists are filtered by, by ``screen.list``."""
    line_styles: dict[str, Style]
    agent_colours: AgentColours

    @property
    def navigator(self) -> Navigation: ...

    @property
    def worker_process(self) -> WorkerProcess:
        """Where heavy work is done."""

    @property
    def is_live(self) -> bool:
        """Whether the present is shown, and not an earlier moment."""

    may_act: bool
    """Whether this person may change anything, though perhaps not in the moment that is shown."""

    @property
    def can_act(self) -> bool:
        """Whether a person can change anything here: not in the past, and not where one may only look."""

    @property
    def workspace(self) -> Workspace | None:
        """The workspace, once it is open."""

    @property
    def base_screen(self) -> ScreenInFront | None: ...

    @property
    def timeline(self) -> TimelineState | None:
        """The time line, None where it is not open."""

    def leave_timeline(self) -> bool:
        """Close the time line, and show the newest moment; False if it is not open."""

    def now(self) -> int:
        """The moment that is shown: nanoseconds since the epoch."""

    def show_message(self, text: str, severity: Severity = "information") -> None:
        """A passing message; ``text`` is shown as it is."""

    def explain_read_only(self) -> None:
        """Say why nothing can be changed."""

    def act(self, tool: str, arguments: Mapping[str, Json]) -> Task[Mapping[str, Json] | None]:
        """Call a tool as the person, off the event loop, as soon as the workspace is open.

        It goes on though the screen that began it is left. The result is the tool's; None where nothing can
        be changed, which has been said then.
        """

    async def wait_for_workspace(self) -> Workspace | None:
        """The workspace, as soon as it is open; None where nothing can be changed."""

    @property
    def screen_stack(self) -> Sequence[Screen[Any]]:
        """The screen in front and what it lies over, the lowest first."""

    @property
    def screen(self) -> Screen[object]:
        """What lies over everything else."""

    async def action_back(self) -> None:
        """One step back: out of a mode, a dialog, a pane or a screen."""

    def show_model(self) -> None:
        """Bring the screen that is shown up to the model."""

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
        """Run ``work``, which opens a dialog to write in, in a worker that ends with the screen ``of``.

        Keys wait until the dialog is open, so that none of them is taken for a command. They are dropped if
        ``work`` ends without a dialog.
        """

    def release_keys(self) -> None:
        """Pass the keys that wait for a dialog on to the screen in front."""

    def set_interval(self, interval: float, callback: Callable[[], object]) -> Timer: ...

    def call_from_thread(self, callback: Callable[..., T], *args: object) -> T: ...

    def send_to_terminal(self, sequence: str) -> None:
        """Write what is not for the screen, between two frames."""


def dashboard_of(node: MessagePump) -> Dashboard:
    """The dashboard that ``node``, a screen or a widget, is in."""
    return cast("Dashboard", node.app)
