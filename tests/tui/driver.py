"""Drive the dashboard as a person does: press keys, read the screen, and wait for what should appear."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from rich.console import RenderableType
from rich.text import Text
from textual import events
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.app import ScreenStackError
from textual.css.query import NoMatches
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget
from watchroom import Row, Workspace
from watchroom.features.overview.model import Model
from watchroom.kernel.journal import Journal
from watchroom.texts import Language
from watchroom_tui.app import WatchroomApp
from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.dialogs.palette import run_action
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.keys.actions import ACTIONS
from watchroom_tui.services.key_queue import KeyQueue
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.text_pane import TextPane

PATIENCE = 30.0
ROUNDS = 4
POLL_SECONDS = 0.005
"""Seconds between checks of the queue of keys."""
SELDOM = 0.2
"""Seconds after which the screen is read although nothing was drawn."""
CHARACTERS = {"slash": "/", "exclamation_mark": "!", "question_mark": "?"}
NARROW, MIDDLE, WIDE = (80, 24), (120, 40), (200, 60)


class User:
    """A person who uses a dashboard: presses keys, reads the screen, and waits for what should appear."""

    def __init__(self, app: WatchroomApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.frames = 0
        """Number of drawn frames."""
        self._lines: Sequence[str] | None = None
        app.post_display_hook = self._count_frame  # type: ignore[method-assign]

    def _count_frame(self) -> None:
        self.frames += 1

    async def press(self, *keys: str) -> None:
        """Press the keys one after the other, each when the dashboard has handled the one before.

        Textual's own pilot waits for an idle process instead, which takes 0.1 s per key.
        """
        for key in keys:
            self._send(key)
            await self.settle()

    async def press_at_once(self, *keys: str) -> None:
        """Press the keys without waiting, as fast typing or a terminal's paste."""
        for key in keys:
            self._send(key)
        await self.settle()

    def _send(self, key: str) -> None:
        driver = self.app._driver
        assert driver is not None
        character = CHARACTERS.get(key, key if len(key) == 1 else None)
        event = events.Key(_character_to_key(key) if len(key) == 1 else key, character)
        event.set_sender(self.app)
        driver.send_message(event)

    async def settle(self) -> None:
        """Wait until all messages so far, and those caused by them, are handled."""
        for _ in range(ROUNDS):
            await self.pilot._wait_for_screen()
        # The apps with a single widget have no queue.
        queue: KeyQueue | None = getattr(self.app, "key_queue", None)
        while queue is not None and queue.is_busy:
            # Without a pause, this loop would hardly let threads run that read the journal.
            await asyncio.sleep(POLL_SECONDS)
            await self.pilot._wait_for_screen()

    async def chooses(self, action: str) -> None:
        """Run an action, by its id, as the palette does."""
        await run_action(self.app, next(each for each in ACTIONS if each.id == action))
        await self.settle()

    async def type(self, text: str) -> None:
        await self.press(*text)

    async def paste(self, text: str) -> None:
        driver = self.app._driver
        assert driver is not None
        event = events.Paste(text)
        event.set_sender(self.app)
        driver.send_message(event)
        await self.settle()

    async def until(self, holds: Callable[[], object], what: str) -> None:
        """Let the dashboard work until ``holds`` is true. Fail with the screen if it never is. A missing
        pane, whose screen has just opened, counts as false."""

        def is_met() -> bool:
            try:
                return bool(holds())
            except NoMatches:
                return False

        deadline = time.monotonic() + PATIENCE
        while not is_met():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: was not seen; the screen is:\n" + "\n".join(self.lines()))
            await self.pilot.pause(0.01)

    async def sees(self, *texts: str) -> None:
        """Wait until each text is on one line of the screen."""
        for text in texts:
            await self.until(self._once_drawn(lambda text=text: self.shows(text)), repr(text))  # type: ignore[misc]

    async def sees_no(self, text: str) -> None:
        await self.until(self._once_drawn(lambda: not self.shows(text)), f"no {text!r}")

    def _once_drawn(self, holds: Callable[[], bool]) -> Callable[[], bool]:
        """Return ``holds``, evaluated at first, and then only after a frame or `SELDOM` seconds, because
        reading the screen is slow."""
        asked_at, frames = 0.0, -1

        def ask() -> bool:
            nonlocal asked_at, frames
            if frames == self.frames and time.monotonic() - asked_at < SELDOM:
                return False
            asked_at, frames = time.monotonic(), self.frames
            return holds()

        return ask

    def shows(self, text: str) -> bool:
        return any(text in line for line in self.lines())

    def words_in(self, selector: str) -> str:
        """Return the text of a widget as one line, without its frame and line breaks."""
        found = self.app.screen.query(selector)
        return self._words_of(found.last()) if found else ""

    def _words_of(self, widget: Widget) -> str:
        left, top, width, height = widget.region
        rows = (line[left : left + width].strip("│╭╮╰╯─▌▐ ") for line in self.lines()[top : top + height])
        return " ".join(" ".join(rows).split())

    async def is_asked(self, text: str) -> None:
        await self.until(self._once_drawn(lambda: text in self.words_in("#question")), repr(text))

    async def is_told(self, text: str) -> None:
        """Wait for a notice with this text."""
        await self.until(self._once_drawn(lambda: any(text in each for each in self._told())), repr(text))

    def _told(self) -> Sequence[str]:
        return [self._words_of(toast) for toast in self.app.screen.query("Toast")]

    def lines(self) -> Sequence[str]:
        """The lines of the screen."""
        if self._lines is None:
            screen = self.app.screen
            self._lines = [strip.text for strip in screen._compositor.render_strips(screen.size)]
            # They stay the same until the dashboard runs again.
            asyncio.get_running_loop().call_soon(self._forget_lines)
        return self._lines

    def _forget_lines(self) -> None:
        self._lines = None

    @property
    def model(self) -> Model:
        return self.app.model

    @property
    def place(self) -> str:
        """The name of the screen, or of its overlay. Empty until it is complete."""
        try:
            screen = self.app.screen
        except ScreenStackError:
            # Between two modes there is none for a moment.
            return ""
        if not screen.is_mounted:
            return ""
        return screen.SCREEN_NAME if isinstance(screen, BaseScreen) else type(screen).__name__

    @property
    def pane(self) -> str | None:
        """The id of the focused pane."""
        return self.app.focused.id if self.app.focused else None

    def list(self, pane: str) -> ItemList[Any]:
        found = self.app.screen.query_one(f"#{pane}")
        assert isinstance(found, ItemList)
        return found

    def text(self, pane: str) -> TextPane:
        return self.app.screen.query_one(f"#{pane}", TextPane)

    def spans(self, pane: str) -> Sequence[Span]:
        """Return the pieces of a text with their styles."""
        drawing = self.text(pane)._drawing
        assert drawing is not None
        rows = [drawing.row(index, 1000, is_top=False) for index in range(len(drawing))]
        return [span for cells in rows for cell in cells for span in (*cell.gutter, *cell.text)]

    def cursor(self, pane: str) -> Any:
        """Return the item under the pane's cursor."""
        return self.list(pane).item

    def shown_panes(self) -> Sequence[str | None]:
        return [pane.id for pane in self.app.screen.query(".pane") if pane.display and _is_visible(pane)]

    async def goes_to(self, key: str, screen: str) -> None:
        await self.press(key)
        await self.until(lambda: self.place == screen, f"the screen {screen}")

    async def has_taken_in(self, workspace: Workspace) -> None:
        """Wait until every row so far is in the shown model."""
        workspace.flush()
        last = workspace.journal.last_seq()
        await self.until(lambda: self.model.seq >= last, f"row {last}")
        await self.settle()


def _is_visible(pane: Widget) -> bool:
    return all(each.display for each in pane.ancestors_with_self if isinstance(each, Widget))


_PARSED: Final[dict[str, dict[Any, Any]]] = {}
"""Textual's parsed stylesheets by theme. They are the same for all dashboards of a process, and take an
eighth of a test."""


_render_update: Final = Compositor.render_update


def _render_when_read(
    self: Compositor,
    full: bool = False,
    screen_stack: list[Screen[Any]] | None = None,
    simplify: bool = False,
) -> RenderableType | None:
    """Draw a frame only when it is read. No terminal needs each frame, and painting took a fifth of a test's
    time. Pictures are drawn completely."""
    if full:
        return _render_update(self, full, screen_stack, simplify)
    visible_screen_stack.set([] if screen_stack is None else screen_stack)
    is_changed = bool(self._dirty_regions)
    self._dirty_regions.clear()
    return Text() if is_changed else None


@asynccontextmanager
async def running(app: WatchroomApp, size: tuple[int, int], *, paints: bool = True) -> AsyncIterator[User]:
    """Run the dashboard ``app`` in a terminal of that size. ``paints``: draw each frame, or only those that
    are read."""
    theme, cache = app.theme, app.stylesheet._parse_cache
    for key, rules in _PARSED.get(theme, {}).items():
        cache[key] = rules
    with pytest.MonkeyPatch.context() as patch:
        if not paints:
            patch.setattr(Compositor, "render_update", _render_when_read)
        async with app.run_test(size=size, notifications=True) as pilot:
            yield User(app, pilot)
    # Another theme has other colours, so its stylesheets are not kept.
    if app.theme == theme:
        _PARSED.setdefault(theme, {}).update((key, cache[key]) for key in cache.keys())  # noqa: SIM118


@asynccontextmanager
async def past(
    journal: Journal, until: int, *, size: tuple[int, int] = MIDDLE, language: Language = "en"
) -> AsyncIterator[User]:
    """Run the dashboard over a journal as of row ``until``."""
    app = WatchroomApp(journal, place="team/", until=until, language=language)
    async with running(app, size) as user:
        await user.until(lambda: user.model.seq >= until, f"row {until}")
        await user.settle()
        yield user


@asynccontextmanager
async def dashboard(
    workspace: Workspace, *, size: tuple[int, int] = MIDDLE, language: Language = "en"
) -> AsyncIterator[User]:
    """Run the live dashboard over ``workspace`` as dana, and wait until it has read the journal."""
    app = WatchroomApp(
        workspace.journal,
        place="team/",
        language=language,
        person="dana",
        open_workspace=lambda: workspace,
    )
    async with running(app, size, paints=False) as user:
        await user.has_taken_in(workspace)
        await user.until(lambda: app.workspace is not None, "the open workspace")
        yield user


def seqs(rows: Sequence[Row]) -> list[int]:
    return [row.seq for row in rows]
