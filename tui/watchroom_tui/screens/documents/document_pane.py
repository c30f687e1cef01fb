"""Show the selected document, live or at an earlier version."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from textual.timer import Timer
from watchroom.errors import WatchroomError
from watchroom.features.documents.view import DocumentView

from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.keys.keymap import shown_key
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.readers.document import DocumentReader, DocumentSnapshot
from watchroom_tui.widgets.frame import Footer
from watchroom_tui.widgets.scrubber import Scrubber
from watchroom_tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from watchroom_tui.base_screen import BaseScreen

PLAY_SECONDS: Final = 20.0
"""Seconds to play a long history."""
FRAMES: Final = 10
"""Maximum number of versions shown per second while a history plays."""
SLOWEST: Final = 0.25
"""Seconds between two versions of a short history while it plays."""
LEAP: Final = 20
"""Number of leaps in the history."""


class DocumentPane:
    """Shows a document in ``view``, and the place of the shown version in its history in ``scrubber``."""

    def __init__(self, screen: BaseScreen, view: TextPane, scrubber: Scrubber) -> None:
        self._screen = screen
        self._app = screen.dashboard
        self._view = view
        self._scrubber = scrubber
        self._reader = DocumentReader(self._app.journal, self._app.texts)
        self._document: DocumentView | None = None
        self._asked: tuple[str, int] | None = None
        self._shown: DocumentSnapshot | None = None
        self._live: DocumentSnapshot | None = None
        self._at: int | None = None
        """The shown or requested version, None for the newest."""
        self._looked: dict[str, DocumentSnapshot] = {}
        """The snapshot of each document that was last marked as seen, at first its first snapshot."""
        self._seen: dict[str, int] = {}
        """The newest version of each document that a person has seen."""
        self._timer: Timer | None = None
        self._is_due = False
        """Whether the version in ``_asked`` has yet to be read."""
        self._is_loading = False

    @property
    def has_document(self) -> bool:
        return self._document is not None

    @property
    def is_live(self) -> bool:
        return self._at is None

    def unseen(self, documents: Iterable[DocumentView]) -> dict[str, int]:
        """Return the number of unseen versions by document, without documents that have none. The versions of
        a document at the first call count as seen."""
        shown = self._document.name if self._document else None
        return {
            each.name: each.version - self._seen[each.name]
            for each in documents
            if each.version > self._seen.setdefault(each.name, each.version) and each.name != shown
        }

    def show(self, document: DocumentView | None) -> None:
        """Show ``document``, and read it again if it has a new version."""
        if document is None:
            self._document, self._asked = None, None
            self._view.clear()
            self._scrubber.show(None, 0, self._mark())
            return
        if self._document is None or document.name != self._document.name:
            self.mark_seen()
            self.go_live()
        self._document = document
        if self._asked == (document.name, document.version):
            return
        self._asked, self._is_due = (document.name, document.version), True
        if not self._is_loading:
            self._is_loading = True
            self._start(self._load, "document")

    def _start(self, work: Callable[[], Awaitable[None]], group: str, *, exclusive: bool = False) -> None:
        self._screen.run_worker(work, group=group, exclusive=exclusive)

    async def _load(self) -> None:
        """Read the requested version. Requests during a read are combined: only the last one is read."""
        try:
            while self._asked is not None and self._is_due:
                self._is_due, started = False, time.monotonic()
                await self._load_once(*self._asked)
                # Leave half of the time for keys, because long texts are slow to read.
                await asyncio.sleep(time.monotonic() - started)
        finally:
            self._is_loading = False

    async def _load_once(self, name: str, version: int) -> None:
        workspace = await self._app.wait_for_workspace()
        former = self._looked.get(name)
        read = partial(self._reader.now, name, version, workspace, former.picture if former else None)
        try:
            reading = await asyncio.to_thread(read)
        except WatchroomError as error:
            self._view.clear()
            self._app.show_message(str(error), "error")
            return
        if self._document is None or name != self._document.name:
            return
        self._live = reading
        if name not in self._looked:
            self._mark_seen(reading)
        if self.is_live:
            self._draw(reading)
        elif self._shown is not None:
            self._show_scrubber(self._shown, reading.newest)

    def _draw(self, reading: DocumentSnapshot) -> None:
        self._shown = reading
        texts = self._app.texts
        drawing = reading.drawing
        title = f"{sanitize(reading.name)}  v{reading.version:,}"
        if self.is_live and drawing.new_rows:
            title += "  " + texts(
                "documents.new", count=drawing.new_rows, keys=shown_key("seen", self._app.keymap)
            )
        self._view.show_drawing(reading.name, drawing, title=title, with_cursor=True)
        self._show_scrubber(reading, self._newest)

    def _show_scrubber(self, reading: DocumentSnapshot, newest: int) -> None:
        self._scrubber.show(reading.row, newest, self._mark())
        self._view.set_class(not self.is_live, "-past")
        # The newest and earlier versions have different actions.
        self._screen.query_one(Footer).refresh()

    def _mark(self) -> Span:
        """Return a mark with a word: an earlier version, the newest version, or live."""
        texts = self._app.texts
        if not self.is_live:
            return Span(f"{'⏸' if self._timer is None else '▶'} {texts('documents.then')}", "warning")
        if not self._app.is_live:
            return Span(f"◷ {texts('documents.newest')}", "dim")
        return Span(f"● {texts('documents.live')}", "ok")

    @property
    def _newest(self) -> int:
        return self._live.newest if self._live else 0

    def mark_seen(self) -> None:
        """Mark everything in the document as seen. Only later changes count as new."""
        if self._live is not None:
            self._mark_seen(self._live)
            self._asked = None

    def _mark_seen(self, reading: DocumentSnapshot) -> None:
        self._looked[reading.name], self._seen[reading.name] = reading, reading.version

    def step(self, versions: int) -> None:
        """Go forward by this number of versions, or back if it is negative."""
        self._pause()
        self._go_to((self._at or self._newest) + versions)

    def leap(self, parts: int) -> None:
        """Go forward by this number of twentieths of the history, or back if it is negative."""
        self.step(parts * max(1, self._newest // LEAP))

    def seek(self, share: float) -> None:
        """Go to the version at this share of the history, from 0 to 1."""
        self._pause()
        self._go_to(1 + round(share * (self._newest - 1)))

    def go_live(self) -> None:
        """Show the newest version, and follow new versions."""
        self._pause()
        self._at = None
        if self._live is not None and self._document and self._live.name == self._document.name:
            self._draw(self._live)

    def play_or_pause(self) -> None:
        """Play the history from the shown version, or pause. Start at the first version if the newest one is
        shown."""
        if self._timer is not None:
            self._pause()
            if self._shown is not None:
                self._show_scrubber(self._shown, self._newest)
            return
        if self._live is None:
            return
        if self._at is None:
            self._at = 1
        apart = min(SLOWEST, max(1 / FRAMES, PLAY_SECONDS / self._newest))
        self._timer = self._screen.set_interval(apart, self._play_on)
        self._go_to(self._at)

    def _play_on(self) -> None:
        if self._at is None or not self._screen.is_in_front:
            return
        if self._shown is None or self._shown.version != self._at:
            # Wait until the version is read and shown, so that slow reads skip no version.
            return
        ahead = max(1, round(self._newest / (PLAY_SECONDS * FRAMES)))
        if self._at + ahead >= self._newest:
            self.go_live()
        else:
            self._go_to(self._at + ahead)

    def _pause(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _go_to(self, version: int) -> None:
        if self._live is None:
            return
        version = max(1, version)
        if version >= self._newest:
            self.go_live()
            return
        self._at = version
        self._start(partial(self._load_then, self._live.name, version), "then", exclusive=True)

    async def _load_then(self, name: str, version: int) -> None:
        try:
            reading = await asyncio.to_thread(self._reader.then, name, version, self._progress)
        except WatchroomError as error:
            self._app.show_message(str(error), "error")
            self.go_live()
            return
        if reading is not None and self._at == version and self._live and self._live.name == name:
            self._draw(reading)

    def _progress(self, share: float) -> None:
        self._app.call_from_thread(self._scrubber.show_progress, share)
