"""The timeline: display of earlier moments of the journal, and playback."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from textual.message import Message
from watchroom.features.overview.timeline import find_marker, find_neighbour

from watchroom_tui.context import Dashboard, RangeTarget, TimelineState

if TYPE_CHECKING:
    from watchroom_tui.services.timeline_feed import Moment, TimelineFeed, Wish

SPEEDS: Final = (1, 2, 5, 10, 30, 60, 120, 300, 600)
ACTIONS_WHILE_OPEN: Final = frozenset(
    {
        "step_row",
        "step_marker",
        "toggle_playing",
        "change_speed",
        "mark_moment",
        "revert_since",
        "write_report",
    }
)


class MomentChanged(Message):
    """The feed of the timeline has an earlier moment to show."""

    def __init__(self, moment: Moment) -> None:
        super().__init__()
        self.moment = moment


class Timeline:
    """The timeline of the dashboard ``app``."""

    def __init__(self, app: Dashboard) -> None:
        self._app = app
        self._feed: TimelineFeed | None = None
        self.is_open = False
        self.seq: int | None = None
        """The row of the shown moment, None for the newest."""
        self._is_playing = False
        self._speed = 0
        self._marked: int | None = None

    @property
    def state(self) -> TimelineState | None:
        """The state to show, None if the timeline is closed."""
        if not self.is_open:
            return None
        timeline = self._app.newest_model.timeline
        return TimelineState(timeline, self.seq, self._is_playing, SPEEDS[self._speed], self._marked)

    def toggle(self) -> None:
        """Open the timeline, or close it and show the present."""
        app = self._app
        if self.leave():
            return
        if app.progress < 1:
            app.show_message(app.texts("timeline.reading"), "warning")
            return
        self.is_open = True
        app.show_model()

    def leave(self) -> bool:
        """Close the timeline and show the present. Return False if the timeline is closed already."""
        if not self.is_open:
            return False
        self.is_open = False
        self._marked = None
        self._go_live()
        return True

    def _go_live(self) -> None:
        if self._feed is not None:
            self._feed.leave()
        self.seq, self._is_playing = None, False
        self._app.show_model(self._app.newest_model)

    def _open_feed(self) -> TimelineFeed:
        if self._feed is None:
            from watchroom_tui.services.timeline_feed import TimelineFeed

            app = self._app
            self._feed = TimelineFeed(
                app.journal,
                lambda moment: app.post_message(MomentChanged(moment)),
                until=None if app.is_live else app.newest_model.seq,
            )
        return self._feed

    def show(self, moment: Moment) -> None:
        """Show a moment from the feed. Ignore moments of earlier visits, and all moments while the timeline
        is closed."""
        if self._feed is None or moment.visit != self._feed.visit or not self.is_open:
            return
        if moment.has_ended:
            # Playback has reached the present.
            self._go_live()
            return
        self.seq = moment.seq
        self._app.show_model(moment.model)

    def _go(self, wish: Wish, *, is_dragging: bool = False) -> None:
        feed = self._open_feed()
        start = self._app.newest_model.seq if self.seq is None else None
        if start is not None:
            # Make the dashboard read-only at once, before the feed delivers the earlier moment.
            self.seq = start
        feed.go(wish, start=start, is_dragging=is_dragging)

    def step_row(self, step: int) -> None:
        """Go to the next row (1) or the previous row (-1)."""
        if step < 0 or self.seq is not None:
            app = self._app

            def neighbour(seq: int) -> int | None:
                found = find_neighbour(app.journal, seq, step)
                return found if found is None or found <= app.newest_model.seq else None

            self._go(neighbour)

    def step_marker(self, step: int) -> None:
        """Go to the next marker (1) or the previous marker (-1)."""
        if step < 0 or self.seq is not None:
            journal, timeline = self._app.journal, self._app.newest_model.timeline
            self._go(lambda seq: find_marker(journal, timeline, seq, step))

    def toggle_playing(self) -> None:
        """Start or stop playback. Playback starts at the shown moment, or at the first row if the newest
        moment is shown."""
        feed, app = self._open_feed(), self._app
        if self._is_playing:
            self._is_playing = False
            feed.play(None)
        else:
            if self.seq in (None, app.newest_model.seq):
                self._go(lambda _: find_neighbour(app.journal, 0, 1))
            self._is_playing = True
            feed.play(SPEEDS[self._speed])
        app.show_model()

    def change_speed(self, step: int) -> None:
        """Play faster (1) or slower (-1)."""
        self._speed = max(0, min(len(SPEEDS) - 1, self._speed + step))
        if self._is_playing:
            self._open_feed().play(SPEEDS[self._speed])
        self._app.show_model()

    async def mark_moment(self) -> None:
        """Mark the shown moment, or compare it with another marked moment."""
        app = self._app
        seq = app.newest_model.seq if self.seq is None else self.seq
        marked, self._marked = self._marked, seq
        if marked is not None and marked != seq:
            self._marked = None
            await app.navigator.go_to("compare", RangeTarget(min(marked, seq), max(marked, seq)))
        app.show_model()

    def write_report(self) -> None:
        """Write a report on the rows between the marked moment and the shown moment. Without a mark, the
        report starts at the first row."""
        from watchroom_tui.services.report_writing import write_report

        app = self._app
        seq = app.newest_model.seq if self.seq is None else self.seq
        after = min(self._marked or 0, seq)
        until = max(self._marked or 0, seq)
        app.open_editor(partial(write_report, app, after, until))

    def seek(self, seq: int, *, is_dragging: bool) -> None:
        """Go to row ``seq``. ``is_dragging``: whether the mouse is dragging. A moment nearby is then
        enough."""
        if self._is_playing:
            self._is_playing = False
            self._open_feed().play(None)
        self._go(lambda _: seq, is_dragging=is_dragging)

    def stop(self) -> None:
        """Stop the thread. Call this outside the event loop."""
        if self._feed is not None:
            self._feed.stop()
