"""The base of all screens: the frame, the panes, and the model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from functools import cached_property
from typing import Any, ClassVar, Protocol, cast

from textual import on
from textual.app import ComposeResult
from textual.events import Key, ScreenResume
from textual.message import Message
from textual.widget import Widget
from watchroom.features.needs.rules import NeedKind
from watchroom.features.overview.agents import AgentView
from watchroom.features.overview.model import Model, Need
from watchroom.features.trees.place import repository_of
from watchroom.model import Row

from watchroom_tui.context import Dashboard, RowTarget, Target, dashboard_of
from watchroom_tui.keys.actions import OF_THE_APP, Action, Scope, is_possible, of_scope, scopes_of
from watchroom_tui.keys.keymap import why_impossible
from watchroom_tui.widgets.frame import Footer, Header, PaneTabs
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.line_widget import StyleRegistry
from watchroom_tui.widgets.search import close_search
from watchroom_tui.widgets.timeline_bar import TimelineBar
from watchroom_tui.widgets.worker_screen import WorkerScreen


class Pane(Protocol):
    """Interface of a pane, in addition to the interface of a widget."""

    @property
    def tab_text(self) -> str: ...


class BaseScreen(WorkerScreen[None]):
    """Base of all screens. Terminals with fewer than 100 columns show one pane at a time, and Tab switches to
    the next pane."""

    SCREEN_NAME: ClassVar[str]
    EXTRA_SCOPES: ClassVar[tuple[Scope, ...]] = ()
    """Key scopes of some panes, in addition to the scopes of lists and texts."""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-mid"), (160, "-wide")]  # noqa: RUF012  # as textual has it
    AUTO_FOCUS = ".pane"
    BLANK = True

    def __init__(self) -> None:
        super().__init__()
        self._trail: list[Widget] = []
        self._needs: tuple[Need, ...] = ()
        """The needs that the header shows."""
        self._timeline_bar: TimelineBar | None = None
        self._lists: dict[str, ItemList[Any]] = {}

    @property
    def dashboard(self) -> Dashboard:
        return dashboard_of(self)

    def post_message(self, message: Message) -> bool:
        if isinstance(message, ScreenResume):
            # No restyling is needed: changes are styled at once, and a new theme restyles each shown screen.
            message.refresh_styles = False
        return super().post_message(message)

    def compose(self) -> ComposeResult:
        yield StyleRegistry()
        yield Header(self.dashboard.place, self.dashboard.folder)
        yield PaneTabs()
        yield from self.compose_panes()
        yield Footer(self.SCREEN_NAME)

    @abstractmethod
    def compose_panes(self) -> ComposeResult:
        """Return the panes: widgets of class ``pane``."""

    @abstractmethod
    def show_model(self, model: Model) -> None:
        """Update the panes."""

    @property
    def current_need(self) -> Need | None:
        """The need under the cursor, or the need about the item under the cursor. None without a need."""
        return None

    @property
    def agent_to_pause(self) -> AgentView | None:
        """The agent that the key for a pause pauses or resumes, None if there is none."""
        return None

    def label_of(self, action: Action) -> str:
        """Return the label of ``action`` at the cursor, for the footer."""
        texts = self.dashboard.texts
        agent = self.agent_to_pause if action.meaning == "pause" else None
        return texts("footer.resume") if agent is not None and agent.is_resumable else action.label(texts)

    def empty_key(self, name: str) -> str:
        """Return the text key for the empty pane ``name``. Repositories have their own texts, because their
        agents register when their clients start."""
        root = self.dashboard.root
        in_repository = root is not None and repository_of(root) is not None
        return f"empty.repository.{name}" if in_repository else f"empty.{name}"

    def mark_seen(self) -> bool:
        """Mark the new items of this screen as seen. Return False if the screen has no such items."""
        return False

    def find_need(self, kinds: Collection[NeedKind], *keys: str | None) -> Need | None:
        """Return the most urgent need with one of the ``kinds`` and one of the ``keys``, or None."""
        needs = self.dashboard.needs
        return next((need for need in needs if need.kind in kinds and need.key in keys), None)

    def find_agent_need(self, kinds: Collection[NeedKind], agent: str | None) -> Need | None:
        """Return the most urgent need about ``agent`` with one of the ``kinds``, or None."""
        needs = self.dashboard.needs
        return next((need for need in needs if need.kind in kinds and need.agent == agent), None)

    @property
    def is_arriving(self) -> bool:
        """Whether the cursor moves to its target as soon as the target is loaded."""
        return False

    def go_to(self, target: Target) -> None:
        """Move the cursor to ``target``, if this screen can."""
        if isinstance(target, RowTarget):
            self.go_to_row(target.row)

    def go_to_row(self, row: Row) -> None:
        """Move the cursor to the subject of ``row``, if this screen can."""

    async def leave(self) -> None:
        """Save the state of this screen before it is closed."""

    def show(self, model: Model) -> None:
        self._needs = self.dashboard.needs
        self._show_header()
        footer = self.query_one(Footer)
        footer.show_seal(model.seal)
        self.show_timeline()
        self.show_model(model)
        self._show_tabs()
        # Other actions may be possible now.
        footer.refresh()

    def _show_header(self) -> None:
        app = self.dashboard
        self.query_one(Header).show(
            app.model,
            self._needs,
            app.navigator.next_need,
            remote_needs=len(app.remote_needs),
            is_live=app.is_live,
            can_act=app.can_act,
            progress=app.progress,
            outage=app.outage,
            polls_files=app.polls_files,
        )

    def show_timeline(self) -> None:
        """Update, open or close the timeline."""
        state = self.dashboard.timeline
        bar = self._timeline_bar
        if (state is None) is not (bar is None):
            if bar is None:
                self._timeline_bar = bar = TimelineBar()
                self.mount(bar, before=self.query_one(Footer))
            else:
                self._timeline_bar = None
                bar.remove()
            self.query_one(Footer).refresh()
        if state is not None and bar is not None:
            bar.show(state)
        is_past = state is not None and state.seq is not None
        if is_past is not self.has_class("-replay"):
            self.set_class(is_past, "-replay")
            # Fewer actions are possible in the past.
            self.query_one(Footer).refresh()

    def _show_tabs(self) -> None:
        panes = self.panes_in_use
        front = next((index for index, pane in enumerate(panes) if pane.has_class("-front")), 0)
        self.query_one(PaneTabs).show([cast("Pane", pane).tab_text for pane in panes], front)

    @on(ItemList.Counted)
    def recount(self) -> None:
        self._show_tabs()
        self.query_one(Footer).refresh()

    @on(ItemList.Highlighted)
    def offer_keys_of_item(self) -> None:
        """Show the keys that are possible for the item under the cursor. Some lists load their items late."""
        self.query_one(Footer).refresh()

    def on_descendant_focus(self) -> None:
        if self.focused and self.focused.has_class("pane") and not self.focused.has_class("-front"):
            self._put_in_front(self.focused)
        self.query_one(Footer).refresh()

    @on(PaneTabs.Chosen)
    def choose_pane(self, event: PaneTabs.Chosen) -> None:
        self.front(self.panes_in_use[event.index])

    def on_mount(self) -> None:
        # Textual calls on_mount of every class, subclasses first, so screens override `prepare` instead.
        self._put_in_front(self.panes[0])
        self._restore_filters()
        self.prepare()

    def _restore_filters(self) -> None:
        self._lists = {
            f"{self.SCREEN_NAME}.{each.id}": each for each in self.panes if isinstance(each, ItemList)
        }
        for name, each in self._lists.items():
            text = self.dashboard.filters.get(name, "")
            if text:
                each.set_filter(text)

    def on_unmount(self) -> None:
        """Save the filters for the next time."""
        for name, each in self._lists.items():
            self.dashboard.filters[name] = each.sought

    def prepare(self) -> None:
        """Prepare the screen. Called once, after the panes are mounted and the first pane is in front."""

    @property
    def has_panes(self) -> bool:
        """Whether the panes can be updated. They may be missing before the screen is mounted and while the
        dashboard closes."""
        return self.is_mounted and self.app.is_running

    def follow_clock(self) -> None:
        """Update needs, times and ages. Called once per second on the current screen."""
        if not self.has_panes:
            return
        if self.dashboard.needs != self._needs:
            self.show(self.dashboard.model)
        elif self.dashboard.is_live:
            self.query_one(Header).refresh()
        self.show_time()
        for pane in self.panes_in_use:
            if isinstance(pane, ItemList):
                pane.redraw_changed()

    def show_time(self) -> None:
        """Update values that change without a new row, except ages in lists. Called once per second on the
        current screen."""

    def on_screen_resume(self) -> None:
        self.show(self.dashboard.model)

    def on_key(self, event: Key) -> None:
        """Explain why the dashboard is read-only if the person presses a key for a change."""
        if self.dashboard.can_act:
            return
        pressed = self._actions_of(event.key)
        if any(each.acts for each in pressed) and not any(
            is_possible(each, self) for each in pressed if not each.acts
        ):
            event.stop()
            self.dashboard.explain_read_only()

    def _actions_of(self, key: str) -> list[Action]:
        scopes = of_scope(*OF_THE_APP, self.SCREEN_NAME, *scopes_of(self.focused))
        return [each for each in scopes if key in each.keys_in(self.dashboard.keymap)]

    def explain_key(self, key: str) -> bool:
        """Show why ``key`` does nothing now. Return False if it does something, or nothing on any screen."""
        app, pressed = self.dashboard, self._actions_of(key)
        if not pressed or any(is_possible(each, self) for each in pressed):
            return False
        action = pressed[-1]
        if reason := self.why_not(action):
            app.show_message(reason, "warning")
            return True
        why = why_impossible(action, app.texts, app.keymap, has_trees=bool(app.model.trees))
        app.show_message(app.texts("palette.not_now", label=action.label(app.texts), why=why))
        return True

    def why_not(self, action: Action) -> str:
        """Return a sentence that says why ``action`` is not possible at the cursor. Empty if the screen has
        no sentence of its own."""
        return ""

    @property
    def is_editing(self) -> bool:
        """Whether an editor has the focus, so that most keys type text."""
        return self.focused is not None and self.focused.has_class("editor")

    @cached_property
    def panes(self) -> list[Widget]:
        """All panes in reading order."""
        return list(self.query(".pane"))

    @property
    def panes_in_use(self) -> list[Widget]:
        """The panes that are in use now."""
        return [pane for pane in self.panes if not pane.has_class("-away")]

    def front(self, pane: Widget) -> None:
        """Bring ``pane`` to the front, and focus it. `return_to_pane` undoes this."""
        if self.focused is not None and self.focused is not pane:
            self._trail.append(self.focused)
        self._put_in_front(pane)
        pane.focus()

    def clear_trail(self) -> None:
        """Forget the visited panes. The next step back then leads to the previous screen."""
        self._trail.clear()

    def return_to_pane(self) -> bool:
        """Go back to the previous pane. Return False without a previous pane."""
        if not self._trail:
            return False
        pane = self._trail.pop()
        self._put_in_front(pane)
        pane.focus()
        return True

    def cancel_mode(self) -> bool:
        """End a mode that a key started. Return False if no mode is active."""
        return False

    def _put_in_front(self, pane: Widget) -> None:
        # Only narrow screens look different.
        restyle = self.has_class("-narrow")
        for each in self.query(".pane, .group"):
            each.set_class(each in pane.ancestors_with_self, "-front", update=restyle)
        self._show_tabs()

    def next_pane(self, step: int) -> None:
        close_search(self)
        panes = self.panes_in_use
        index = next((n for n, pane in enumerate(panes) if pane is self.focused), -step)
        self._trail.clear()
        pane = panes[(index + step) % len(panes)]
        self._put_in_front(pane)
        pane.focus()
